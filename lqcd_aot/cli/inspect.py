"""`lqcd-aot inspect`: what a bundle or store holds, and a decision for every variant on this machine or another."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lqcd_aot.amounts import human_bytes
from lqcd_aot.cli.output import console, json_option, print_json, print_table

if TYPE_CHECKING:
    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.target import Host


@click.command("inspect")
@click.argument("path", metavar="BUNDLE|STORE", type=click.Path(path_type=Path))
@click.option("--decisions", is_flag=True, help="One line for every artifact: accepted, or why not.")
@click.option("--as-target", default=None, help="Judge for a machine of this CPU target in place of this one.")
@json_option
def command(path: Path, decisions: bool, as_target: str | None, as_json: bool) -> None:
    """Say what BUNDLE holds and what of it this machine can run."""
    import lqcd_runtime

    host = _host(as_target)
    with lqcd_runtime.open(str(path)) as bundle:
        entries = list(bundle.entries())
    reasons = {entry.build_key: host.refusal_of(entry) for entry in entries}
    if as_json:
        print_json([_row(e, reasons[e.build_key]) for e in entries])
        return
    out = console()
    size = sum({e.code["sha256"]: int(e.code["size"]) for e in entries}.values())
    runnable = sum(reason is None for reason in reasons.values())
    out.print(f"{path}: {len(entries)} artifacts, {human_bytes(size)} of code, {runnable} run on this machine")
    if decisions:
        for entry in entries:
            reason = reasons[entry.build_key]
            out.print(f"  {entry.name}  {reason or 'accepted'}")
        return
    groups: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.spec.operator, entry.target].append(entry)
    rows = []
    for (operator, target), members in sorted(groups.items()):
        lattices = sorted({"x".join(map(str, e.spec.lattice)) for e in members})
        dtypes = sorted({e.spec.dtype for e in members})
        here = sorted({reasons[e.build_key] or "runs here" for e in members})
        rows.append((operator, target, len(members), " ".join(lattices), " ".join(dtypes), "; ".join(here)))
    print_table(("operator", "target", "n", "lattices", "dtypes", "here"), rows)


def _host(as_target: str | None) -> Host:
    from lqcd_runtime.errors import UsageError
    from lqcd_runtime.signature import suggest
    from lqcd_runtime.target import CPU_TARGETS, Host, this_host

    if as_target is None:
        return this_host()
    if as_target not in CPU_TARGETS:
        raise UsageError(
            f"target {as_target!r}: is no CPU target{suggest(as_target, CPU_TARGETS)}", expected=", ".join(CPU_TARGETS)
        )
    architecture, _, features = CPU_TARGETS[as_target]
    return Host(architecture, features)


def _row(entry: Entry, reason: str | None) -> dict[str, object]:
    return {
        "name": entry.name,
        "spec": entry.spec.as_dict(),
        "target": entry.target,
        "build_key": entry.build_key,
        "size": entry.code["size"],
        "witness": entry.witness_status,
        "runs_here": reason is None,
        "reason": reason,
    }
