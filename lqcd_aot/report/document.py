"""What every page of this project has in common: one complete HTML file, tables, tiles.

Owns the frame (style, policy) and tables. Refuses to know what a page is about. Every text that
is passed in is escaped here; parts are HTML already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape
from importlib.resources import files

# The policy is for readers' peace of mind: even if something slipped through the escaping, no browser would load or run it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def document(title: str, parts: Iterable[str], *, verb: str) -> str:
    """A page with a title and HTML parts, made by `lqcd-aot VERB`."""
    style = files("lqcd_aot.report").joinpath("style.css").read_text("utf-8")
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{style}</style>"
    )
    foot = f"<footer>Made by <code>lqcd-aot {escape(verb)}</code>. This file is complete: it loads nothing.</footer>"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{"".join(parts)}{foot}</body></html>\n'


def table(heads: Sequence[str], lines: Iterable[Sequence[str]], *, numbers: Collection[str] = (), flat: bool = False) -> str:
    """numbers: the heads of columns that are set to the right; flat: no cell is broken into lines, the reader scrolls."""
    kinds = [' class="n"' if h in numbers else "" for h in heads]
    head = "".join(f"<th{kind}>{escape(h)}</th>" for h, kind in zip(heads, kinds, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(line, kinds, strict=True)) + "</tr>"
        for line in lines
    )
    kind = ' class="flat"' if flat else ""
    return f'<div class="scroll"><table{kind}><tr>{head}</tr>{body}</table></div>'


def tiles(cells: Iterable[tuple[str, str, bool]]) -> str:
    """(figure, what it is, whether it alarms)."""
    made = (f'<div class="tile{" alarm" if bad else ""}"><b>{escape(a)}</b><span>{escape(b)}</span></div>' for a, b, bad in cells)
    return f'<div class="tiles">{"".join(made)}</div>'
