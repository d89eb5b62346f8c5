"""Two reports of the same machine, row by row: the ratio of speeds, and whether it is larger than the spread of both.

Owns the matching of rows and reading an old report. A ratio above 1 means that the new one is faster.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lqcd_aot.bench.rows import IDENTITY, Row, identity, words
from lqcd_runtime.errors import UsageError

SCHEMA = "lqcd-aot/bench/v1"
FASTER, SLOWER, SAME = "faster", "slower", "within the spread"


def read_report(path: Path) -> dict[str, Any]:
    """A report as `lqcd-aot bench --out` or `--json` wrote it. Errors: UsageError with what the file is instead."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"report {path}: cannot be read", found=str(error), hint="--compare FILE of --out FOLDER") from error
    schema = found.get("schema") if isinstance(found, dict) else type(found).__name__
    rows = found.get("rows") if isinstance(found, dict) else None
    whole = isinstance(rows, list) and all(isinstance(r, dict) and {*IDENTITY, "seconds"} <= r.keys() for r in rows)
    if schema != SCHEMA or not whole:
        raise UsageError(f"report {path}: is no benchmark report", expected=SCHEMA, found=schema)
    return dict(found)


def compare(new: Sequence[Row], old: Sequence[Row]) -> dict[str, Any]:
    """{"rows": [{"row", "old_seconds", "new_seconds", "ratio", "verdict"}], "only_new": [...], "only_old": [...]} in words.

    ratio: of speeds, new/old. verdict: "within the spread" where the ranges from fastest to slowest round overlap.
    """
    before = {identity(row): row for row in old}
    both = [(row, before[identity(row)]) for row in new if identity(row) in before]
    now = {identity(row) for row in new}
    return {
        "rows": [
            {
                "row": words(a), "old_seconds": b["seconds"], "new_seconds": a["seconds"],
                "ratio": b["seconds"] / a["seconds"], "verdict": verdict(a, b),
            }
            for a, b in both
        ],
        "only_new": [words(row) for row in new if identity(row) not in before],
        "only_old": [words(row) for row in old if identity(row) not in now],
    }  # fmt: skip


def verdict(new: Row, old: Row) -> str:
    """Whether the rounds of one are all faster than all rounds of the other."""
    if new["slowest"] < old["fastest"]:
        return FASTER
    return SLOWER if new["fastest"] > old["slowest"] else SAME
