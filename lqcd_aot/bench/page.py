"""The HTML page of a benchmark: a report of suite.py in, one complete file out. Owns what is shown, in which order and words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from lqcd_aot.amounts import human_bytes, human_seconds
from lqcd_aot.bench import plot
from lqcd_aot.bench.rows import Row, disturbance, form, precision
from lqcd_aot.bench.suite import grouped
from lqcd_aot.report import svg
from lqcd_aot.report.document import document, table, tiles
from lqcd_runtime.geometry import format_extents

HEADS = (
    "operator", "lattice", "precision", "batch", "form", "threads", "time", "fastest to slowest", "GFLOP/s", "GB/s", "roof",
    "of roof", "bound", "working set", "in", "compile", "artifact", "peer", "ratio",
)  # fmt: skip
NUMBERS = ("batch", "threads", "time", "GFLOP/s", "GB/s", "roof", "of roof", "working set", "compile", "artifact", "ratio",
           "iterations", "seconds", "old", "new", "columns", "residual")  # fmt: skip


def page(report: dict[str, Any]) -> str:
    """The whole page."""
    parts = [
        "<h1>Benchmark</h1>", _machine(report), _tiles(report), _limits(report["roofline"]), _plots(report), _falls(report),
        "<h2>All rows</h2>", _rows(report["rows"]), _solves(report["rows"]), _start_up(report["start_up"]),
        _comparison(report["comparison"]), _rest(report),
    ]  # fmt: skip
    return document(f"lqcd-aot bench: {len(report['rows'])} rows", parts, verb="bench")


def _machine(report: dict[str, Any]) -> str:
    m, settings = report["machine"], report["settings"]
    caches = ", ".join(f"{name} {human_bytes(c['bytes'])} shared by {c['shared_by']}" for name, c in m["caches"].items())
    words = (
        f"{m['processor']} ({m['architecture']}), {m['cpus']} CPUs, measured on CPU "
        f"{', '.join(map(str, m['cpus_used']))}; {caches}; "
        f"{human_bytes(m['memory_bytes'])} of memory; Linux {m['kernel']}, Python {m['python']}; load {m['load'][0]}. "
        f"Artifacts for {settings['target']}; medians after a warm-up, {settings['seconds']:g} s a row."
    )
    return f"<p>{escape(words)}</p>"


def _tiles(report: dict[str, Any]) -> str:
    rows = report["rows"]
    known = [r for r in rows if r["fraction"] is not None]
    best = max((r["fraction"] for r in known), default=None)
    moved = sum(bool(disturbance(r)) for r in rows)
    cells = [
        (str(len(rows)), "rows", False),
        (f"{max(r['gflops'] for r in rows):.1f}", "GFLOP/s, the fastest", False),
        (_percent(best), "of the roof, the nearest", False),
        (human_seconds(sum(r["compile_ms"] or 0 for r in _unique(rows)) / 1000), "compiling all of them", False),
        (human_bytes(sum(r["artifact_bytes"] for r in _unique(rows))), "of machine code", False),
        (str(moved), "rows that were disturbed", moved > 0),
    ]
    return tiles(cells)


def _unique(rows: Sequence[Row]) -> list[Row]:
    """One row for each artifact."""
    return [r for r in rows if r["threads"] == min(o["threads"] for o in rows)]


def _limits(roofline: dict[str, Any] | None) -> str:
    if roofline is None:
        return "<p>No compiler was at hand to measure this machine's roofline with.</p>"
    parts = [
        "<h2>What this machine can do</h2><p>Measured in the same run, median (lowest to highest). A copy counts bytes read and "
        "bytes written. The hop's instructions are fused multiply-adds, products and sums in its ratio.</p>"
    ]
    lines = [
        (c["dtype"], str(c["threads"]), _span(c["fma_gflops"], "GFLOP/s"), _span(c["hop_gflops"], "GFLOP/s"))
        for c in roofline["compute"]
    ]
    parts.append(table(("dtype", "threads", "fused multiply-adds", "hop's instructions"), lines))
    places = list(dict.fromkeys((b["level"], b["threads"]) for b in roofline["bandwidth"]))
    kinds = list(dict.fromkeys(b["kind"] for b in roofline["bandwidth"]))
    at = {(b["level"], b["threads"], b["kind"]): _span(b["gbytes_per_s"], "GB/s") for b in roofline["bandwidth"]}
    moved = [(level, str(n), *(at.get((level, n, kind), "") for kind in kinds)) for level, n in places]
    return "".join(parts) + table(
        ("level", "threads", *(k.replace("copy_stream", "copy, streaming stores") for k in kinds)), moved
    )


def _plots(report: dict[str, Any]) -> str:
    if report["roofline"] is None:
        return ""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in report["rows"]:
        groups.setdefault((row["operator"], row["dtype"], row["threads"]), []).append(row)
    parts = [
        "<h2>Rooflines</h2><p>Points are rows: lattice, batch (b), GFLOP/s, part of the roof. A point has the colour of the "
        "level that holds its working set; a hollow one was disturbed: its CPUs were moved, or other work had them.</p>"
    ]
    for (operator, dtype, threads), group in groups.items():
        parts.append(f"<h3>{escape(operator)}, {escape(dtype)}, {threads} thread{'s' if threads > 1 else ''}</h3>")
        parts.append(plot.legend(group, report["roofline"]))
        parts.append(f'<div class="scroll">{plot.intensity_plot(group, report["roofline"])}</div>')
        parts.append(f'<div class="scroll">{plot.lattice_plot(group)}</div>')
    return "".join(parts)


def _falls(report: dict[str, Any]) -> str:
    if not report["series"]:
        return ""
    lines = []
    for one in report["series"]:
        best = one["best"]
        lines.append((one["name"], best["lattice"], f"{best['gflops']:.1f}", _percent(best["fraction"]), "nearest to its roof"))
        lines += [("", f["lattice"], f"{f['gflops']:.1f}", _percent(f["fraction"]), f["reason"]) for f in one["falls"]]
        if not one["falls"]:
            lines.append(("", "none", "", "", "no fall on the lattices measured"))
    heads = ("series", "lattice", "GFLOP/s", "of roof", "why")
    return (
        "<h2>Where series leave the roofline</h2><p>The lattices at which the roof falls, or the part of it that is reached "
        "falls below 80 % of what smaller lattices reached.</p>" + table(heads, lines, numbers=NUMBERS)
    )


def _rows(rows: Iterable[Row]) -> str:
    return table(HEADS, map(_cells, rows), numbers=NUMBERS, flat=True)


def _cells(r: Row) -> tuple[str, ...]:
    peer = r["peer"]
    return (
        r["operator"], format_extents(r["lattice"]), precision(r), str(r["batch"]), form(r),
        str(r["threads"]) + (" (disturbed)" if disturbance(r) else ""),
        human_seconds(r["seconds"]), f"{human_seconds(r['fastest'])} to {human_seconds(r['slowest'])}", f"{r['gflops']:.1f}",
        f"{r['gbytes_per_s']:.1f}", "" if r["roof_gflops"] is None else f"{r['roof_gflops']:.0f}", _percent(r["fraction"]),
        r["bound"] or "", human_bytes(r["working_set"]), r["level"] or "",
        "" if r["compile_ms"] is None else human_seconds(r["compile_ms"] / 1000), human_bytes(r["artifact_bytes"]),
        peer["name"] if peer else "", f"{peer['ratio']:.2f}" if peer else "",
    )  # fmt: skip


def _solves(rows: Sequence[Row]) -> str:
    solved = [(r, r["solve"]) for r in rows if r["solve"] is not None]
    if not solved:
        return ""
    lines = [
        (
            r["operator"], format_extents(r["lattice"]), precision(r), str(r["threads"]), str(s.get("columns", "")),
            s.get("gauge", ""),
            str(s.get("iterations", "")), human_seconds(s["seconds"]) if "seconds" in s else "",
            f"{s['residual']:.1e}" if "residual" in s else "", s["reason"],
        )
        for r, s in solved
    ]  # fmt: skip
    heads = ("solver", "lattice", "precision", "threads", "columns", "gauge field", "iterations", "seconds", "residual", "reason")
    return (
        "<h2>Solves</h2><p>Columns of a point propagator to a true residual of 1e-10 in double precision, m = 0.1, "
        "antiperiodic.</p>" + table(heads, lines, numbers=NUMBERS)
    )


def _start_up(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    bars = [(name, spent[0], _milliseconds(spent)) for name, spent in found["steps"].items()]
    words = (
        f"{found['configuration']} ({format_extents(found['lattice'])}): the first propagator column is there "
        f"after {_milliseconds(found['total'])}; "
        f"without numpy's import and the solve {_milliseconds(found['without_numpy_and_solve'])}."
    )
    return f"<h2>From nothing to the first column</h2><p>{escape(words)}</p>{svg.bars(bars)}"


def _comparison(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    lines = [
        (r["row"], human_seconds(r["old_seconds"]), human_seconds(r["new_seconds"]), f"{r['ratio']:.2f}", r["verdict"])
        for r in found["rows"]
    ]
    other = [f"only {when}: {name}" for when in ("new", "old") for name in found[f"only_{when}"]]
    more = "".join(f"<p>{escape(line)}</p>" for line in other)
    return "<h2>Against the older report</h2>" + table(("row", "old", "new", "ratio", ""), lines, numbers=NUMBERS) + more


def _rest(report: dict[str, Any]) -> str:
    skipped = grouped(report["skipped"])
    parts = [f"<p>{escape(note)}</p>" for note in report["notes"]]
    if skipped:
        parts.append("<h2>Not measured</h2>" + table(("variant", "why"), skipped))
    return "".join(parts)


def _span(values: Sequence[float], unit: str) -> str:
    return f"{values[0]:.1f} ({values[1]:.1f} to {values[2]:.1f}) {unit}"


def _milliseconds(values: Sequence[float]) -> str:
    return f"{1e3 * values[0]:.1f} ms"


def _percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.0f} %"
