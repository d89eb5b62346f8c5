"""Witnesses: exact storage, a bound that real rounding stays below and that real mistakes exceed.

The stand-in for an artifact is a numpy hop in the precision asked for; the judge is the same formula written with dense gamma
matrices in complex128.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lqcd_runtime.conventions import GAMMA_COLUMN, GAMMA_VALUE, gamma_matrices
from lqcd_runtime.digest import canonical_json
from lqcd_runtime.errors import CorruptError, LqcdError, TooNewError, UsageError
from lqcd_runtime.geometry import parity
from lqcd_runtime.manifest import Entry, entry_dict
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.witness import PHASES, PROJECTIONS, SAMPLES, Question, Witness, question, replay, summary
from lqcd_runtime.witness_bound import UNIT, bound_and_scale, dirac, loop_path
from tests.made import record
from tests.numpy_wilson import dense_wilson

LATTICE = (4, 2, 3, 2)


def sparse_wilson(psi: Any, u: Any, mass: float) -> Any:
    """In psi's own precision, gamma matrices by permutation: the stand-in artifact."""
    real = psi.real.dtype.type
    out = real(4 + mass) * psi
    for mu in range(4):
        columns, values = list(GAMMA_COLUMN[mu]), np.array(GAMMA_VALUE[mu], psi.dtype)[:, None]
        v = u[..., mu, :, :].copy()
        if mu == 0:
            v[-1] *= real(-1)
        ahead = np.roll(psi, -1, mu)
        ahead = np.einsum("...ab,...sb->...sa", v, ahead - values * ahead[..., columns, :])
        behind = psi + values * psi[..., columns, :]
        behind = np.roll(np.einsum("...ba,...sb->...sa", v.conj(), behind), 1, mu)
        out = out - real(0.5) * (ahead + behind)
    assert out.dtype == psi.dtype
    return out


@pytest.fixture(scope="module")
def asked() -> Question:
    return question(Spec("wilson", LATTICE, "float64", batch=3))


@pytest.fixture(scope="module")
def judged(asked: Question) -> Any:
    u = asked.links()
    return [dense_wilson(psi, u, 4 + asked.inputs["mass"]) for psi in asked.columns()]


def answers(asked: Question, dtype: str) -> list[Any]:
    kind = np.complex64 if dtype == "float32" else np.complex128
    u = asked.links().astype(kind)
    return [sparse_wilson(psi.astype(kind), u, asked.inputs["mass"]) for psi in asked.columns()]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_right_artifacts_pass_and_rounding_is_really_there(asked: Question, judged: Any, dtype: str) -> None:
    witness = Witness.make(Spec("wilson", LATTICE, dtype, batch=3), summary(asked, judged))
    outcome = witness.compare(summary(asked, answers(asked, dtype)))
    assert outcome.passed and 0 < outcome.worst <= outcome.bound < 200 * UNIT[dtype]
    assert "within" in str(outcome)


def mistakes() -> dict[str, Any]:
    """Things that go wrong in real kernels, as changes of a right answer."""

    def one_site(out: list[Any]) -> None:
        out[1][3, 1, 2, 1, 2, 1] += 0.1

    def one_column(out: list[Any]) -> None:
        out[2] = out[1]

    def a_sign(out: list[Any]) -> None:
        out[0][..., 3, :] *= -1

    def nan(out: list[Any]) -> None:
        out[0][2, 0, 0, 0, 0, 0] = np.nan

    def a_slab(out: list[Any]) -> None:
        out[0][-1] = np.roll(out[0][-1], 1, 0)

    def little_too_large(out: list[Any]) -> None:
        for column in out:
            column *= 1 + 2e-4

    return {f.__name__: f for f in (one_site, one_column, a_sign, nan, a_slab, little_too_large)}


@pytest.mark.parametrize("mistake", mistakes())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mistakes_are_found_in_either_precision(asked: Question, judged: Any, dtype: str, mistake: str) -> None:
    witness = Witness.make(Spec("wilson", LATTICE, dtype, batch=3), summary(asked, judged))
    wrong = answers(asked, dtype)
    mistakes()[mistake](wrong)
    outcome = witness.compare(summary(asked, wrong))
    assert not outcome.passed and "exceeds" in str(outcome)


def test_another_mass_boundary_or_direction_is_found(asked: Question, judged: Any) -> None:
    witness = Witness.make(Spec("wilson", LATTICE, "float32", batch=3), summary(asked, judged))
    u = asked.links()
    for mass, links in (
        (asked.inputs["mass"] + 1e-3, u),
        (asked.inputs["mass"], u.conj()),
        (asked.inputs["mass"], u[:, :, :, :, ::-1]),
    ):
        wrong = [dense_wilson(psi, links, 4 + mass) for psi in asked.columns()]
        assert not witness.compare(summary(asked, wrong)).passed


def test_stored_form_is_exact_canonical_and_bounded_in_size(asked: Question, judged: Any) -> None:
    spec = Spec("wilson", LATTICE, "float32", batch=3)
    witness = Witness.make(spec, summary(asked, judged))
    stored = witness.as_dict()
    again = Witness.from_dict(stored, spec)
    assert np.array_equal(again.rows, witness.rows) and again.bound == witness.bound and again.scale == witness.scale
    assert again.asked.inputs == asked.inputs and again.asked.phases == PHASES
    assert canonical_json(again.as_dict()) == canonical_json(stored)
    assert len(canonical_json(stored)) < 500 + 3 * (PROJECTIONS + SAMPLES) * 2 * 16 + 100


