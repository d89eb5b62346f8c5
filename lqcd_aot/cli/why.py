"""`lqcd-aot why`: explain a hit or a miss. For a recipe, why each variant would be built; for a variant, which artifact this
machine takes, or the nearest one and the differing fields: the same text as the runtime's own error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lqcd_aot.cli.output import cc_option, console, json_option, print_json, store_option
from lqcd_aot.cli.planning import make_plan, open_if_there, store_folder

if TYPE_CHECKING:
    from lqcd_runtime.signature import Spec

NEAREST_SHOWN = 20


@click.command("why")
@click.argument("subject", metavar="RECIPE|VARIANT")
@click.option(
    "--bundle", "bundle_path", type=click.Path(path_type=Path), default=None, help="Look in this bundle, not in a store."
)
@store_option
@cc_option
@json_option
def command(subject: str, bundle_path: Path | None, store_path: Path | None, cc: str | None, as_json: bool) -> None:
    """Explain why the variants of RECIPE would be built, or what is selected for VARIANT and why nothing else is."""
    if subject.endswith(".toml") or Path(subject).is_file():
        _recipe(Path(subject), store_path, cc, as_json)
    else:
        _variant(subject, bundle_path or store_folder(store_path), as_json)


def _recipe(path: Path, store_path: Path | None, cc: str | None, as_json: bool) -> None:
    planned = make_plan(path, store_path, cc, (), False)
    misses = [item for item in planned.items if item.decision != "reuse"]
    near = _nearest(planned.store_path, [item.variant.spec for item in misses if not item.changes][:NEAREST_SHOWN])
    if as_json:
        print_json([{**item.as_json(), "nearest": near.get(item.spec_key, ([], {}))[1]} for item in misses])
        return
    out = console()
    for item in misses:
        out.print(f"{item.variant.name}: {item.reason}")
        for line in near.get(item.spec_key, ([], {}))[0]:
            out.print(f"  {line}")
    out.print(f"{len(planned.items) - len(misses)} of {len(planned.items)} variants are in the store")
    if len(misses) > len(near) == NEAREST_SHOWN:
        out.print(f"the nearest artifact is shown for the first {NEAREST_SHOWN}; lqcd-aot why VARIANT shows any other")


def _nearest(store: Path, specs: list[Spec]) -> dict[str, tuple[list[str], dict[str, Any]]]:
    """{spec key: (lines, the same as JSON)} of what is nearest in a store to specs it does not have."""
    import lqcd_runtime
    from lqcd_runtime.select import explain_nearest

    if not specs or open_if_there(store) is None:
        return {}
    found: dict[str, tuple[list[str], dict[str, Any]]] = {}
    with lqcd_runtime.open(str(store)) as bundle:
        for spec in specs:
            near = bundle.source.nearest(spec) if spec.key not in found else None
            if near is not None and near.spec_key != spec.key:
                lines, differing = explain_nearest(spec, near)
                fields = {k: {"asked": asked, "nearest": has} for k, (asked, has) in differing.items()}
                found[spec.key] = lines, {"name": near.name, "differing": fields}
    return found


def _variant(name: str, path: Path, as_json: bool) -> None:
    import lqcd_runtime
    from lqcd_aot.recipe.names import parse_name
    from lqcd_runtime.target import CPU_TARGETS, Host, this_host

    spec, target = parse_name(name)
    host = this_host()
    if target in CPU_TARGETS:
        host = Host(CPU_TARGETS[target][0], CPU_TARGETS[target][2])
    with lqcd_runtime.open(str(path)) as bundle:
        selection = bundle.select(spec, host)
        layer = bundle.layer_of(selection.choice)
    choice = selection.choice
    if as_json:
        decisions = [str(d) for d in selection.decisions]
        print_json({"choice": choice.name, "build_key": choice.build_key, "from": layer, "decisions": decisions})
        return
    out = console()
    for decision in selection.decisions:
        out.print(str(decision))
    out.print(f"taken: {choice.name}, build key {choice.build_key}, from {layer}")
