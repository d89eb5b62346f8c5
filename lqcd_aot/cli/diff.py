"""`lqcd-aot diff A B`: exactly what differs between two artifacts (by name or key), two bundles or stores, or two variants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lqcd_aot.cli.output import json_option, print_json, store_option
from lqcd_aot.cli.planning import store_folder
from lqcd_runtime.errors import EXIT_FAILED, EXIT_OK, NoVariant, UsageError

if TYPE_CHECKING:
    from lqcd_aot.build.compare import Difference
    from lqcd_runtime.bundle import Bundle


@click.command("diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--in", "path", type=click.Path(path_type=Path), default=None, help="Bundle or store with the artifacts.")
@store_option
@json_option
def command(first: str, second: str, path: Path | None, store_path: Path | None, as_json: bool) -> int:
    """Say in what A and B differ. Exit code 1 where they do; long values whole with --json.

    A and B: two bundle files or store folders; or two artifacts of --in (default: the store), each by its name or the start of
    its build key; a name that is in no store is compared by its fields alone.
    """
    found = _both_folders(first, second) if Path(first).exists() and Path(second).exists() else None
    if found is None:
        found = _artifacts(first, second, path or store_folder(store_path))
    if as_json:
        print_json({"a": first, "b": second, "differences": [one.as_dict() for one in found]})
    else:
        for one in found:
            click.echo(one.text)
        if not found:
            click.echo("no difference")
    return EXIT_FAILED if found else EXIT_OK


def _both_folders(first: str, second: str) -> list[Difference]:
    import lqcd_runtime
    from lqcd_aot.build.compare import compare_entries, compare_records

    with lqcd_runtime.open(first) as a, lqcd_runtime.open(second) as b:
        ours, theirs = list(a.entries()), list(b.entries())
        found = compare_entries(ours, theirs)
        if len(ours) == len(theirs) == 1 and ours[0].name == theirs[0].name:
            found += compare_records(a.record(ours[0].build_key), b.record(theirs[0].build_key))
        return found


def _artifacts(first: str, second: str, path: Path) -> list[Difference]:
    import lqcd_runtime
    from lqcd_aot.build.compare import compare_records

    for name in (first, second):
        if name.endswith(".lqcd") and not Path(name).exists():
            raise UsageError(f"bundle {name}: there is no such file")
    try:
        with lqcd_runtime.open(str(path)) as bundle:
            return compare_records(_record(bundle, first), _record(bundle, second))
    except NoVariant as absent:
        try:
            return _by_fields(first, second)
        except UsageError:
            raise absent from None


def _record(bundle: Bundle, artifact: str) -> dict[str, Any]:
    from lqcd_aot.cli.show import find_entry

    return bundle.record(find_entry(bundle, artifact).build_key)


def _by_fields(first: str, second: str) -> list[Difference]:
    """Two variants by their names, built or not."""
    from lqcd_aot.build.compare import Difference
    from lqcd_aot.build.explain import transition
    from lqcd_aot.recipe.names import parse_name

    (a, target), (b, other) = parse_name(first), parse_name(second)
    fields = {**({"target": (target, other)} if target != other else {}), **a.differs(b)}
    return [Difference(name, x, y, f"{name}: {transition(x, y)}") for name, (x, y) in fields.items() if name != "constants"]
