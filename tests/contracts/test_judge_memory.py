"""What is too large for the judge stays unchecked and says so; the estimate bounds what judging really takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lqcd_aot.build import check, judge_memory
from lqcd_aot.build.check import WitnessChecker
from lqcd_aot.build.execute import build
from lqcd_aot.build.job import Result
from lqcd_aot.build.judge_memory import GIB, answer_bytes, judge_bytes, ran_out, too_large
from lqcd_aot.build.pack import pack
from lqcd_aot.build.pack import wanted as packable
from lqcd_aot.build.plan import PlanItem, plan
from lqcd_aot.compilers import find_toolchain
from lqcd_aot.recipe.variant import Variant
from lqcd_aot.store import Store, open_store
from lqcd_runtime import self_check
from lqcd_runtime.bundle import open_bundle
from lqcd_runtime.memory_use import replay_bytes
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.target import this_host
from lqcd_runtime.witness import question

SPEC = Spec("plaquette", (2, 3, 2, 4))


def built(store: Store, checker: WitnessChecker) -> tuple[list[PlanItem], list[Result]]:
    """SPEC for this machine, really compiled."""
    host, toolchain = this_host().best_target(), find_toolchain()
    assert host is not None
    items = plan([Variant(SPEC, host)], store, toolchain)
    return items, build(items, store, toolchain, checker=checker)


# Judges one operator in a process of its own and prints the growth of its peak, in bytes a site; the kernel counts it.
MEASURE = """
import sys
from lqcd_aot.build.witness import Judge, load_judges
from lqcd_runtime.signature import Spec
load_judges()
def kilobytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
Judge().make_witness(Spec(sys.argv[1], (2, 2, 2, 2)))
open("/proc/self/clear_refs", "w").write("5")
before = kilobytes("VmRSS")
Judge().make_witness(Spec(sys.argv[1], (12, 12, 12, 12)))
print((kilobytes("VmHWM") - before) * 1024 // 12**4)
"""


@pytest.mark.parametrize("operator", ["wilson_normal", "clover_schur_normal"])
def test_the_estimate_is_above_what_is_measured_and_not_far(operator: str) -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE, operator], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    measured = int(done.stdout)
    estimate = judge_bytes(question(Spec(operator, (12, 12, 12, 12)))) / 12**4
    assert measured <= estimate <= 5 * measured, (operator, measured, estimate)


def test_the_estimate_grows_with_sites_and_columns() -> None:
    for operator, entry in OPERATORS.items():
        if entry["kind"] in ("builder", "chunk"):
            continue
        small, large = (question(Spec(operator, lattice)) for lattice in ((8, 8, 8, 8), (16, 8, 8, 8)))
        assert judge_bytes(large) == 2 * judge_bytes(small) and answer_bytes(large) == 2 * answer_bytes(small)
        # The links alone, drawn and kept.
        assert judge_bytes(small) > 2 * 576 * 8**4
    one, many = (question(Spec("wilson", (8, 8, 8, 8), batch=n)) for n in (1, 12))
    assert replay_bytes(many) - replay_bytes(one) >= 11 * 4 * 192 * 8**4 and answer_bytes(many) == 12 * answer_bytes(one)


def test_large_lattices_name_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_memory, "available", lambda: 64 * GIB)
    monkeypatch.setattr(judge_memory, "_room", lambda folder: 10 * GIB)
    large = Spec("wilson", (64, 64, 64, 64), batch=12)
    assert too_large(Spec("wilson", (8, 8, 8, 8))) is None and too_large(Spec("wilson", (64, 32, 32, 32))) is None
    said = str(too_large(large))
    assert said.startswith("too large for the judge (needs 4") and "this machine has 64.0 GiB" in said
    monkeypatch.setattr(judge_memory, "available", lambda: None)
    assert "36.0 GiB in " in str(too_large(large)) and "which has 10.0 GiB" in str(too_large(large))


@pytest.mark.parametrize("how", ["predicted", "numpy", "torch"])
def test_too_large_is_unchecked_packed_and_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    store = open_store(tmp_path / "store", create=True)
    checker = WitnessChecker(store)
    monkeypatch.setattr(judge_memory, "available", lambda: 1 << 16 if how == "predicted" else None)
    errors = {"numpy": MemoryError("Unable to allocate 9 GiB"), "torch": RuntimeError("DefaultCPUAllocator: not enough memory")}

    def short(spec: Spec) -> None:
        raise errors[how]

    monkeypatch.setattr(checker._judge, "make_witness", short)
    items, results = built(store, checker)
    record = results[0].record
    checker.close()
    assert results[0].outcome == "built" and record is not None and record["witness"] is None
    assert record["witness_status"].startswith("unchecked: too large for the judge (")
    packed = pack(store, packable(items), tmp_path / "x.lqcd", name="x", recipe={"name": "x", "sha256": "0" * 64})
    assert list(packed.unchecked.values()) == [record["witness_status"].removeprefix("unchecked: ")]
    with open_bundle(tmp_path / "x.lqcd") as bundle:
        (outcome,) = self_check.selfcheck(bundle)
    assert outcome.status == self_check.SKIPPED and outcome.reason == record["witness_status"]


def test_other_errors_of_the_judge_are_not_excused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not ran_out(RuntimeError("size mismatch"))
    store = open_store(tmp_path / "store", create=True)
    checker = WitnessChecker(store)

    def wrong(spec: Spec) -> None:
        raise RuntimeError("size mismatch")

    monkeypatch.setattr(checker._judge, "make_witness", wrong)
    with pytest.raises(RuntimeError, match="size mismatch"):
        checker.check(SPEC, {"target": str(this_host().best_target())}, b"", 5.0)
    checker.close()
    assert check.PASSED == "passed"


def test_selfcheck_skips_what_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "store", create=True)
    checker = WitnessChecker(store)
    items, results = built(store, checker)
    checker.close()
    assert results[0].record is not None and results[0].record["witness_status"] == "passed"
    pack(store, packable(items), tmp_path / "x.lqcd", name="x", recipe={"name": "x", "sha256": "0" * 64})
    monkeypatch.setattr(self_check, "available", lambda: 100)
    with open_bundle(tmp_path / "x.lqcd") as bundle:
        (outcome,) = self_check.selfcheck(bundle)
    assert outcome.status == self_check.SKIPPED and "its replay needs" in outcome.reason
