"""Where a series of rows (one operator, precision, batch and thread count over growing lattices) leaves the roofline, and why.

A lattice is named where the roof itself falls (its working set leaves a level of memory) and where the fraction of the roof falls
below FALL times the best of the smaller lattices. Reasons are sentences of measured numbers; what no number explains is said to
be unexplained. Measures nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from lqcd_aot.amounts import human_bytes
from lqcd_aot.bench.rows import SERIES, Row, disturbance, form, precision
from lqcd_runtime.geometry import format_extents

FALL = 0.8


def series(rows: Sequence[Row], sizes: dict[str, int]) -> list[dict[str, Any]]:
    """[{"name", "best": {"lattice", "gflops", "fraction"}, "falls": [{"lattice", "gflops", "fraction", "reason"}]}].

    rows: with roofs (others are left out); sizes: level -> bytes of one instance.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["fraction"] is not None:
            groups.setdefault(tuple(row[name] for name in SERIES), []).append(row)
    return [_one(sorted(group, key=lambda r: (prod(r["lattice"]), r["lattice"])), sizes) for group in groups.values()]


def name_of(row: Row) -> str:
    """A series in words."""
    plain = "" if form(row) == "plain" else f", {form(row)}"
    return f"{row['operator']}, {precision(row)}, batch {row['batch']}{plain}, {row['threads']} thread{'s'[: row['threads'] > 1]}"


def _one(group: Sequence[Row], sizes: dict[str, int]) -> dict[str, Any]:
    best = max(group, key=lambda r: r["fraction"])
    falls = []
    for i, row in enumerate(group):
        smaller = group[:i]
        if not smaller:
            continue
        highest, before = max(r["roof_gflops"] for r in smaller), max(r["fraction"] for r in smaller)
        roof_fell, fraction_fell = row["roof_gflops"] < FALL * highest, row["fraction"] < FALL * before
        if roof_fell or fraction_fell:
            falls.append({**_figures(row), "reason": _reason(row, smaller[-1], sizes, roof_fell, fraction_fell, before)})
    return {"name": name_of(group[0]), "best": _figures(best), "falls": falls}


def _figures(row: Row) -> dict[str, Any]:
    return {"lattice": format_extents(row["lattice"]), "gflops": row["gflops"], "fraction": row["fraction"]}


def _reason(row: Row, previous: Row, sizes: dict[str, int], roof_fell: bool, fraction_fell: bool, before: float) -> str:
    words = [f"works on {human_bytes(row['working_set'])}, held by {row['level']}"]
    left = [name for name, n in sizes.items() if previous["level"] == name != row["level"]]
    if left:
        words.append(f"{format_extents(previous['lattice'])} still fitted {left[0]} ({human_bytes(sizes[left[0]])})")
    if roof_fell:
        rate = row["roof_gflops"] / row["intensity"]
        words.append(
            f"{rate:.0f} GB/s from there times {row['intensity']:.2f} flops a byte make a roof of "
            f"{row['roof_gflops']:.0f} GFLOP/s"
        )
    if fraction_fell:
        words.append(f"{100 * row['fraction']:.0f} % of the roof after {100 * before:.0f} %")
        near = sizes.get(row["level"])
        if near and row["working_set"] > near / 2:
            words.append(f"more than half of {row['level']} ({human_bytes(near)}), which other data share")
        elif not left and not roof_fell:
            words.append("in the same level as before: neither flops nor bytes explain it")
    if disturbance(row):
        words.append(disturbance(row))
    return "; ".join(words)
