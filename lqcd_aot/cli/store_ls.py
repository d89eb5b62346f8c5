"""`lqcd-aot store ls`: what a store folder holds. With --all everything, each thing with its state and the reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lqcd_aot.cli.output import json_option, print_json, print_table, store_option
from lqcd_aot.cli.planning import open_folder

if TYPE_CHECKING:
    from lqcd_aot.store.contents import Item


@click.command("ls")
@store_option
@click.option("--all", "everything", is_flag=True, help="Also what is invalid, foreign, orphaned, failed, leased, put aside.")
@json_option
def ls(store_path: Path | None, everything: bool, as_json: bool) -> None:
    """List the store's own things. What is not shown is counted, never hidden."""
    from lqcd_aot.store.contents import USABLE, contents
    from lqcd_runtime.target import this_host

    store = open_folder(store_path)
    found = [(layer.root, item) for layer in (store, *store.lower) for item in contents(layer, this_host().refusal_of_record)]
    shown = [(where, item) for where, item in found if everything or item.state == USABLE]
    if as_json:
        print_json([{**item.as_dict(), "label": label(item), "layer": where} for where, item in shown])
        return
    columns = ("kind", "name", "state", "what", *(("layer",) if store.lower else ()))
    rows = [(i.kind, _short(i), i.state, f"{label(i)} {i.reason}".strip(), *((w,) if store.lower else ())) for w, i in shown]
    print_table(columns, rows)
    if not everything:
        rest = Counter(f"{item.kind} {item.state}" for _, item in found if item.state != USABLE)
        if rest:
            click.echo(f"not shown: {', '.join(f'{n} {what}' for what, n in sorted(rest.items()))}; --all shows them")


def label(item: Item) -> str:
    """The artifact's name as `ls` prints it, "" where there is none."""
    from lqcd_runtime.errors import LqcdError
    from lqcd_runtime.manifest import Entry, entry_dict

    if item.record is None:
        return ""
    try:
        return Entry.from_dict(entry_dict(item.record), item.name).name
    except LqcdError as error:
        return f"(not an artifact of this release: {error.fact})"


def _short(item: Item) -> str:
    return item.name[:16] if item.kind in ("record", "blob", "failure", "lease") else item.name
