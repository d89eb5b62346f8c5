"""`lqcd-aot store ...`: keep a store in order. One file per verb (store_*.py); this one is the table and the small two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lqcd_aot.amounts import human_bytes
from lqcd_aot.cli.output import json_option, print_json, store_option
from lqcd_aot.cli.planning import open_folder
from lqcd_aot.cli.store_gc import collect
from lqcd_aot.cli.store_ls import ls
from lqcd_aot.cli.store_pins import pin, pins, unpin
from lqcd_aot.cli.store_ship import export, import_
from lqcd_runtime.errors import EXIT_CORRUPT, EXIT_OK


@click.group("store")
def command() -> None:
    """Check, list, describe and clean a store."""


for verb in (collect, export, import_, ls, pin, unpin, pins):
    command.add_command(verb)


@command.command("verify")
@store_option
@click.option("--repair", is_flag=True, help="Put what is wrong aside, so that the next build makes it again.")
@click.option("--quick", is_flag=True, help="Do not read again bytes whose file is as it was when last verified.")
@json_option
def verify(store_path: Path | None, repair: bool, quick: bool, as_json: bool) -> int:
    """Read every record and every blob. Exit code 12 where something is wrong and was not repaired."""
    store = open_folder(store_path)
    if repair:
        store.sweep_temporaries()
    report = store.verify(repair=repair, quick=quick)
    if as_json:
        print_json(report.as_dict())
        return EXIT_OK if report.is_sound or repair else EXIT_CORRUPT
    for problem in report.problems:
        click.echo(str(problem), err=True)
    counts = f"{report.records} records, {report.blobs} blobs ({report.trusted} unchanged), {human_bytes(report.bytes)}"
    click.echo(f"store {store.root}: {counts}, {_verdict(len(report.problems), repair)}")
    return EXIT_OK if report.is_sound or repair else EXIT_CORRUPT


def _verdict(problems: int, repair: bool) -> str:
    if not problems:
        return "all sound"
    return f"{problems} problems {'repaired' if repair else 'found; --repair puts them aside'}"


@command.command("stats")
@store_option
@json_option
def stats(store_path: Path | None, as_json: bool) -> None:
    """Count what is there, and its logical, unique and compressed bytes."""
    from lqcd_aot.store.statistics import statistics

    facts: dict[str, Any] = statistics(open_folder(store_path))
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        shown = human_bytes(value) if name.endswith("_bytes") else ", ".join(value) or "-" if name == "layers" else value
        click.echo(f"{name:<20} {shown}")