def test_one_answer_serves_all_precisions_targets_and_cuts() -> None:
    base = Spec("wilson", LATTICE, "float64", batch=3)
    same = [base.replace(dtype="float32"), base.replace(fused=True), base.replace(shards=2)]
    other = [
        base.replace(batch=4),
        base.replace(operator="wilson_dagger"),
        base.replace(lattice=(4, 2, 3, 3)),
        base.replace(baked={"mass": 0.3}),
    ]
    assert {question(s).key for s in same} == {question(base).key}
    assert len({question(s).key for s in [base, *other]}) == 5
    assert question(other[3]).inputs["mass"] == 0.3


def test_inputs_are_the_same_on_every_machine(asked: Question) -> None:
    """Frozen numbers: a change of the generator would make every stored witness fail."""
    assert asked.links()[0, 0, 0, 0, 0, 0, 0] == complex(float.fromhex(LINK[0]), float.fromhex(LINK[1]))
    assert next(asked.columns())[0, 0, 0, 0, 0, 0] == complex(float.fromhex(SPINOR[0]), float.fromhex(SPINOR[1]))
    rows = summary(asked, [np.arange(48 * 12).reshape(*LATTICE, 4, 3) + 0j] * 3)
    assert rows[0, ::2].tolist() == SUMMARY


LINK = ("0x1.cb45f7b4077c5p-2", "0x1.c398dc1309a98p-5")
SPINOR = ("-0x1.2f2189b077bb0p-2", "0x1.c8e3402b382b8p-2")
SUMMARY = [
    -9668.0,
    -6620.0,
    -5122.0,
    -2722.0,
    0.0,
    243.0,
    16.0,
    485.0,
    412.0,
    72.0,
    310.0,
    558.0,
    31.0,
    441.0,
    399.0,
    441.0,
    126.0,
    468.0,
    26.0,
    575.0,
]


def test_even_odd_operators_are_asked_on_even_sites_only() -> None:
    asked = question(Spec("wilson_schur", (2, 2, 4, 2), "float64"))
    psi = next(asked.columns())
    assert not psi[parity((2, 2, 4, 2)) == 1].any() and (psi[parity((2, 2, 4, 2)) == 0] != 0).all()


@pytest.mark.parametrize("operator", [name for name, o in OPERATORS.items() if o["kind"] in ("dirac", "observable", "gauge_map")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_operator_has_a_finite_bound_that_follows_the_precision(operator: str, dtype: str) -> None:
    asked = question(Spec(operator, (8, 8, 8, 8), dtype))
    bound, scale = bound_and_scale(asked.kind, operator, (8, 8, 8, 8), asked.inputs, dtype)
    assert 20 * UNIT[dtype] < bound < 10_000 * UNIT[dtype] and 0 < scale < math.inf


def test_growth_factors_hold_for_absolute_values() -> None:
    """The derivation says: no component of |hop| |psi| exceeds 8 sqrt(3) a. Seen with absolute values of random links."""
    asked = question(Spec("wilson_hop", (4, 4, 4, 4), "float64"))
    u, psi = np.abs(asked.links()), np.abs(next(asked.columns()))
    total = np.zeros_like(psi)
    gamma = np.abs(gamma_matrices()) + np.eye(4)
    for mu in range(4):
        v = u[..., mu, :, :]
        hops = np.einsum("...ab,...sb->...sa", v, np.roll(psi, -1, mu)), np.roll(np.einsum("...ba,...sb->...sa", v, psi), 1, mu)
        total += 0.5 * np.einsum("st,...ta->...sa", gamma[mu], hops[0] + hops[1])
    _, scale = dirac("wilson_hop", {})
    assert scale / 4 < total.max() <= scale
    assert loop_path(1) == 4 and loop_path(4) == 40
    assert dirac("wilson_normal", {"mass": 0.1})[0] == 2 * dirac("wilson", {"mass": 0.1})[0]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"schema": "lqcd-aot/witness/v2"}, TooNewError),
        ({"schema": "x"}, CorruptError),
        ({"rows": []}, CorruptError),
        ({"rows": ["zz"]}, CorruptError),
        ({"rows": None}, CorruptError),
        ({"inputs": {}}, CorruptError),
        ({"inputs": {"mass": 0.1}}, CorruptError),
        ({"phases": [["0x1p0", "0x0p0"]]}, CorruptError),
        ({"kind": "observable"}, CorruptError),
        ({"bound": "much"}, CorruptError),
    ],
)
def test_damaged_witnesses_are_clean_errors(asked: Question, judged: Any, change: dict[str, Any], error: type[LqcdError]) -> None:
    spec = Spec("wilson", LATTICE, "float64", batch=3)
    stored = Witness.make(spec, summary(asked, judged)).as_dict()
    with pytest.raises(error):
        Witness.from_dict({**stored, **change}, spec)


def test_unusable_judgements_and_entries_are_refused(asked: Question, judged: Any) -> None:
    spec = Spec("wilson", LATTICE, "float64", batch=3)
    rows = summary(asked, judged)
    for bad in (None, rows[:2], np.full_like(rows, np.nan)):
        with pytest.raises(UsageError, match="judged rows"):
            Witness.make(spec, bad)
    assert Witness.make(Spec("wilson_blocks", LATTICE), None).as_dict()["rows"] == []
    entry = Entry.from_dict(entry_dict(record(spec, "x86-64-v2")), "made")
    with pytest.raises(UsageError, match="none to replay"):
        replay(entry, None)  # type: ignore[arg-type]
