"""How `lqcd-aot bench` shows its report: lines of progress, tables, the folder of --out. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lqcd_aot.amounts import human_bytes, human_seconds
from lqcd_aot.cli.measuring import say
from lqcd_aot.cli.output import console, print_table
from lqcd_runtime.geometry import format_extents
from lqcd_runtime.json_output import dumps

Row = dict[str, Any]


def progress(row: Row, number: int, count: int) -> None:
    """One line for each row, as soon as it is measured."""
    from lqcd_aot.bench.rows import disturbance, words

    roof = "" if row["fraction"] is None else f", {100 * row['fraction']:.0f} % of the roof"
    why = disturbance(row)
    say(f"[{number}/{count}] {words(row)}: {row['gflops']:.1f} GFLOP/s{roof}{'; ' if why else ''}{why}")


def print_report(report: dict[str, Any], out: Path | None) -> None:
    """Tables of rows, solves, start-up, comparison; where series leave the roofline; what was not measured."""
    from lqcd_aot.bench.rows import disturbance
    from lqcd_aot.bench.suite import grouped

    rows = report["rows"]
    with_peer = any(r["peer"] for r in rows)
    heads = [
        "operator",
        "lattice",
        "stored",
        "batch",
        "form",
        "thr",
        "time",
        "spread",
        "GFLOP/s",
        "GB/s",
        "roof",
        "bound",
        "compile",
        "size",
    ]
    print_table([*heads, *(["peer", "ratio"] if with_peer else [])], (_cells(row, with_peer) for row in rows))
    cpus = sorted({tuple(r["cpus"]) for r in rows}, key=len)
    if any(map(disturbance, rows)):
        click.echo("! disturbed: the CPUs were moved, or other work had more than a twentieth of them")
    click.echo("pinned to CPU " + " / ".join(",".join(map(str, used)) for used in cpus))
    _print_solves(rows)
    _print_falls(report["series"])
    if report["start_up"] is not None:
        _print_start_up(report["start_up"])
    if report["comparison"] is not None:
        _print_comparison(report["comparison"])
    for names, reason in grouped(report["skipped"]):
        click.echo(f"not measured: {names}: {reason}")
    for note in report["notes"]:
        click.echo(note)
    if out is not None:
        click.echo(f"report: {out / 'bench.html'}, {out / 'bench.json'}")


def _cells(row: Row, with_peer: bool) -> tuple[object, ...]:
    from lqcd_aot.bench.rows import disturbance, form

    spread = (row["slowest"] - row["fastest"]) / row["seconds"]
    peer = row["peer"]
    return (
        row["operator"], format_extents(row["lattice"]), row["storage"] if row["storage"] != row["dtype"] else row["dtype"],
        row["batch"], form(row), f"{row['threads']}{'!' if disturbance(row) else ''}", human_seconds(row["seconds"]),
        f"{100 * spread:.0f} %", f"{row['gflops']:.1f}", f"{row['gbytes_per_s']:.1f}",
        "" if row["fraction"] is None else f"{100 * row['fraction']:.0f} %", row["bound"] or "",
        "" if row["compile_ms"] is None else human_seconds(row["compile_ms"] / 1000), human_bytes(row["artifact_bytes"]),
        *((f"{peer['name']} {human_seconds(peer['seconds'])}", f"{peer['ratio']:.2f}x")
          if peer else ("", "") if with_peer else ()),
    )  # fmt: skip


def _print_solves(rows: Sequence[Row]) -> None:
    solved = [(r, r["solve"]) for r in rows if r["solve"] is not None]
    if not solved:
        return
    click.echo("\nto a true residual of 1e-10")
    heads = ("solver", "lattice", "stored", "thr", "columns", "gauge field", "iterations", "time", "residual", "reason")
    print_table(heads, (
        (
            r["operator"], format_extents(r["lattice"]), r["storage"], r["threads"], s.get("columns", ""), s.get("gauge", ""),
            s.get("iterations", ""), human_seconds(s["seconds"]) if "seconds" in s else "",
            f"{s['residual']:.1e}" if "residual" in s else "", s["reason"],
        ) for r, s in solved
    ))  # fmt: skip


def _print_falls(series: Sequence[dict[str, Any]]) -> None:
    falls = [(one["name"], fall) for one in series for fall in one["falls"]]
    if falls:
        click.echo("\nwhere series leave the roofline")
    for name, fall in falls:
        console().print(f"{name}: {fall['lattice']} ({fall['gflops']:.1f} GFLOP/s): {fall['reason']}")


def _print_start_up(found: dict[str, Any]) -> None:
    click.echo(f"\nfresh process to the first propagator column, {found['configuration']} ({format_extents(found['lattice'])})")
    for name in (*found["steps"], "total", "without_numpy_and_solve"):
        median, low, high = found["steps"].get(name) or found[name]
        click.echo(f"{name:<24} {human_seconds(median):>9}   {human_seconds(low)} to {human_seconds(high)}")


def _print_comparison(found: dict[str, Any]) -> None:
    click.echo("\nagainst the older report: speed new/old")
    print_table(("row", "old", "new", "ratio", ""), (
        (r["row"], human_seconds(r["old_seconds"]), human_seconds(r["new_seconds"]), f"{r['ratio']:.2f}", r["verdict"])
        for r in found["rows"]
    ))  # fmt: skip
    for when in ("new", "old"):
        for name in found[f"only_{when}"]:
            click.echo(f"only {when}: {name}")


def write(report: dict[str, Any], folder: Path) -> None:
    """bench.json and bench.html, each whole or not at all. Errors: StoreError."""
    from lqcd_aot.bench.page import page
    from lqcd_aot.store.outfile import write_bytes

    write_json(report, folder / "bench.json")
    write_bytes(folder / "bench.html", page(report).encode("utf-8"), what="report")


def write_json(report: dict[str, Any], path: Path) -> None:
    """A report as JSON in a folder that is made where it is absent. Errors: StoreError."""
    from lqcd_aot.store.outfile import write_bytes

    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, (dumps(report, indent=1) + "\n").encode("utf-8"), what="report")


def neuron_progress(row: Row) -> None:
    """One line for each row of the Neuron table."""
    simulated = " (simulated)" if row["simulated"] else ""
    say(f"{format_extents(row['lattice'])} batch {row['batch']}: {row['batched']:.1f} applications/s a core{simulated}")


def print_neuron(rows: Sequence[Row]) -> None:
    """The table of lqcd-neuron's benchmark."""
    first = rows[0]
    form = "fused" if first["fused"] else "unfused"
    what = (
        "SIMULATED: a CPU runs the programs, nothing here says how fast a NeuronCore is"
        if first["simulated"]
        else first["target"]
    )
    click.echo(f"{first['operator']}, {first['dtype']} {form}, applications/s; {what}")
    columns = ("lattice", "B", "CPU", "Neuron", "Batched", "Multicore", "Speedup", "GFLOP/s", "GB/s")
    print_table(columns, (
        (
            format_extents(r["lattice"]), r["batch"], f"{r['cpu']:.1f}", f"{r['neuron']:.1f}", f"{r['batched']:.1f}",
            f"{r['multicore']:.1f}", f"{r['speedup']:.1f}x", f"{r['gflops']:.2f}", f"{r['gbytes_per_s']:.2f}",
        ) for r in rows
    ))  # fmt: skip
