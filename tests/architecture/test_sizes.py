"""Small files on purpose: the budgets, and the list of exceptions with their reasons (sizes.toml)."""

from __future__ import annotations

import statistics
import tomllib
from pathlib import Path

from tests.architecture.source_tree import ROOT, all_sources

EXCEPTIONS = tomllib.loads((Path(__file__).parent / "sizes.toml").read_text(encoding="utf-8"))
TEMPLATES = sorted((ROOT / "lqcd_aot" / "program").rglob("*.[hc]pp"))


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_files_stay_small() -> None:
    sizes = {f.shown: _lines(f.path) for f in all_sources()}
    sizes |= {str(p.relative_to(ROOT)): _lines(p) for p in TEMPLATES}
    over = {name: n for name, n in sizes.items() if n > EXCEPTIONS.get("files", {}).get(name, {}).get("lines", 400)}
    assert not over, f"over 400 lines without an entry in sizes.toml: {over}"
    ordered = sorted(sizes.values())
    assert statistics.median(ordered) <= 120
    assert ordered[int(0.9 * len(ordered))] <= 300


def test_functions_stay_small() -> None:
    allowed = EXCEPTIONS.get("functions", {})
    over = {
        f"{f.shown}:{name}": n
        for f in all_sources()
        for name, n in f.functions()
        if n > allowed.get(f"{f.shown}:{name}", {}).get("lines", 60)
    }
    assert not over, f"functions over 60 lines: {over}"


def test_every_exception_has_a_reason_and_is_still_needed() -> None:
    sizes = {f.shown: _lines(f.path) for f in all_sources()} | {str(p.relative_to(ROOT)): _lines(p) for p in TEMPLATES}
    functions = {f"{f.shown}:{name}": n for f in all_sources() for name, n in f.functions()}
    for name, entry in EXCEPTIONS.get("files", {}).items():
        assert entry["why"]
        assert sizes[name] > 400, f"{name} no longer needs its exception"
    for name, entry in EXCEPTIONS.get("functions", {}).items():
        assert entry["why"]
        assert functions[name] > 60, f"{name} no longer needs its exception"


def test_no_junk_drawers() -> None:
    names = {f.path.stem for f in all_sources()} | {f.path.parent.name for f in all_sources()}
    assert not names & {"utils", "util", "helpers", "misc", "common"}
