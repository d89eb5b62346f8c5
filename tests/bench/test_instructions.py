"""The instruction counts of the kernels are those on record; the counting itself is exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from lqcd_aot.compilers import find_toolchain
from tests.bench import instruction_counts as counts

needs_valgrind = pytest.mark.skipif(not counts.available(), reason="valgrind on an x86-64 machine is absent")


@needs_valgrind
def test_no_kernel_takes_more_instructions_than_on_record() -> None:
    """Fewer are reported too: the record is then behind. `python tests/bench/instruction_counts.py --update` writes it anew."""
    broken = counts.compare(counts.count_all(), counts.read_record()["instructions"])
    assert not broken, "\n".join([*broken, "after a deliberate change: python tests/bench/instruction_counts.py --update"])


@needs_valgrind
def test_counting_is_exact(tmp_path: Path) -> None:
    """The same number twice, and n applications count n times one: neither chance nor start-up is in it."""
    spec = counts.specs()[0]
    driver = counts.build_driver(tmp_path)
    once = counts.count(spec, driver, tmp_path)
    artifact = tmp_path / f"{spec.name}.so"
    whole = [counts.instructions(spec, driver, artifact, repeats) for repeats in (1, 5, 5)]
    assert whole == [once, 5 * once, 5 * once]


def test_the_record_was_made_by_the_compiler_of_today() -> None:
    record = counts.read_record()
    assert record["compiler"] == f"zig {find_toolchain().identity(counts.TARGET)['version']}"
    assert (record["target"], record["tolerance"]) == (counts.TARGET, counts.TOLERANCE)
    assert set(record["instructions"]) == {spec.name for spec in counts.specs()}


def test_comparison_names_what_left_the_tolerance() -> None:
    recorded = {"a": 1000, "b": 1000, "c": 1000, "d": 1000, "gone": 5}
    found = {"a": 1020, "b": 1021, "c": 980, "d": 979, "new": 7}
    assert counts.compare(found, recorded) == [
        "b: 1021 instructions, recorded are 1000 (ratio 1.021)",
        "d: 979 instructions, recorded are 1000 (ratio 0.979)",
        "gone: recorded, not counted",
        "new: counted, not recorded",
    ]
