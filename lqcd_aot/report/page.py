"""The page itself: facts in, one HTML text out. Owns what is shown, in which order, and the words around it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from html import escape
from statistics import median

from lqcd_aot.amounts import human_bytes, human_seconds
from lqcd_aot.report import svg
from lqcd_aot.report.document import document, table, tiles
from lqcd_aot.report.gather import Facts, Row

SHOWN_BUILDS, SHOWN_ROWS, SHOWN_FAILURES = 30, 15, 50
MOST_COLUMNS = 24
KINDS = ("reused", "shared", "published", "blocked", "failed")

# axis: (title, value of a row)
AXES: dict[str, Callable[[Row], str]] = {
    "operator": lambda r: r.operator,
    "lattice": lambda r: r.lattice,
    "dtype": lambda r: r.dtype,
    "batch": lambda r: str(r.batch),
    "form": lambda r: ("fused" if r.fused else "plain") + (f", {r.shards} shards" if r.shards != 1 else ""),
    "target": lambda r: r.target,
}


def page(facts: Facts) -> str:
    """The whole page."""
    parts = [
        f"<h1>Artifacts in {escape(facts.root)}</h1>",
        f"<p>{_period(facts)}</p>",
        _tiles(facts),
        _failures(facts),
        _maps(facts),
        _times(facts.rows),
        _sizes(facts.rows),
        _builds(facts),
    ]
    return document(f"lqcd-aot: {len(facts.rows)} artifacts", parts, verb="report")


def _period(facts: Facts) -> str:
    if not facts.builds:
        return "No build has left a log here yet."
    first, last = facts.builds[0].started, facts.builds[-1].started
    return f"{len(facts.builds)} builds in the log, from {escape(first)} to {escape(last)}."


def _tiles(facts: Facts) -> str:
    rows = facts.rows
    logical, unique = sum(r.size for r in rows), sum({r.sha256: r.size for r in rows}.values())
    seconds = sum(r.compile_ms or 0 for r in rows) / 1000
    checked = sum(r.checked for r in rows)
    cells = [
        (f"{len(rows)}", "artifacts", False),
        (human_bytes(unique), f"machine code ({human_bytes(logical)} before sharing)", False),
        (human_seconds(seconds), "spent compiling", False),
        (f"{_percent(checked, len(rows))}", f"witnesses passed ({len(rows) - checked} not checked)", False),
        (_hit_rate(facts), "of the variants of logged builds found in the store", False),
        (f"{len(facts.failures)}", "failures remembered", bool(facts.failures)),
        (f"{len(facts.divergences)}", "divergences", bool(facts.divergences)),
    ]
    if facts.unreadable:
        cells.append((f"{facts.unreadable}", "records that are not intact; run store verify", True))
    return tiles(cells)


def _failures(facts: Facts) -> str:
    parts = []
    if facts.failures:
        parts.append(
            "<h2>Failures</h2><p>Deterministic ones are not tried again with the same compiler; --retry-failed does.</p>"
        )
        for failure, log in facts.failures[:SHOWN_FAILURES]:
            head = f"<b>{escape(failure.name)}</b> {escape(failure.failure_class)}: {escape(failure.fact)}"
            parts.append(f"<details><summary>{head}</summary><pre>{escape(log)}</pre></details>")
        if len(facts.failures) > SHOWN_FAILURES:
            parts.append(f"<p>... and {len(facts.failures) - SHOWN_FAILURES} more.</p>")
    if facts.divergences:
        names = {r.build_key: r.name for r in facts.rows}
        lines = [(names.get(d[:64], "a build that is no longer here"), d[:16], d[65:81]) for d in facts.divergences]
        text = "<h2>Divergences</h2><p>One build key, two results: the build is not reproducible there. The first was kept.</p>"
        parts.append(text + table(("artifact", "build key", "second result"), lines[:SHOWN_FAILURES]))
    return "".join(parts)


def _maps(facts: Facts) -> str:
    """One map for each target: operators by lattices, the number of variants in each cell."""
    if not facts.rows:
        return "<p>Nothing is built here yet: <code>lqcd-aot build RECIPE</code>.</p>"
    failed = Counter(_place(f.failure.name) for f in facts.failures)
    parts = [
        "<h2>The matrix</h2><p>How many variants (dtype, batch, fused, shards) of each operator and lattice are built.</p>"
        '<p class="legend"><span><i class="good"></i>all witnesses passed</span><span><i class="warn"></i>some not checked</span>'
        '<span><i class="bad"></i>some failed to build</span></p>'
    ]
    by_target: dict[str, dict[tuple[str, str], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in facts.rows:
        by_target[row.target][row.operator, row.lattice].append(row)
    for operator, lattice, target in failed:
        _ = by_target[target][operator, lattice]  # a cell also where nothing else was built
    for target, groups in sorted(by_target.items()):
        operators = sorted({o for o, _ in groups})
        lattices = sorted({lattice for _, lattice in groups}, key=_volume)
        shown = lattices[:MOST_COLUMNS]
        cells = {where: _cell(rows, failed[(*where, target)]) for where, rows in groups.items()}
        more = f"<p>{len(lattices) - len(shown)} larger lattices are not shown.</p>" if len(shown) < len(lattices) else ""
        parts.append(f'<h3>{escape(target)}</h3><div class="scroll">{svg.matrix(operators, shown, cells)}</div>{more}')
    return "".join(parts)


def _cell(rows: Sequence[Row], failures: int) -> tuple[int, str, str]:
    checked = sum(r.checked for r in rows)
    kind = "bad" if failures else "good" if checked == len(rows) else "warn"
    reasons = Counter(r.status for r in rows if not r.checked)
    why = "; ".join(f"{n} {status}" for status, n in reasons.most_common(2))
    text = f"{len(rows)} variants, {checked} witnesses passed" + (f" ({why})" if why else "")
    return len(rows), kind, text + (f", {failures} failed to build" if failures else "")


def _place(name: str) -> tuple[str, str, str]:
    """(operator, lattice, target) of a variant's name, as the names of lqcd_runtime.signature are made."""
    words, _, target = name.rpartition("@")
    operator, _, rest = words.partition("-")
    return operator, rest.partition("-")[0], target


