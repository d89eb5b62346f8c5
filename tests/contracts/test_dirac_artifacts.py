"""Every dirac artifact computes what the conventions say, on any lattice, in any layout, bit for bit the same in parallel."""

from __future__ import annotations

import numpy as np
import pytest

from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.target import this_host
from tests.contracts.dirac_artifact import Factory
from tests.contracts.dirac_reference import Reference, random_fields

MASS, CSW, MU = 0.1, 1.3, 0.2
SCALARS = (4 + MASS, CSW, MU)
SCALE = (1.0, 0.7, 0.7, 0.8)  # no two directions may be exchanged unseen
PHASE = (-1, 0.6 + 0.8j, 1j, 1)
BEST = this_host().best_target() or "x86-64-v2"
WILSON = ("wilson_hop", "wilson", "wilson_dagger", "wilson_normal")
DIRAC = [name for name, row in OPERATORS.items() if row["kind"] == "dirac"]
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}


def case(operator: str, lattice: tuple[int, ...], dtype: str = "float64", target: str = BEST, **axes: object) -> tuple[Spec, str]:
    return Spec(operator, lattice, dtype, **axes), target  # type: ignore[arg-type]


# Every operator at least in both dtypes; every lattice shape, batch, shard count and target at least once.
CASES = [
    *[case(op, (8, 4, 4, 4), "float64") for op in DIRAC],
    *[case(op, (4, 4, 4, 4), "float32", batch=2) for op in DIRAC],
    *[case(op, (5, 3, 4, 6), batch=2) for op in ("wilson", "wilson_normal", "clover", "twisted_normal")],
    *[case(op, (8, 6, 4, 2), "float32") for op in ("wilson_dagger", "clover_schur", "clover")],
    *[case(op, (2, 2, 2, 2), target="x86-64-v2") for op in ("wilson_normal", "clover_normal", "clover_schur_normal")],
    *[case("wilson_normal", (3, 3, 3, 3), dtype) for dtype in ("float32", "float64")],
    *[case("wilson", (4, 4, 4, 4), "float32", "x86-64-v2", batch=b) for b in (1, 8, 16)],
    *[case("wilson", (4, 4, 4, 4), "float64", batch=b) for b in (4, 12)],
    *[case("wilson_hop", (6, 6, 2, 10), dtype) for dtype in ("float32", "float64")],
    *[case(op, (4, 4, 4, 4), "float64", shards=2) for op in ("wilson", "wilson_normal", "clover_normal", "twisted")],
    *[case(op, (4, 2, 5, 4), "float64", shards=4, batch=2) for op in ("wilson_dagger", "wilson_normal")],
    *[case(op, (4, 4, 4, 4), "float64", fused=True, batch=3) for op in WILSON],
    *[case("wilson_normal", (4, 3, 2, 6), "float32", fused=True, shards=s) for s in (1, 2)],
    *[case(op, (12, 12, 12, 12)) for op in ("wilson", "wilson_schur")],  # too large for eight links a site
    case("wilson_normal", (12, 12, 12, 12), shards=3),
]  # fmt: skip
UNIQUE = list(dict.fromkeys(CASES))


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Factory:
    made = Factory(tmp_path_factory.mktemp("artifacts"))
    made.prepare([*UNIQUE, *[(s, t) for pair in SAME_BITS for s, t in pair]])
    return made


def runnable(target: str) -> None:
    reason = this_host().refusal(target)
    if reason:
        pytest.skip(reason)


@pytest.mark.parametrize(("spec", "target"), UNIQUE, ids=lambda v: v.name if isinstance(v, Spec) else v)
def test_agrees_with_the_naive_operator(factory: Factory, spec: Spec, target: str) -> None:
    """||artifact - naive|| <= depth eps ||naive||: depth counts roundings on the longest path, ~35 a hop, 100 for an inverse."""
    runnable(target)
    links, psi = random_fields(spec.lattice, spec.batch)
    reference = Reference(links, mass=MASS, csw=CSW, mu=MU, scale=SCALE, phase=PHASE)
    artifact = factory.load(spec, target)
    expected = reference.apply(spec.operator, psi)
    found = artifact.run(links, psi, SCALARS, SCALE, PHASE)
    depth = 35 * (2 if "normal" in spec.operator else 1) + (200 if "clover_schur" in spec.operator else 0)
    assert np.linalg.norm(found - expected) <= depth * EPSILON[spec.dtype] * np.linalg.norm(expected)
    assert artifact.library.lqcd_identity().decode() == f"{spec.name}@{target}"
    assert artifact.library.lqcd_abi() == 1
    if spec.lattice == (12, 12, 12, 12):
        assert artifact.layout.startswith("links4-f64")


