"""Fresh machine code meets its witness: right numbers pass; wrong ones, crashes, hangs and lies fail one variant and no build."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lqcd_aot.build.answers import opened
from lqcd_aot.build.check import PASSED, WitnessChecker, builder_spec
from lqcd_aot.build.execute import build
from lqcd_aot.build.job import new_record
from lqcd_aot.build.plan import PlanItem, plan
from lqcd_aot.build.witness import Judge
from lqcd_aot.compilers import FakeToolchain, find_toolchain
from lqcd_aot.program import Program
from lqcd_aot.recipe.variant import Variant
from lqcd_aot.store import Store, open_store
from lqcd_runtime.bundle import open_bundle
from lqcd_runtime.errors import CompileError, WitnessMismatch
from lqcd_runtime.self_check import exit_code as self_check_exit_code
from lqcd_runtime.self_check import selfcheck
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host
from lqcd_runtime.witness import Witness
from tests.crash.fake_build import planned

LATTICE = (2, 3, 2, 4)
SECONDS = 5.0

# An artifact of the observable kind, written by hand: what it answers is BODY.
BY_HAND = """
#define OUT extern "C" __attribute__((visibility("default")))
extern "C" int puts(const char*);
OUT int lqcd_abi() { return 1; }
OUT const char* lqcd_identity() { return LQCD_IDENTITY; }
OUT void* lqcd_pool_new(int) { return 0; }
OUT void lqcd_pool_free(void*) {}
OUT unsigned long long lqcd_bytes(int) { return 0; }
OUT int lqcd_observe(double* results, const void*, const double*, void*, void*) {
  volatile int one = 1;
  for (int i = 0; i < 6; ++i) results[i] = 0.0;
  BODY
  return 0;
}
"""
BODIES = {
    "wrong numbers": ("", "exceeds"),
    "not a number": ("results[3] = 0.0 / (one - 1);", "inf exceeds"),
    "a crash": ("*(volatile int*)(long)(one - 1) = 1;", "crashed with signal 11 (SIGSEGV)"),
    "an abort": ("__builtin_trap();", "crashed with signal 4 (SIGILL)"),
    "a hang": ("while (one) {}", "did not answer within 5 s"),
    "a forged answer": ('puts("{\\"passed\\": true, \\"text\\": \\"all is well\\"}");', "exceeds"),
    "a refusal": ("return 2;", "refused its arguments"),
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


@pytest.fixture
def checker(store: Store) -> Iterator[WitnessChecker]:
    made = WitnessChecker(store)
    yield made
    made.close()


def item_of(spec: Spec, store: Store, target: str | None = None) -> PlanItem:
    host = this_host().best_target()
    assert host is not None
    return planned([Variant(spec, target or host)], store, FakeToolchain())[0]


def compiled(body: str, item: PlanItem) -> bytes:
    text = BY_HAND.replace("BODY", body)
    program = Program((("hand.cpp", text),), (("LQCD_IDENTITY", f'"{item.variant.name}"'),), "hand.cpp")
    return find_toolchain().compile(program, item.variant.target, timeout=60.0)


def test_every_way_to_be_wrong_is_a_mismatch_and_the_next_artifact_is_checked_all_the_same(
    store: Store, checker: WitnessChecker
) -> None:
    item = item_of(Spec("plaquette", LATTICE), store)
    spec = item.variant.spec
    for name, (body, says) in BODIES.items():
        code = compiled(body, item)
        with pytest.raises(WitnessMismatch) as caught:
            checker.check(spec, new_record(item, code, compile_ms=1), code, SECONDS)
        assert says in str(caught.value.found), name
        assert item.variant.name in caught.value.fact
        assert caught.value.exit_code == 21
    (planes,) = Judge().rows(spec)  # type: ignore[misc]
    right = "".join(f"results[{i}] = {value.hex()};" for i, value in enumerate(planes))
    code = compiled(right, item)
    assert checker.check(spec, new_record(item, code, compile_ms=1), code, SECONDS).status == PASSED


def test_an_interrupted_check_says_nothing_of_the_artifact(store: Store, checker: WitnessChecker) -> None:
    item = item_of(Spec("plaquette", LATTICE), store)
    code = compiled("while (one) {}", item)
    stop = threading.Timer(2.0, checker.interrupt)
    stop.start()
    for _ in range(2):  # the one under way, and whatever would come after it
        with pytest.raises(CompileError, match="its check was interrupted") as caught:
            checker.check(item.variant.spec, new_record(item, code, compile_ms=1), code, 60.0)
        assert caught.value.failure_class == "interrupted" and item.variant.name in caught.value.fact
    stop.join()


def test_a_damaged_artifact_of_a_store_fails_and_the_others_are_checked(store: Store) -> None:
    host = this_host().best_target()
    assert host is not None
    toolchain = find_toolchain()
    variants = [Variant(Spec("plaquette", LATTICE, dtype), host) for dtype in ("float32", "float64")]
    results = build(plan(variants, store, toolchain), store, toolchain)
    assert results[0].record is not None
    digest = results[0].record["outputs"]["code"]["sha256"]
    blob = Path(store.root) / "blobs" / "sha256" / digest[:2] / digest
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 1
    blob.chmod(0o644)
    blob.write_bytes(data)
    with open_bundle(str(store.root)) as opened:
        checks = {c.name.partition("@")[0]: c for c in selfcheck(opened)}
    damaged, sound = checks[variants[0].spec.name], checks[variants[1].spec.name]
    assert (damaged.status, sound.status) == ("failed", "passed")
    assert "does not match its name" in damaged.reason
    assert self_check_exit_code(list(checks.values())) == 12


def test_bytes_that_cannot_be_loaded_and_another_artifacts_bytes_are_mismatches(store: Store, checker: WitnessChecker) -> None:
    item, other = item_of(Spec("plaquette", LATTICE), store), item_of(Spec("plaquette", LATTICE, "float32"), store)
    for code, says in [(b"\x7fELF but no more", "cannot be loaded"), (compiled("", other), "is mislabelled")]:
        with pytest.raises(WitnessMismatch) as caught:
            checker.check(item.variant.spec, new_record(item, code, compile_ms=1), code, SECONDS)
        assert says in str(caught.value.found)


def test_an_artifact_for_another_machine_keeps_its_witness_for_later(store: Store, checker: WitnessChecker) -> None:
    foreign = "aarch64" if this_host().architecture == "x86_64" else "x86-64-v2"
    item = item_of(Spec("plaquette", LATTICE), store, foreign)
    checked = checker.check(item.variant.spec, new_record(item, b"code", compile_ms=1), b"code", SECONDS)
    assert checked.status.startswith("unchecked: needs ")
    assert checked.witness is not None
    assert Witness.from_dict(checked.witness, item.variant.spec).rows.shape == (1, 6)


def test_real_artifacts_of_every_kind_pass_from_recipe_to_store(store: Store) -> None:
    """Dirac, fused with its builder, observable, gauge map: built, judged, replayed, published."""
    host = this_host().best_target()
    assert host is not None
    specs = [
        Spec("wilson", LATTICE, "float32", batch=4, fused=True),
        Spec("wilson_blocks", LATTICE, "float32"),
        Spec("wilson_normal", LATTICE, batch=2),
        Spec("wilson_action", LATTICE),
        Spec("stout_smear", LATTICE),
    ]
    toolchain = find_toolchain()
    variants = [Variant(spec, host) for spec in specs]
    results = build(plan(variants, store, toolchain), store, toolchain, jobs=2)
    assert [r.outcome for r in results] == ["built"] * 5, [str(r.error) for r in results]
    status = [r.record["witness_status"] for r in results if r.record]
    assert status == [PASSED, "unchecked: judged by the fused operators that use its blocks", PASSED, PASSED, PASSED]
    assert builder_spec(specs[0]) == specs[1]
    again = plan(variants, store, toolchain)
    assert {i.decision for i in again} == {"reuse"}


def test_a_fused_operator_without_its_builder_is_unchecked_and_says_why(store: Store, checker: WitnessChecker) -> None:
    item = item_of(Spec("wilson", LATTICE, fused=True), store)
    checked = checker.check(item.variant.spec, new_record(item, b"code", compile_ms=1), b"code", SECONDS)
    assert checked.status.startswith("unchecked: no wilson_blocks-2x3x2x4-f64@")


def test_judged_answers_are_shared_by_dtype_batch_fused_shards_and_target() -> None:
    judge = Judge()
    one = judge.rows(Spec("wilson", LATTICE, batch=1))
    assert one is not None
    many = judge.rows(Spec("wilson", LATTICE, "float32", batch=5, fused=True, shards=2))
    assert many is not None
    assert many.shape[0] == 5
    assert np.array_equal(many[:1], one), "column j of a batch is the same question whatever the batch"
    fresh = Judge().rows(Spec("wilson", LATTICE, batch=5))
    assert fresh is not None
    # Two orders of summation inside torch may differ by rounding; 5 columns at once or 1 + 4.
    assert np.allclose(many, fresh, rtol=0, atol=1e-12 * np.abs(fresh).max())
    assert judge.rows(Spec("wilson", LATTICE, batch=3)) is not None
    assert len(judge._rows) == 1
    baked = judge.rows(Spec("wilson", LATTICE, batch=1, baked={"mass": 0.7}))
    assert baked is not None
    assert not np.allclose(baked, one)
    assert judge.rows(Spec("wilson_blocks", LATTICE)) is None
    judge.close()


def test_whole_answers_are_given_up_beyond_a_limit_and_judged_again() -> None:
    """Room for one of them; the one in use stays, and rows are never judged twice."""
    spec, other = Spec("wilson", LATTICE, batch=2), Spec("wilson_dagger", LATTICE)
    judge = Judge(kept_bytes=48 * 12 * 16 * 2)
    with judge.whole(spec) as first:
        assert first is not None
        before = np.array(opened(first["path"], tuple(first["shape"]), first["columns"]))
        with judge.whole(other):
            assert len(judge._answers) == 2
            assert np.array_equal(opened(first["path"], tuple(first["shape"]), 2), before)
    with judge.whole(Spec("wilson_hop", LATTICE)):
        assert len(judge._answers) == 2, "the hop and the adjoint fit"
    with judge.whole(spec) as again:
        assert again is not None
        assert np.array_equal(opened(again["path"], tuple(again["shape"]), 2), before)
    with judge.whole(Spec("plaquette", LATTICE)) as nothing:
        assert nothing is None
    judge.close()