def _times(rows: Sequence[Row]) -> str:
    timed = [r for r in rows if r.compile_ms is not None]
    if not timed:
        return ""
    parts = ["<h2>Compile times</h2><p>Median of one compile for each value of each axis; in brackets what all of them took.</p>"]
    for axis, value_of in AXES.items():
        groups: dict[str, list[float]] = defaultdict(list)
        for row in timed:
            groups[value_of(row)].append((row.compile_ms or 0) / 1000)
        if len(groups) > 1:
            lines = [(v, median(s), f"{human_seconds(median(s))} ({human_seconds(sum(s))})") for v, s in _ordered(groups)]
            parts.append(f'<h3>{axis}</h3><div class="scroll">{svg.bars(lines)}</div>')
    parts.append("<h3>distribution</h3>" + svg.histogram([(r.compile_ms or 0) / 1000 for r in timed], unit="s"))
    slowest = sorted(timed, key=lambda r: -(r.compile_ms or 0))[:SHOWN_ROWS]
    lines_ = [(r.name, r.build_key[:16], human_seconds((r.compile_ms or 0) / 1000), human_bytes(r.size)) for r in slowest]
    parts.append("<h3>slowest</h3>" + table(("artifact", "build key", "compile", "size"), lines_))
    return "".join(parts)


def _sizes(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    parts = ["<h2>Sizes</h2><p>Median size of the machine code; in brackets all of it.</p>"]
    for axis in ("operator", "batch", "target"):
        groups: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            groups[AXES[axis](row)].append(row.size)
        if len(groups) > 1:
            lines = [(v, median(s), f"{human_bytes(median(s))} ({human_bytes(sum(s))})") for v, s in _ordered(groups)]
            parts.append(f'<h3>{axis}</h3><div class="scroll">{svg.bars(lines)}</div>')
    return "".join(parts)


def _builds(facts: Facts) -> str:
    if not facts.builds:
        return ""
    recent = facts.builds[-SHOWN_BUILDS:][::-1]
    lines = [(f"{b.started.replace('T', ' ').rstrip('Z')}", b.outcomes, f"{b.variants} of {b.recipe}"[:40]) for b in recent]
    legend = "".join(f'<span><i class="{kind}"></i>{kind}</span>' for kind in KINDS)
    return f'<h2>Builds</h2><p class="legend">{legend}</p><div class="scroll">{svg.stacked(lines, KINDS)}</div>'


def _hit_rate(facts: Facts) -> str:
    """Hits of hits and misses; a blocked variant is neither, for nothing looked for it."""
    hits = sum(b.outcomes.get("reused", 0) + b.outcomes.get("shared", 0) for b in facts.builds)
    misses = sum(b.outcomes.get("published", 0) + b.outcomes.get("failed", 0) for b in facts.builds)
    return _percent(hits, hits + misses)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _ordered(groups: dict[str, list[float]]) -> list[tuple[str, list[float]]]:
    """Numbers by value, lattices by volume, words by their median, largest first; not more than fit a screen."""
    if all(name.replace("x", "").isdecimal() for name in groups):
        return sorted(groups.items(), key=lambda item: _volume(item[0]))[:40]
    return sorted(groups.items(), key=lambda item: -median(item[1]))[:40]


def _volume(name: str) -> tuple[int, str]:
    product = 1
    for part in name.split("x"):
        product *= int(part) if part.isdecimal() else 1
    return product, name
