"""Links kept as two rows: the same operator, exact on the unit field, and no others than SU(3) links."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lqcd_runtime.geometry import volume
from lqcd_runtime.signature import TWO_ROWS, Spec
from lqcd_runtime.special_unitary import BOUND, deviation, not_in_group
from lqcd_runtime.target import this_host
from tests.contracts.dirac_artifact import COMPLEX, Factory
from tests.contracts.dirac_reference import Reference, random_fields

MASS, CSW, MU = 0.1, 1.3, 0.2
SCALARS = (4 + MASS, CSW, MU)
SCALE = (1.0, 0.7, 0.7, 0.8)
PHASE = (-1, 0.6 + 0.8j, 1j, 1)
BEST = this_host().best_target() or "x86-64-v2"
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
# Full, cut into slabs, odd extents, even-odd with and without lanes of both parities, every family.
CASES = [
    ("wilson_hop", (8, 4, 4, 4), "float64", {}),
    ("wilson", (5, 3, 4, 6), "float32", {}),
    ("wilson_normal", (4, 2, 5, 4), "float64", {"shards": 2}),
    ("wilson_dagger", (4, 2, 5, 4), "float32", {"batch": 3}),
    ("twisted_normal", (8, 4, 4, 4), "float32", {}),
    ("clover_dagger", (8, 4, 4, 4), "float64", {}),
    ("wilson_schur", (6, 6, 6, 6), "float32", {}),
    ("wilson_schur_dagger", (10, 6, 6, 6), "float64", {}),
    ("clover_schur_normal", (4, 6, 8, 10), "float32", {"batch": 2}),
]
SPECS = [Spec(op, lattice, d, storage=TWO_ROWS[d], **axes) for op, lattice, d, axes in CASES]
LOWER = Spec("wilson", (5, 3, 4, 6), "float32", storage="float32_12"), "x86-64-v2"
UNIT = [s for s in SPECS if s.operator in ("wilson_hop", "wilson_schur", "wilson_schur_dagger", "wilson_normal")]


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Factory:
    made = Factory(tmp_path_factory.mktemp("two_rows"))
    plain = [s.replace(storage=s.dtype) for s in UNIT]
    made.prepare([LOWER, *[(s, BEST) for s in (*SPECS, *plain, Spec("wilson_normal", (4, 2, 5, 4), storage="float64_12"))]])
    return made


def special(links: Any) -> Any:
    """U(3) to SU(3): one row turned by the determinant."""
    out = links.copy()
    out[..., 2, :] *= np.linalg.det(links).conj()[..., None]
    return out


def fields(spec: Spec) -> tuple[Any, Any]:
    links, psi = random_fields(spec.lattice, spec.batch)
    return special(links), psi


@pytest.mark.parametrize(("spec", "target"), [*[(s, BEST) for s in SPECS], LOWER], ids=str)
def test_agrees_with_the_naive_operator(factory: Factory, spec: Spec, target: str) -> None:
    """As for whole links, and 12 roundings more a sweep: two rows, two sums of four products, a factor."""
    links, psi = fields(spec)
    expected = Reference(links, mass=MASS, csw=CSW, mu=MU, scale=SCALE, phase=PHASE).apply(spec.operator, psi)
    found = factory.load(spec, target).run(links, psi, SCALARS, SCALE, PHASE)
    depth = 47 * (2 if "normal" in spec.operator else 1) + (200 if "clover_schur" in spec.operator else 0)
    assert np.linalg.norm(found - expected) <= depth * EPSILON[spec.dtype] * np.linalg.norm(expected)


@pytest.mark.parametrize("spec", UNIT, ids=str)
def test_the_unit_field_comes_back_exactly(factory: Factory, spec: Spec) -> None:
    """Signs and powers of i at the boundary, powers of two as anisotropy: not one bit differs from whole links."""
    _, psi = fields(spec)
    links = np.broadcast_to(np.eye(3), (*spec.lattice, 4, 3, 3)).astype(complex)
    phase, scale = (-1, 1j, -1j, 1), (1.0, 0.5, 2.0, 1.0)
    two, whole = (factory.load(s, BEST).run(links, psi, SCALARS, scale, phase) for s in (spec, spec.replace(storage=spec.dtype)))
    assert np.abs(whole).max() > 0.1 and (two == whole).all()


def test_same_bits_in_slabs_and_for_any_thread_count(factory: Factory) -> None:
    slabs = next(s for s in SPECS if s.shards == 2)
    links, psi = fields(slabs)
    one, two = (factory.load(s, BEST) for s in (slabs.replace(shards=1), slabs))
    results = {a.run(links, psi, SCALARS, SCALE, PHASE, threads).tobytes() for a in (one, two) for threads in (1, 3)}
    assert len(results) == 1


def test_a_third_of_the_links_is_saved(factory: Factory) -> None:
    """12 of 18 reals; behind them two vectors for every outer coordinate of the four directions."""
    spec = SPECS[0]
    artifact, whole = factory.load(spec, BEST), factory.load(spec.replace(storage="float64"), BEST)
    assert artifact.layout != whole.layout
    links, factors = volume(spec.lattice) * 4 * 12 * 8, 2 * sum(spec.lattice) * 64
    assert links < artifact.library.lqcd_bytes(0) <= links + factors
    assert whole.library.lqcd_bytes(0) == volume(spec.lattice) * 4 * 18 * 8


def status(artifact: Any, links: Any) -> int:
    """Of lqcd_pack_gauge."""
    links = np.ascontiguousarray(links, COMPLEX[artifact.spec.dtype])
    numbers = np.array([1.0] * 4), np.array([1.0] * 4, complex).view(float)
    buffer = artifact.buffer(0)
    addresses = (n.ctypes.data for n in numbers)
    return int(artifact.library.lqcd_pack_gauge(buffer.ctypes.data, links.ctypes.data, 0, *addresses, None))


@pytest.mark.parametrize("spec", [SPECS[0], SPECS[1]], ids=str)
@pytest.mark.parametrize("what", ["a row longer", "rows not orthogonal", "the third row", "its phase"])
def test_links_off_the_group_by_more_than_rounding_are_refused(factory: Factory, spec: Spec, what: str) -> None:
    """Artifact and runtime measure the same: both accept half the bound and refuse twice the bound, at one link of all."""
    artifact, unit = factory.load(spec, BEST), EPSILON[spec.dtype] / 2
    for share in (0.5, 2.0):
        links, step = fields(spec)[0], share * BOUND * unit
        bad = links[3, 1, 2, 1, 2]
        row = {"a row longer": 1, "rows not orthogonal": 1}.get(what, 2)
        change = {"a row longer": bad[1] * step / 2, "rows not orthogonal": bad[0] * step}.get(what)
        if change is None:
            change = np.eye(3)[0] * step if what == "the third row" else bad[2] * (1j * step / np.abs(bad[2]).max())
        bad[row] = bad[row] + change
        rounded = np.ascontiguousarray(links, COMPLEX[spec.dtype])
        assert status(artifact, links) == (3 if share > 1 else 0)
        assert (deviation(rounded)[3, 1, 2, 1, 2] > BOUND * unit) == (share > 1)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_not_in_the_group(factory: Factory, value: float) -> None:
    links = fields(SPECS[0])[0]
    links[1, 2, 3, 0, 1, 0, 0] = value
    assert status(factory.load(SPECS[0], BEST), links) == 3
    assert "(t,z,y,x)=(1,2,3,0) direction Z" in str(not_in_group(links, "a", "float64_12"))


def test_the_refusal_names_the_worst_link_and_the_bound() -> None:
    links = special(random_fields((2, 2, 2, 4), 1)[0])
    links[0, 1, 0, 3, 1] *= 1.0001
    links[1, 0, 1, 2, 3, 2] *= 1j
    text = str(not_in_group(links, "wilson@x", "float64_12"))
    assert "(t,z,y,x)=(1,0,1,2) direction X" in text and "2 of 128 links" in text and f"{BOUND * 2.0**-53:.2g}" in text
    assert "artifact wilson@x:" in text and "storage float64 keeps" in text and "float32_12" in text
