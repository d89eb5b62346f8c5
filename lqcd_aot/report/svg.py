"""Plots as inline SVG: horizontal bars, a histogram, the map of the matrix. Pure functions of numbers and words.

Colours are CSS classes, so that the page's style decides for light and dark; every mark has a <title> with its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

BAR, LABEL, WIDTH, VALUE = 20, 190, 720, 120
CELL_WIDTH, CELL_HEIGHT, HEAD = 92, 26, 54


def bars(rows: Sequence[tuple[str, float, str]], *, kind: str = "bar") -> str:
    """One horizontal bar for each (label, value, text), from zero."""
    most = max((value for _, value, _ in rows), default=0) or 1
    room = WIDTH - LABEL - VALUE
    parts = []
    for i, (label, value, text) in enumerate(rows):
        y, length = i * BAR, room * value / most
        parts.append(
            f"<g><title>{escape(label)}: {escape(text)}</title>"
            f'<text class="label" x="{LABEL - 8}" y="{y + 14}">{escape(label)}</text>'
            f'<rect class="{kind}" x="{LABEL}" y="{y + 3}" width="{length:.1f}" height="{BAR - 6}" rx="2"/>'
            f'<text class="value" x="{LABEL + length + 6:.1f}" y="{y + 14}">{escape(text)}</text></g>'
        )
    return frame(WIDTH, max(1, len(rows)) * BAR, parts)


def histogram(values: Sequence[float], *, unit: str, bins: int = 24) -> str:
    """How often, on a logarithmic axis of positive values; zeros count as the smallest."""
    positive = [v for v in values if v > 0]
    if not positive:
        return ""
    low, high = math.log10(min(positive)), math.log10(max(positive))
    high = high if high > low else low + 1e-3
    counts = [0] * bins
    for v in values:
        at = (math.log10(v) - low) / (high - low) if v > 0 else 0.0
        counts[min(bins - 1, int(at * bins))] += 1
    tall, wide, most = 140, (WIDTH - 40) / bins, max(counts)
    parts = []
    for i, n in enumerate(counts):
        h = tall * n / most
        edge, end = (10 ** (low + (high - low) * j / bins) for j in (i, i + 1))
        parts.append(
            f"<g><title>{n} between {_short(edge)} and {_short(end)} {escape(unit)}</title>"
            f'<rect class="bar" x="{20 + i * wide:.1f}" y="{tall - h + 4:.1f}" width="{wide - 2:.1f}" height="{h:.1f}"/></g>'
        )
    for i in range(0, bins + 1, bins // 4):
        tick = 10 ** (low + (high - low) * i / bins)
        side = ' style="text-anchor: start"' if i == 0 else ' style="text-anchor: end"' if i == bins else ""
        parts.append(f'<text class="tick" x="{20 + i * wide:.1f}" y="{tall + 20}"{side}>{_short(tick)} {escape(unit)}</text>')
    return frame(WIDTH, tall + 26, parts)


def stacked(rows: Sequence[tuple[str, Mapping[str, int], str]], kinds: Sequence[str]) -> str:
    """One bar for each (label, {kind: count}, text), cut into kinds; the CSS class of a part is its kind."""
    room, parts = WIDTH - LABEL - VALUE, []
    for i, (label, counts, text) in enumerate(rows):
        total, x, y = sum(counts.values()) or 1, float(LABEL), i * BAR
        parts.append(f'<text class="label" x="{LABEL - 8}" y="{y + 14}">{escape(label)}</text>')
        for kind in kinds:
            n = counts.get(kind, 0)
            if n:
                width = room * n / total
                parts.append(
                    f'<g><title>{escape(label)}: {n} {escape(kind)}</title><rect class="{escape(kind)}" x="{x:.1f}" y="{y + 3}" '
                    f'width="{width:.1f}" height="{BAR - 6}"/></g>'
                )
                x += width
        parts.append(f'<text class="value" x="{LABEL + room + 6}" y="{y + 14}">{escape(text)}</text>')
    return frame(WIDTH, max(1, len(rows)) * BAR, parts)


def matrix(rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], tuple[int, str, str]]) -> str:
    """A map: {(row, column): (count, kind, explanation)}; the CSS class of a cell is its kind, an absent cell is an outline."""
    parts = []
    for j, column in enumerate(columns):
        x = LABEL + j * CELL_WIDTH + CELL_WIDTH / 2
        parts.append(f'<text class="column" x="{x:.0f}" y="{HEAD - 10}">{escape(column)}</text>')
    for i, row in enumerate(rows):
        y = HEAD + i * CELL_HEIGHT
        parts.append(f'<text class="label" x="{LABEL - 8}" y="{y + 17}">{escape(row)}</text>')
        for j, column in enumerate(columns):
            x = LABEL + j * CELL_WIDTH
            count, kind, text = cells.get((row, column), (0, "none", "nothing built"))
            where = f'x="{x + 2}" y="{y + 2}" width="{CELL_WIDTH - 4}" height="{CELL_HEIGHT - 4}" rx="3"'
            number = (
                f'<text class="count" x="{x + CELL_WIDTH / 2:.0f}" y="{y + 17}">{count}</text>' if count or kind == "bad" else ""
            )
            title = f"{escape(row)}, {escape(column)}: {escape(text)}"
            parts.append(f'<g><title>{title}</title><rect class="{escape(kind)}" {where}/>{number}</g>')
    return frame(LABEL + len(columns) * CELL_WIDTH, HEAD + len(rows) * CELL_HEIGHT, parts)


def frame(width: float, height: float, parts: Sequence[str]) -> str:
    """Parts of a picture as one inline SVG of so many pixels."""
    box = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {box}>{"".join(parts)}</svg>'


def _short(value: float) -> str:
    return f"{value:.3g}"
