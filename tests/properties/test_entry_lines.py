"""Lines of a bundle judged as text are judged as parsing would judge them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lqcd_runtime.digest import canonical_json
from lqcd_runtime.entry_lines import Line, LineReader
from lqcd_runtime.errors import CorruptError, LqcdError
from lqcd_runtime.manifest import Entry, entry_dict
from lqcd_runtime.signature import Spec
from tests.made import record

SPEC = Spec("clover", "4x4x4x6", "float32", batch=3)
RECORDS = [
    {**record(SPEC, target, target.encode()), "witness": witness, "witness_status": status}
    for target, witness, status in (
        ("x86-64-v2", None, "passed"),
        ("x86-64-v3", {"rows": ['a\\"}', {"witness_status": "x"}], "n": 3}, "unchecked: too large"),
        ("aarch64", {"schema": "w", "deep": [[["\u00e9"]]]}, 'unchecked: "quoted" \\'),
    )
]
LINES = [canonical_json(entry_dict(r)) for r in RECORDS]


def read(line: bytes, target: str, *before: tuple[bytes, str]) -> Line:
    reader = LineReader()
    for other, its in before:
        reader.read(other, SPEC.key, its, "x")
    return reader.read(line, SPEC.key, target, "x")


def test_lines_of_writers_are_recognised_as_text() -> None:
    """Otherwise verifying ten thousand entries costs twice the time, unnoticed. A status with quotes is left to parsing."""
    for i, (line, made) in enumerate(zip(LINES, RECORDS, strict=True)):
        found = read(line, made["target"])
        assert (found.cuts is not None) == (i < 2)
        assert found.build_key == made["build_key"] and found.outputs == made["outputs"]
        assert found.name == f"{SPEC.name}@{made['target']}"
        assert found.is_cut_from(canonical_json(made), "x")
        for name in ("components", "provenance", "target", "witness"):
            changed = {**made, name: {"other": 1}}
            assert found.is_cut_from(canonical_json(changed), "x") == (name in ("components", "provenance"))


def verdict(line: bytes, target: str) -> Any:
    """What parsing says."""
    try:
        entry = Entry.from_dict(json.loads(line.decode("ascii")), "x")
    except (LqcdError, ValueError, RecursionError):
        return None
    return (entry.build_key, entry.outputs) if (entry.spec_key, entry.target) == (SPEC.key, target) else None


@settings(max_examples=1500)
@given(st.data())
def test_a_changed_line_is_judged_as_by_parsing(data: st.DataObject) -> None:
    """Bytes replaced, cut out or doubled anywhere, the spec known from the line before or not."""
    i = data.draw(st.integers(0, 2))
    line, target = LINES[i], RECORDS[i]["target"]
    first = data.draw(st.integers(0, len(line) - 1))
    last = data.draw(st.integers(first, min(len(line), first + 40)))
    pieces = [b"", line[first:last] * 2, *(c.encode() for c in '{}[]",:\\\n0x'), b'","witness":{}', b"1e5", b'"a":"b",']
    changed = line[:first] + data.draw(st.sampled_from(pieces)) + line[last:]
    before = [(LINES[0], RECORDS[0]["target"])] if data.draw(st.booleans()) else []
    expected = verdict(changed, target)
    try:
        found = read(changed, target, *before)
    except LqcdError:
        assert expected is None
    else:
        assert expected == (found.build_key, found.outputs)


@pytest.mark.parametrize("change", [{"target": "aarch64"}, {"spec_key": "0" * 64}])
def test_a_line_of_another_index_row_is_refused(change: dict[str, Any]) -> None:
    line = canonical_json({**entry_dict(RECORDS[0]), **change})
    with pytest.raises(CorruptError):
        read(line, RECORDS[0]["target"])
