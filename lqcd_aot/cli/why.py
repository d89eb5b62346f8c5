"""`lqcd-aot why`: explain a hit or a miss. For a recipe, why each variant would be built; for a variant, which artifact this
machine takes, or the nearest one and the differing fields: the same text as the runtime's own error."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.cli.output import cc_option, console, json_option, print_json, store_option
from lqcd_aot.cli.planning import make_plan, store_folder


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
    items = make_plan(path, store_path, cc, (), False).items
    misses = [item for item in items if item.decision != "reuse"]
    if as_json:
        print_json([item.as_json() for item in misses])
        return
    out = console()
    for item in misses:
        out.print(f"{item.variant.name}: {item.reason}")
    out.print(f"{len(items) - len(misses)} of {len(items)} variants are in the store")


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
    if as_json:
        print_json({"choice": selection.choice.name, "decisions": [str(d) for d in selection.decisions]})
        return
    out = console()
    for decision in selection.decisions:
        out.print(str(decision))
    out.print(f"taken: {selection.choice.name}, build key {selection.choice.build_key}")
