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
from lqcd_runtime.witness import Question, Witness, question, replay, summary
from lqcd_runtime.witness_bound import UNIT, bound_and_scale, diagonal_of, dirac, dirac_likely, loop_path
from lqcd_runtime.witness_rows import SAMPLES
from tests.made import record
from tests.numpy_wilson import dense_wilson

LATTICE = (4, 2, 3, 2)


def sparse_wilson(psi: Any, u: Any, asked: Question) -> Any:
    """In psi's own precision, gamma matrices by permutation: the stand-in artifact."""
    real = psi.real.dtype.type
    out = real(asked.inputs["mass"] + 1 + 3 * asked.ratio) * psi
    for mu in range(4):
        columns, values = list(GAMMA_COLUMN[mu]), np.array(GAMMA_VALUE[mu], psi.dtype)[:, None]
        v = np.moveaxis(u[..., mu, :, :] * real(asked.ratio if mu else 1), mu, 0)
        v[-1] *= psi.dtype.type(asked.phases[mu])
        v = np.moveaxis(v, 0, mu)
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
    return judged_of(asked)


def judged_of(asked: Question, **changes: Any) -> list[Any]:
    """The right answer, or that to another question."""
    u, diagonal = changes.pop("links", asked.links()), asked.inputs["mass"] + 1 + 3 * asked.ratio
    options = {"diagonal": diagonal, "phases": asked.phases, "ratio": asked.ratio, **changes}
    return [dense_wilson(psi, u, **options) for psi in asked.columns()]


def answers(asked: Question, dtype: str) -> list[Any]:
    kind = np.complex64 if dtype == "float32" else np.complex128
    u = asked.links().astype(kind)
    return [sparse_wilson(psi.astype(kind), u, asked) for psi in asked.columns()]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_right_artifacts_pass_and_rounding_is_really_there(asked: Question, judged: Any, dtype: str) -> None:
    witness = Witness.make(Spec("wilson", LATTICE, dtype, batch=3), summary(asked, judged))
    outcome = witness.compare(summary(asked, answers(asked, dtype)))
    assert outcome.passed and 0 < outcome.worst <= outcome.bound < 200 * UNIT[dtype]
    assert "within" in str(outcome)
    whole = witness.compare_whole(answers(asked, dtype), judged)
    assert whole.passed and UNIT[dtype] / 8 < whole.worst <= whole.bound


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