SAME_BITS = [
    *[(case(op, (8, 4, 4, 4)), case(op, (8, 4, 4, 4), shards=4)) for op in ("wilson", "wilson_normal", "clover_normal")],
    (case("twisted_normal", (4, 4, 4, 4), "float32", batch=2), case("twisted_normal", (4, 4, 4, 4), "float32", batch=2, shards=4)),
    (case("wilson_normal", (4, 3, 2, 6), "float32", fused=True), case("wilson_normal", (4, 3, 2, 6), "float32", fused=True, shards=2)),
    (case("wilson_normal", (8, 4, 4, 4), "float32", "x86-64-v3"), case("wilson_normal", (8, 4, 4, 4), "float32", "x86-64-v4")),
    (case("clover_schur", (8, 4, 4, 4), "float64", "x86-64-v3"), case("clover_schur", (8, 4, 4, 4), "float64", "x86-64-v4")),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME_BITS, ids=lambda v: f"{v[0].name}@{v[1]}")
def test_same_bits_in_every_layout(factory: Factory, one: tuple[Spec, str], other: tuple[Spec, str]) -> None:
    """Slabs, lanes and vector width change where a site lives, never the arithmetic that is done for it."""
    results = []
    for spec, target in (one, other):
        runnable(target)
        links, psi = random_fields(spec.lattice, spec.batch)
        results.append(factory.load(spec, target).run(links, psi, SCALARS, SCALE, PHASE))
    assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.parametrize("operator", ["wilson_normal", "clover_schur_normal"])
def test_same_bits_for_any_thread_count(factory: Factory, operator: str) -> None:
    spec, target = case(operator, (8, 4, 4, 4))
    links, psi = random_fields(spec.lattice, spec.batch)
    artifact = factory.load(spec, target)
    results = {artifact.run(links, psi, SCALARS, SCALE, PHASE, threads).tobytes() for threads in (1, 2, 3)}
    assert len(results) == 1


def test_a_column_does_not_depend_on_its_batch(factory: Factory) -> None:
    lattice = (4, 4, 4, 4)
    links, psi = random_fields(lattice, 12)
    whole = factory.load(*case("wilson", lattice, batch=12)).run(links, psi, SCALARS, SCALE, PHASE)
    part = factory.load(*case("wilson", lattice, batch=4)).run(links, psi[5:9], SCALARS, SCALE, PHASE)
    assert whole[5:9].tobytes() == part.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("fused", [False, True])
def test_not_finite_reaches_neighbours_and_nothing_else(factory: Factory, bad: float, fused: bool) -> None:
    lattice, batch = (4, 4, 4, 4), 3 if fused else 2
    dtype = "float64" if fused else "float32"
    artifact = factory.load(*case("wilson", lattice, dtype, fused=fused, batch=batch))
    links, psi = random_fields(lattice, batch)
    clean = artifact.run(links, psi, SCALARS, SCALE, PHASE)
    psi[1, 3, 1, 0, 2, 2, 1] = bad
    dirty = artifact.run(links, psi, SCALARS, SCALE, PHASE)
    hit = ~np.isfinite(dirty).all((-1, -2))
    expected = np.zeros_like(hit)
    for mu in range(4):
        for step in (-1, 0, 1):
            site = np.array([3, 1, 0, 2])
            site[mu] = (site[mu] + step) % 4
            expected[(1, *site)] = True
    assert (hit == expected).all()
    assert (dirty[~hit] == clean[~hit]).all()


def test_baked_mass_is_used_and_the_scalar_ignored(factory: Factory) -> None:
    links, psi = random_fields((4, 4, 4, 4), 2)
    plain, target = case("wilson", (4, 4, 4, 4), "float32", batch=2)
    expected = factory.load(plain, target).run(links, psi, SCALARS, SCALE, PHASE)
    baked = factory.load(plain.replace(baked={"mass": MASS}), target)
    assert baked.run(links, psi, (99.0, 0.0, 0.0), SCALE, PHASE).tobytes() == expected.tobytes()


def test_bad_arguments_are_refused(factory: Factory) -> None:
    artifact = factory.load(*case("wilson", (8, 4, 4, 4)))
    gauge, inner, outer = (artifact.buffer(what).ctypes.data for what in range(3))
    numbers = np.zeros(8).ctypes.data
    call = artifact.library
    assert call.lqcd_apply(inner, inner, gauge, None, None, numbers, None) == 2
    assert call.lqcd_apply(outer + 8, inner, gauge, None, None, numbers, None) == 2
    assert call.lqcd_apply(outer, inner, None, None, None, numbers, None) == 2
    assert call.lqcd_pack_spinor(inner, outer, 1, None) == 2
    assert [call.lqcd_bytes(what) for what in (-1, 3, 4, 5)] == [0, 0, 0, 0]
