"""`lqcd-aot store pin|unpin|pins`: say what garbage collection must keep."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lqcd_aot.cli.output import cc_option, json_option, print_json, print_table, store_option
from lqcd_aot.cli.planning import make_plan, open_folder
from lqcd_runtime.errors import UsageError

if TYPE_CHECKING:
    from lqcd_aot.store import Root


@click.command("pin")
@click.argument("subject", metavar="RECIPE|BUNDLE|NAME|KEY")
@click.option("--name", default=None, help="Name of the pin. [default: SUBJECT]")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), default=None, help="For so long only.")
@store_option
@cc_option
@json_option
def pin(subject: str, name: str | None, days: float | None, store_path: Path | None, cc: str | None, as_json: bool) -> None:
    """Keep the artifacts of a recipe or a bundle, or one artifact, until `unpin`."""
    from lqcd_aot.store import pins as rule

    kind, keys = _keys(subject, store_path, cc)
    store = open_folder(store_path)
    given = name or (str(Path(subject).resolve()) if kind != "pin" else subject)
    changed = rule.pin(store, kind, given, keys, seconds=None if days is None else days * 86400)
    if as_json:
        print_json({"kind": kind, "name": given, "build_keys": keys, "changed": changed})
    else:
        click.echo(f"{kind} {given}: {len(keys)} artifacts are kept{'' if changed else ' already'}")


def _keys(subject: str, store_path: Path | None, cc: str | None) -> tuple[str, list[str]]:
    import lqcd_runtime
    from lqcd_aot.cli.planning import store_folder
    from lqcd_aot.cli.show import find_entry

    path = Path(subject)
    if path.suffix == ".toml":
        items = make_plan(path, store_path, cc, (), False).items
        absent = [item.variant.name for item in items if item.decision != "reuse"]
        if absent:
            raise UsageError(
                f"pin {subject}: {len(absent)} of {len(items)} artifacts are not built", details=absent[:5],
                hint=f"lqcd-aot build {subject}",
            )  # fmt: skip
        return "recipe", sorted({str(item.build_key) for item in items})
    if path.is_file():
        with lqcd_runtime.open(subject) as bundle:
            return "bundle", sorted({entry.build_key for entry in bundle.entries()})
    with lqcd_runtime.open(str(store_folder(store_path))) as bundle:
        return "pin", [find_entry(bundle, subject).build_key]


@click.command("unpin")
@click.argument("name")
@store_option
@json_option
def unpin(name: str, store_path: Path | None, as_json: bool) -> None:
    """Keep what the root NAME (as `pins` prints it) keeps no longer; its artifacts go with a later gc."""
    store = open_folder(store_path)
    roots = store.roots.all()
    found = [root for root in roots if name in (root.name, f"{root.kind} {root.name}")] or [
        root for root in roots if root.name == str(Path(name).resolve())
    ]
    if len(found) != 1:
        fact = "is not a root" if not found else f"is the name of {len(found)} roots"
        shown = [f"{root.kind} {root.name}" for root in found or roots]
        raise UsageError(f"pin {name}: {fact} of store {store.root}", details=shown[:10], hint="lqcd-aot store pins")
    store.roots.remove(found[0].kind, found[0].name)
    if as_json:
        print_json(_row(found[0]))
    else:
        click.echo(f"{found[0].kind} {found[0].name}: {len(found[0].build_keys)} artifacts are kept no longer by it")


@click.command("pins")
@store_option
@json_option
def pins(store_path: Path | None, as_json: bool) -> None:
    """List what keeps artifacts: pins, recipes, bundles, lock files, exports under way."""
    store = open_folder(store_path)
    found = [(root, store.roots.is_over(root, time.time())) for root in store.roots.all()]
    if as_json:
        print_json([{**_row(root), "over": over} for root, over in found])
        return
    rows = [(r.kind, r.name, len(r.build_keys), _day(r.created), _until(r, over)) for r, over in found]
    print_table(("kind", "name", "artifacts", "since", "until"), rows)


def _row(root: Root) -> dict[str, object]:
    return {**root.as_dict(), "build_keys": list(root.build_keys)}


def _until(root: Root, over: bool) -> str:
    if over:
        return "over" if root.expires is not None else "over: its file is gone"
    return "its file goes" if root.file is not None and root.expires is None else _day(root.expires)


def _day(seconds: int | None) -> str:
    return "-" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