@pytest.mark.parametrize("factor", [1.0001, 1 + 2e-5])
def test_one_component_of_usual_size_is_found_by_the_whole_answer(asked: Question, judged: Any, factor: float) -> None:
    """One component of one column at one site, in float32: relative errors of a few hundred roundings."""
    witness = Witness.make(Spec("wilson", LATTICE, "float32", batch=3), summary(asked, judged))
    wrong = answers(asked, "float32")
    place = np.unravel_index(np.argsort(np.abs(wrong[1]), axis=None)[wrong[1].size // 2], wrong[1].shape)
    wrong[1][place] *= factor
    assert not witness.compare_whole(wrong, judged).passed


def test_another_mass_boundary_anisotropy_or_direction_is_found(asked: Question, judged: Any) -> None:
    witness = Witness.make(Spec("wilson", LATTICE, "float32", batch=3), summary(asked, judged))
    u, phases = asked.links(), asked.phases
    wrong: list[dict[str, Any]] = [
        {"diagonal": diagonal_of(asked.inputs, asked.ratio) + 1e-4},
        {"links": u.conj()},
        {"links": u[:, :, :, :, ::-1]},
        {"ratio": 1.0},
        *[{"phases": (*phases[:mu], phases[mu].conjugate(), *phases[mu + 1 :])} for mu in range(4)],
        {"phases": (-1, 1, 1, 1)},
    ]
    for change in wrong:
        assert not witness.compare(summary(asked, judged_of(asked, **change))).passed, change


def test_no_input_has_a_special_value_and_every_question_has_its_own() -> None:
    """What an artifact could ignore, or take a constant for, unseen: 0, 1, -1, round numbers, equal numbers."""
    specs = [Spec(o, lattice) for o in ("clover", "twisted", "stout_smear", "wilson_cg") for lattice in ("4x4x4x4", "4x4x4x8")]
    numbers: list[float] = []
    for asked in map(question, specs):
        numbers += [*asked.inputs.values(), *asked.anisotropy]
        for phase in asked.phases:
            assert abs(abs(phase) - 1) < 1e-14 and min(abs(phase.real), abs(phase.imag)) > 0.2
            numbers += [phase.real, phase.imag]
        assert len({(p.real > 0, p.imag > 0) for p in asked.phases}) == 4
    assert len(set(numbers)) == len(numbers)
    assert all(abs(1000 * x - round(1000 * x)) > 1e-9 for x in numbers)
    assert question(Spec("wilson", LATTICE, baked={"mass": 0.3})).anisotropy == (1.0, 1.0), "compiled in is 4 + m"


def test_stored_form_is_exact_canonical_and_bounded_in_size(asked: Question, judged: Any) -> None:
    spec = Spec("wilson", LATTICE, "float32", batch=3)
    witness = Witness.make(spec, summary(asked, judged))
    stored = witness.as_dict()
    again = Witness.from_dict(stored, spec)
    assert np.array_equal(again.rows, witness.rows) and again.bound == witness.bound and again.scale == witness.scale
    assert again.asked.inputs == asked.inputs and again.asked.phases == asked.phases
    assert again.asked.anisotropy == asked.anisotropy
    assert canonical_json(again.as_dict()) == canonical_json(stored)
    assert len(canonical_json(stored)) < 1000 + 3 * (asked.blocks + SAMPLES) * 16 * 4 / 3


@pytest.mark.parametrize("batch", [1, 12, 16, 17, 64])
def test_records_stay_small_whatever_the_batch(batch: int) -> None:
    asked = question(Spec("wilson", (16, 16, 16, 16), "float32", batch=batch))
    numbers = batch * 2 * (asked.blocks + SAMPLES)
    assert asked.blocks >= 12 and numbers * 8 * 4 / 3 < 50_000


def test_one_answer_serves_all_precisions_targets_and_cuts() -> None:
    base = Spec("wilson", LATTICE, "float64", batch=3)
    same = [base.replace(dtype="float32"), base.replace(fused=True), base.replace(shards=2), base.replace(batch=4)]
    other = [
        base.replace(operator="wilson_dagger"),
        base.replace(lattice=(4, 2, 3, 3)),
        base.replace(baked={"mass": 0.3}),
    ]
    assert {question(s).key for s in same} == {question(base).key}
    assert len({question(s).key for s in [base, *other]}) == 4
    assert question(other[2]).inputs["mass"] == 0.3


def test_inputs_are_the_same_on_every_machine(asked: Question) -> None:
    """Frozen numbers: a change of the generator would make every stored witness fail."""
    assert asked.links()[0, 0, 0, 0, 0, 0, 0] == complex(float.fromhex(LINK[0]), float.fromhex(LINK[1]))
    assert next(asked.columns())[0, 0, 0, 0, 0, 0] == complex(float.fromhex(SPINOR[0]), float.fromhex(SPINOR[1]))
    field = np.arange(48 * 12).reshape(*LATTICE, 4, 3) + 0j
    rows = summary(asked, [field] * 3)
    assert rows[0, :12:2].tolist() == BLOCKS and rows[0, 96::2].tolist() == SUMMARY[4:]
    first = question(Spec("wilson", LATTICE))
    first.blocks = 0  # version 1
    assert summary(first, [field])[0, ::2].tolist() == SUMMARY


LINK = ("0x1.cb45f7b4077c5p-2", "0x1.c398dc1309a98p-5")
SPINOR = ("-0x1.2f2189b077bb0p-2", "0x1.c8e3402b382b8p-2")
BLOCKS = [-34.0, -44.0, -82.0, 6.0, -334.0, -284.0]
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
    assert dirac_likely("wilson", {"mass": 0.1})[1] < scale / 4, "a component is smaller than the sum of absolute values"
    assert dirac("wilson_normal", {"mass": 0.1})[0] == 2 * dirac("wilson", {"mass": 0.1})[0]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"schema": "lqcd-aot/witness/v3"}, TooNewError),
        ({"schema": "lqcd-aot/witness/v1"}, CorruptError),
        ({"blocks": 0}, CorruptError),
        ({"blocks": 47}, CorruptError),
        ({"anisotropy": ["0x0p0", "0x1p0"]}, CorruptError),
        ({"anisotropy": ["0x1p0"]}, CorruptError),
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
