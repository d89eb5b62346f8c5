"""Roofline plots as inline SVG: speed over intensity with the roofs of every level, and speed over growing lattices.

Pure functions of rows and of `Roofline.as_json()`. Labels never lie on each other: they stand in a column of their own, in the
order of their points, each with a line to it. Colours are CSS classes of report/style.css.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from lqcd_aot.bench.rows import Row, disturbance, form, words
from lqcd_aot.report import svg
from lqcd_runtime.geometry import format_extents

LEFT, RIGHT, TOP, BOTTOM = 56, 250, 16, 46
PLOT_WIDTH, PLOT_HEIGHT, LINE = 620, 360, 16
LEVEL_CLASSES = {"L1": "lv1", "L2": "lv2", "L3": "lv3", "memory": "lvm"}
SERIES_CLASSES = 8


class Scale(NamedTuple):
    """A logarithmic axis: low..high of the numbers onto start..end of the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        at = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.start + (self.end - self.start) * at

    def ticks(self) -> list[float]:
        """1, 2, 5, 10, ... within the axis."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        every = [m * 10.0**n for n in range(first, last + 1) for m in (1, 2, 5)]
        # Half a unit of the picture for rounding, whatever the length of the axis.
        near, far = sorted((self.start, self.end))
        return [t for t in every if near - 0.5 <= self(t) <= far + 0.5]


def spread_out(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places for labels, in the order of `wanted`: as near to it as a gap between any two allows; within low..high if so."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = [0.0] * len(wanted)
    edge = low - gap
    for i in order:
        places[i] = edge = max(wanted[i], edge + gap)
    edge = max(high, low + gap * (len(wanted) - 1)) + gap
    for i in reversed(order):
        places[i] = edge = min(places[i], edge - gap)
    return places


def roofs_of(roofline: dict[str, Any], dtype: str, threads: int) -> tuple[dict[str, float], float, float]:
    """({level: best GB/s}, GFLOP/s of the hop's instructions, of fused multiply-adds alone)."""
    best: dict[str, float] = {}
    for entry in roofline["bandwidth"]:
        if entry["threads"] == threads:
            best[entry["level"]] = max(best.get(entry["level"], 0.0), entry["gbytes_per_s"][0])
    compute = next(c for c in roofline["compute"] if (c["dtype"], c["threads"]) == (dtype, threads))
    return best, compute["hop_gflops"][0], compute["fma_gflops"][0]


def intensity_plot(rows: Sequence[Row], roofline: dict[str, Any]) -> str:
    """GFLOP/s over flops per least byte, both logarithmic; rows of one dtype and number of threads."""
    bandwidth, hop, fma = roofs_of(roofline, rows[0]["dtype"], rows[0]["threads"])
    top = max(hop, fma, *(r["gflops"] for r in rows)) * 1.3
    bottom = min(min(r["gflops"] for r in rows), hop / 16) / 1.3
    height = max(PLOT_HEIGHT, LINE * len(rows))
    reach = [r["intensity"] for r in rows]
    x = Scale(min(0.2, min(reach) / 1.5), max(16.0, max(reach) * 1.5), LEFT, LEFT + PLOT_WIDTH)
    y = Scale(bottom, top, TOP + height, TOP)
    parts = [*_axes(x, y, height, "flops per byte"), _flat(x, y, hop, "hop"), _flat(x, y, fma, "fma")]
    for name, rate in bandwidth.items():
        start, ridge = max(x.low, bottom / rate), min(hop / rate, x.high)
        if start >= ridge:  # never the lower roof within the picture
            continue
        line = f'x1="{x(start):.1f}" y1="{y(rate * start):.1f}" x2="{x(ridge):.1f}" y2="{y(rate * ridge):.1f}"'
        parts.append(f'<g><title>{escape(name)}: {rate:.1f} GB/s</title><line class="roof {_level(name)}" {line}/></g>')
    ordered = sorted(rows, key=lambda r: -r["gflops"])
    places = spread_out([y(r["gflops"]) for r in ordered], LINE, TOP + 6, TOP + height - 4)
    for row, place in zip(ordered, places, strict=True):
        parts.append(_point(row, x(row["intensity"]), y(row["gflops"]), place))
    return svg.frame(LEFT + PLOT_WIDTH + RIGHT, TOP + height + BOTTOM, parts)


def legend(rows: Sequence[Row], roofline: dict[str, Any]) -> str:
    """The roofs in words, each in its colour."""
    bandwidth, hop, fma = roofs_of(roofline, rows[0]["dtype"], rows[0]["threads"])
    parts = [f'<span><i class="{_level(name)}"></i>{escape(name)} {rate:.0f} GB/s</span>' for name, rate in bandwidth.items()]
    parts.append(f'<span><i class="hop"></i>hop\'s instructions {hop:.0f} GFLOP/s</span>')
    parts.append(f'<span><i class="fma"></i>fused multiply-adds alone {fma:.0f} GFLOP/s</span>')
    return f'<p class="legend">{"".join(parts)}</p>'


def lattice_plot(rows: Sequence[Row]) -> str:
    """GFLOP/s over the lattices, a line for each batch, storage and form, dashed its roof; "" for fewer than two lattices."""
    lattices = sorted({tuple(r["lattice"]) for r in rows}, key=lambda e: (math.prod(e), e))
    if len(lattices) < 2:
        return ""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(_variant(row), []).append(row)
    high = 1.15 * max(max(r["roof_gflops"], r["gflops"]) for r in rows)
    step = PLOT_WIDTH / len(lattices)
    at = {lattice: LEFT + step * (i + 0.5) for i, lattice in enumerate(lattices)}

    def y(value: float) -> float:
        return float(TOP + PLOT_HEIGHT * (1 - value / high))

    parts = [_rule(y(tick), f"{tick:g}") for tick in _round_ticks(high)]
    parts += [f'<text class="tick" x="{at[e]:.1f}" y="{TOP + PLOT_HEIGHT + 18}">{format_extents(e)}</text>' for e in lattices]
    parts.append(_words(LEFT + PLOT_WIDTH / 2, TOP + PLOT_HEIGHT + 38, "lattice; dashed: roof of the line of that colour"))
    ends = []
    for number, (name, group) in enumerate(groups.items()):
        colour = f"sr{number % SERIES_CLASSES}"
        ordered = sorted(group, key=lambda r: at[tuple(r["lattice"])])
        xs = [at[tuple(r["lattice"])] for r in ordered]
        parts.append(_line(xs, [y(r["roof_gflops"]) for r in ordered], f"{colour} dash"))
        parts.append(_line(xs, [y(r["gflops"]) for r in ordered], colour))
        parts += [
            f"<g><title>{escape(_title(r))}</title>"
            f'<circle class="{colour} dot" cx="{px:.1f}" cy="{y(r["gflops"]):.1f}" r="4"/></g>'
            for px, r in zip(xs, ordered, strict=True)
        ]
        ends.append((xs[-1], y(ordered[-1]["gflops"]), colour, name))
    for (px, py, colour, name), place in zip(ends, spread_out([e[1] for e in ends], LINE, TOP, TOP + PLOT_HEIGHT), strict=True):
        parts.append(_leader(px + 6, py, place))
        parts.append(f'<text class="{colour} end" x="{LEFT + PLOT_WIDTH + 12}" y="{place + 4:.1f}">{escape(name)}</text>')
    return svg.frame(LEFT + PLOT_WIDTH + RIGHT, TOP + PLOT_HEIGHT + BOTTOM, parts)


def _axes(x: Scale, y: Scale, height: float, label: str) -> list[str]:
    parts = [_rule(y(tick), f"{tick:g}") for tick in y.ticks()]
    for tick in x.ticks():
        px = x(tick)
        parts.append(f'<line class="grid" x1="{px:.1f}" y1="{TOP}" x2="{px:.1f}" y2="{TOP + height:.1f}"/>')
        parts.append(f'<text class="tick" x="{px:.1f}" y="{TOP + height + 18:.1f}">{tick:g}</text>')
    return [*parts, _words(LEFT + PLOT_WIDTH / 2, TOP + height + 38, label)]


def _rule(py: float, text: str) -> str:
    line = f'<line class="grid" x1="{LEFT}" y1="{py:.1f}" x2="{LEFT + PLOT_WIDTH}" y2="{py:.1f}"/>'
    return f'{line}<text class="label soft" x="{LEFT - 6}" y="{py + 4:.1f}">{text}</text>'


def _words(px: float, py: float, text: str) -> str:
    return f'<text class="tick" x="{px:.1f}" y="{py:.1f}">{escape(text)}; upwards GFLOP/s</text>'


def _flat(x: Scale, y: Scale, value: float, kind: str) -> str:
    return f'<line class="roof {kind}" x1="{x.start:.1f}" y1="{y(value):.1f}" x2="{x.end:.1f}" y2="{y(value):.1f}"/>'


def _point(row: Row, px: float, py: float, place: float) -> str:
    label = f"{format_extents(row['lattice'])} {_variant(row)}: {row['gflops']:.1f}, {100 * row['fraction']:.0f} %"
    hollow = " hollow" if disturbance(row) else ""
    return (
        f"<g><title>{escape(_title(row))}</title>{_leader(px + 5, py, place)}"
        f'<circle class="{_level(row["level"])} dot{hollow}" cx="{px:.1f}" cy="{py:.1f}" r="4.5"/>'
        f'<text x="{LEFT + PLOT_WIDTH + 12}" y="{place + 4:.1f}">{escape(label)}</text></g>'
    )


def _leader(px: float, py: float, place: float) -> str:
    edge = LEFT + PLOT_WIDTH
    return f'<polyline class="leader" points="{px:.1f},{py:.1f} {edge - 8},{place:.1f} {edge + 8},{place:.1f}"/>'


def _line(xs: Sequence[float], ys: Sequence[float], kind: str) -> str:
    points = " ".join(f"{px:.1f},{py:.1f}" for px, py in zip(xs, ys, strict=True))
    return f'<polyline class="{kind} line" points="{points}"/>'


def _round_ticks(high: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10(high))
    step = step if high / step >= 4 else step / 2 if high / step >= 2 else step / 5
    return [step * i for i in range(int(high / step) + 1)]


def _variant(row: Row) -> str:
    """What tells the points of one plot apart, beside the lattice."""
    stored = "" if row["storage"] == row["dtype"] else f" {row['storage']}"
    return f"b{row['batch']}{stored}" + ("" if form(row) == "plain" else f" {form(row)}")


def _title(row: Row) -> str:
    why = f"; {disturbance(row)}" if disturbance(row) else ""
    return (
        f"{words(row)}: {row['gflops']:.1f} GFLOP/s, {100 * row['fraction']:.0f} % of {row['roof_gflops']:.0f} "
        f"({row['bound']}), works on {row['working_set']} bytes in {row['level']}{why}"
    )


def _level(name: str) -> str:
    return LEVEL_CLASSES.get(name, "lvm")
