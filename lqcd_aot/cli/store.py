"""`lqcd-aot store verify|stats`: read every byte of a store and judge it; count what is there."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.cli.output import human_bytes, json_option, print_json, store_option
from lqcd_aot.cli.planning import store_folder
from lqcd_runtime.errors import EXIT_CORRUPT, EXIT_OK


@click.group("store")
def command() -> None:
    """Check and describe a store."""


@command.command("verify")
@store_option
@click.option("--repair", is_flag=True, help="Put what is wrong aside, so that the next build makes it again.")
@json_option
def verify(store_path: Path | None, repair: bool, as_json: bool) -> int:
    """Read every record and every blob. Exit code 12 where something is wrong and was not repaired."""
    from lqcd_aot.store import open_store

    store = open_store(store_folder(store_path))
    if repair:
        store.sweep_temporaries()
    report = store.verify(repair=repair)
    if as_json:
        print_json(report.as_dict())
    else:
        for problem in report.problems:
            click.echo(str(problem), err=True)
        counted = f"{report.records} records, {report.blobs} blobs, {human_bytes(report.bytes)}"
        click.echo(f"store {store.root}: {counted}, {_verdict(report.problems, repair)}")
    return EXIT_OK if report.is_sound or repair else EXIT_CORRUPT


def _verdict(problems: object, repair: bool) -> str:
    count = len(tuple(problems))  # type: ignore[arg-type]
    if not count:
        return "all sound"
    return f"{count} problems {'repaired' if repair else 'found; --repair puts them aside'}"


@command.command("stats")
@store_option
@json_option
def stats(store_path: Path | None, as_json: bool) -> None:
    """Count records, blobs, bytes, remembered failures and divergences."""
    from lqcd_aot.store import describe, open_store

    facts = describe(open_store(store_folder(store_path)))
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        click.echo(f"{name:<12} {human_bytes(value) if name == 'bytes' else value}")
