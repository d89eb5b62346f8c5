"""`lqcd-aot store gc`: remove what nothing keeps. Pins, recipes that were built, lock files and running builds keep artifacts."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.amounts import human_bytes
from lqcd_aot.cli.output import json_option, print_json, store_option
from lqcd_aot.cli.planning import open_folder
from lqcd_runtime.errors import UsageError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@click.command("gc")
@store_option
@click.option("--keep-days", type=click.FloatRange(min=0), default=30, show_default=True, help="Keep unrooted artifacts so long.")
@click.option("--max-bytes", default=None, metavar="N[K|M|G|T]", help="Then remove the oldest unrooted ones until this fits.")
@click.option(
    "--grace", default="24h", show_default=True, metavar="N[s|m|h|d]",
    help="Bytes go only after being unreferenced for so long; 0 only where nothing else uses the store.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would go; write nothing.")
@json_option
def collect(store_path: Path | None, keep_days: float, max_bytes: str | None, grace: str, dry_run: bool, as_json: bool) -> None:
    """Remove artifacts that no root keeps, then the bytes that nothing names. Safe beside builds, loads and exports."""
    from lqcd_aot.store import gc
    from lqcd_aot.store.gc_mark import DAY, Policy

    bound = None if max_bytes is None else parse_bytes(max_bytes)
    policy = Policy(keep_days * DAY, bound, parse_seconds(grace))
    done = gc.collect(open_folder(store_path), policy, dry_run=dry_run)
    if as_json:
        print_json(done.as_dict())
        return
    for key, reason in done.evicted.items():
        click.echo(f"{key[:16]}  {reason}")
    would = "would evict" if dry_run else "evicted"
    click.echo(
        f"store {done.root}: {would} {len(done.evicted)} of {done.records + len(done.evicted)} records, "
        f"{'would free' if dry_run else 'freed'} {human_bytes(done.swept_bytes)} in {len(done.swept)} blobs; "
        f"{human_bytes(done.kept_bytes)} stay"
    )
    if done.waiting:
        click.echo(f"{done.waiting} blobs ({human_bytes(done.waiting_bytes)}) are unreferenced and go after {grace} of grace")


def parse_bytes(text: str) -> int:
    """'500M' -> bytes. Errors: UsageError."""
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not number.isdecimal() or unit not in _UNITS:
        raise UsageError(f"size {text!r}: is not a size", expected="a number with K, M, G or T, e.g. 20G")
    return int(number) * _UNITS[unit]


def parse_seconds(text: str) -> float:
    """'36h' -> seconds. Errors: UsageError."""
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].isalpha() else (text, "s")
    if not number.isdecimal() or unit not in _SECONDS:
        raise UsageError(f"time {text!r}: is not a time", expected="a number with s, m, h or d, e.g. 36h")
    return int(number) * _SECONDS[unit]
