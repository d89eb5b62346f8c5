"""`lqcd-aot ls`: the artifacts of a store or bundle, one line each; what cannot be used is listed too, never hidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from lqcd_aot.amounts import human_bytes
from lqcd_aot.cli.output import json_option, print_json, print_table
from lqcd_aot.cli.planning import store_folder


@click.command("ls")
@click.argument("path", metavar="[STORE|BUNDLE]", required=False, type=click.Path(path_type=Path))
@click.option("--operator", default=None, help="Only this operator.")
@click.option("--target", default=None, help="Only this target.")
@json_option
def command(path: Path | None, operator: str | None, target: str | None, as_json: bool) -> None:
    """List the artifacts of a store folder or a bundle file (default: the default store)."""
    rows = list(_rows(path or store_folder(None), operator, target))
    if as_json:
        print_json(rows)
        return
    layered = len({r["layer"] for r in rows}) > 1
    columns = ("name", "build_key", "size", "witness", *(("layer",) if layered else ()))
    cells = ([r["name"], str(r["build_key"])[:12], human_bytes(int(str(r["size"]))), r["witness"]] for r in rows)
    print_table(columns, ([*cell, *((r["layer"],) if layered else ())] for cell, r in zip(cells, rows, strict=True)))


def _rows(path: Path, operator: str | None, target: str | None) -> Iterator[dict[str, object]]:
    import lqcd_runtime

    with lqcd_runtime.open(str(path)) as bundle:
        for entry in bundle.entries():
            if operator in (None, entry.spec.operator) and target in (None, entry.target):
                yield {
                    "name": entry.name,
                    "spec_key": entry.spec_key,
                    "build_key": entry.build_key,
                    "target": entry.target,
                    "sha256": entry.code["sha256"],
                    "size": entry.code["size"],
                    "witness": entry.witness_status,
                    "layer": bundle.layer_of(entry),
                }
