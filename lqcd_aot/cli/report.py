"""`lqcd-aot report`: one HTML page about a store."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.cli.output import json_option, print_json, store_option
from lqcd_aot.cli.planning import open_folder


@click.command("report")
@store_option
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True, help="File.")
@json_option
def command(store_path: Path | None, output: Path, as_json: bool) -> None:
    """Write one self-contained HTML page: what is built, sizes, times for each axis, hit rates, failures with their logs."""
    from lqcd_aot.report import gather, page
    from lqcd_aot.store.outfile import write_bytes

    facts = gather(open_folder(store_path))
    write_bytes(output, page(facts).encode("utf-8"), what="report")
    counts = {"artifacts": len(facts.rows), "failures": len(facts.failures), "builds": len(facts.builds)}
    if as_json:
        print_json({"file": str(output), **counts})
    else:
        click.echo(f"{output}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
