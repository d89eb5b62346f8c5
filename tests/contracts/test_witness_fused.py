"""The bound of fused operators: its count of roundings against the blocks themselves, against chance, against artifacts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lqcd_aot.build.witness import Judge
from lqcd_runtime.bundle import open_bundle
from lqcd_runtime.conventions import gamma_matrices
from lqcd_runtime.fields import random_links
from lqcd_runtime.operator_choice import builder_entry
from lqcd_runtime.replay import runs
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host
from lqcd_runtime.witness import Witness, question, replay
from lqcd_runtime.witness_bound import UNIT, dirac, dirac_likely, fused_sum
from tests.contracts.dirac_artifact import Factory
from tests.made import bundle_bytes, record

LATTICE = (4, 4, 4, 4)
RATIOS = (1.0, 0.7, 0.3)


def terms() -> np.ndarray:
    """Entries that are not zero of each row of the eight blocks (1 -/+ gamma_mu) x U, made by multiplication: [8, 12]."""
    u = random_links((2, 2, 2, 2), 3).reshape(-1, 3, 3)[:8]
    signed = [(1 - 2 * (d % 2)) * gamma_matrices()[d // 2] for d in range(8)]
    return np.array([np.count_nonzero(np.kron(np.eye(4) - g, link), axis=1) for g, link in zip(signed, u, strict=True)])


def test_every_row_of_every_block_has_six_entries() -> None:
    assert (terms() == 6).all()
    additions = int(terms()[:, 0].sum()) * 2
    # link, phase and scale (3), spinor, product, the additions after the first, diagonal (2)
    assert dirac("wilson", {"mass": 0.1}, fused=True)[0] == 1 + 3 + 1 + 1 + (additions - 1) + 2 == 103
    assert dirac("wilson_normal", {"mass": 0.1}, fused=True)[0] == 2 * 103
    assert dirac("wilson", {"mass": 0.1}, fused=True)[1] == dirac("wilson", {"mass": 0.1})[1]


@pytest.mark.parametrize("ratio", RATIOS)
def test_partial_sums_grow_as_they_do_by_chance(ratio: float) -> None:
    """96 terms drawn, T first: the mean of squares of partial sums over that of the whole; 40,000 draws know it to a per cent."""
    draws = np.random.default_rng(5).normal(size=(40_000, 96)) * np.repeat([1.0, ratio], [24, 72])
    squares = np.mean(np.cumsum(draws, axis=1) ** 2, axis=0)
    assert fused_sum(ratio) == pytest.approx(squares[1:].sum() / squares[-1], rel=0.03)
    if ratio == 1.0:
        assert fused_sum(ratio) == pytest.approx(97 / 2 - 1 / 96, abs=1e-12)
        eights, size = dirac_likely("wilson_hop", {}, fused=True)
        assert eights == pytest.approx(8 * np.sqrt(8 + fused_sum(1.0))) and size == dirac_likely("wilson_hop", {})[1]


@pytest.mark.parametrize("ratio", RATIOS)
def test_a_sum_of_96_products_in_single_precision_keeps_to_its_count(ratio: float) -> None:
    """Products and additions one by one, as the entry point without fused multiply-add does them."""
    rng = np.random.default_rng(7)
    scale = np.repeat([1.0, ratio], [24, 72])
    u, psi = (rng.uniform(-1, 1, size=(96, 20_000)).astype(np.float32) for _ in range(2))
    u = (u * scale[:, None]).astype(np.float32)
    total = np.zeros(u.shape[1], np.float32)
    for a, b in zip(u, psi, strict=True):
        total = total + a * b
    exact = np.sum(u.astype(np.float64) * psi, axis=0)
    unit, size = UNIT["float32"], np.sqrt(np.mean(exact**2))
    error = np.sqrt(np.mean((total - exact) ** 2)) / (unit * size)
    # A rounding is at most u of its partial sum, in the mean about half of that.
    assert 0.3 * np.sqrt(1 + fused_sum(ratio)) < error < np.sqrt(1 + fused_sum(ratio))
    assert np.abs(total - exact).max() <= 8 * np.sqrt(1 + fused_sum(ratio)) * unit * size


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fused")
    target = this_host().best_target()
    assert target is not None
    plain = Spec("wilson", LATTICE, "float32", batch=2)
    fused = [plain.replace(operator=word, fused=True) for word in ("wilson", "wilson_normal")]
    specs = [plain, *fused, Spec("wilson_blocks", LATTICE, "float32")]
    factory, judge = Factory(folder), Judge()
    factory.prepare([(s, target) for s in specs])
    codes = {s: factory.path(s, target).read_bytes() for s in specs}
    made = [record(s, target, code, judge.make_witness(s)) for s, code in codes.items()]
    (folder / "x.lqcd").write_bytes(bundle_bytes(made, codes.values()))
    return folder / "x.lqcd"


def test_artifacts_stay_within_the_count_and_fused_ones_need_theirs(path: Path) -> None:
    errors = {}
    with open_bundle(path) as bundle:
        for entry in bundle.entries():
            spec = entry.spec
            if spec.kind == "builder":
                continue
            artifact, builder = bundle.load(entry), bundle.load(builder_entry(bundle, entry)) if spec.fused else None
            outcome = replay(entry, artifact, builder)
            assert outcome.passed, str(outcome)
            asked, witness = question(spec), Witness.from_dict(entry.witness or {}, spec)
            assert witness.bound == pytest.approx(
                dirac_likely(spec.operator, asked.inputs, asked.ratio, fused=spec.fused)[0] * UNIT["float32"], rel=1e-6
            )  # fmt: skip
            judge = Judge()
            (answers,) = runs(asked, entry, artifact, builder, [1])
            with judge.whole(spec) as whole:
                assert whole is not None
                right = np.memmap(whole["path"], np.complex128, "r", shape=(2, *LATTICE, 4, 3))
                off = (np.array(answers) - right).reshape(-1).view("f8")
            errors[spec.operator, spec.fused] = float(np.sqrt(np.mean(off**2))) / (UNIT["float32"] * witness.scale)
    # One standard deviation: below the count's square root by the factor a rounding is below u in the mean.
    for (operator, fused), error in errors.items():
        asked = question(Spec(operator, LATTICE, "float32", batch=2))
        assert error < dirac_likely(operator, asked.inputs, asked.ratio, fused=fused)[0] / 8
    assert errors["wilson", True] > 1.2 * errors["wilson", False]
