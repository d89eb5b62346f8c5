"""Every dirac artifact computes what the conventions say, on any lattice, in any layout, bit for bit the same in parallel."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.target import this_host
from tests.contracts.dirac_artifact import Factory
from tests.contracts.dirac_reference import Reference, formula_links, formula_spinor, random_fields

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


HALVES = {"float16": 2.0**-11, "bfloat16": 2.0**-8}  # half the distance of neighbouring numbers, relative
LARGE = (12, 12, 12, 12)  # beyond the caches: prefetches, and stores past the cache
# Every operator and every lattice shape, batch, shard count and CPU level at least once; two dtypes for each family.
SHORT = ("wilson_hop", "wilson", "wilson_dagger", "wilson_normal", "clover", "clover_dagger", "wilson_schur", "twisted_normal")
CASES = [
    *[case(op, (8, 4, 4, 4)) for op in DIRAC],
    *[case(op, (8, 4, 4, 4), "float32", batch=2) for op in (*SHORT, "clover_schur_normal")],
    *[case(op, (5, 3, 4, 6)) for op in ("wilson_hop", "wilson", "clover")],
    *[case(op, (8, 6, 4, 2)) for op in ("wilson_hop", "wilson", "clover", "wilson_schur")],
    *[case(op, (2, 2, 2, 2), target="x86-64-v2") for op in ("wilson_normal", "clover_schur")],
    case("wilson_normal", (3, 3, 3, 3), "float32"),
    *[case("wilson", (4, 4, 4, 4), "float32", "x86-64-v2", batch=b) for b in (8, 16)],
    *[case("wilson", (4, 4, 4, 4), batch=b) for b in (4, 12)],
    case("wilson_hop", (6, 6, 2, 10), "float32"),
    *[case("wilson_normal", (4, 2, 5, 4), shards=4, batch=2), case("wilson_dagger", (4, 2, 5, 4), "float32", shards=2)],
    *[case(op, (4, 4, 4, 4), fused=True, batch=3) for op in WILSON],
    # Even-odd sub-lattices of odd extents: lanes of both parities in one vector.
    *[case(op, (6, 6, 6, 6), d) for op in ("wilson_schur", "clover_schur_normal") for d in ("float32", "float64")],
    *[case(op, (10, 6, 6, 6), "float32", batch=3) for op in ("wilson_schur_dagger", "clover_schur")],
    *[case(op, (4, 6, 8, 10), batch=2) for op in ("wilson_schur_normal", "clover_schur_dagger")],
    *[case("clover_schur", (2, 2, 2, 4), d) for d in ("float32", "float64")],
    *[case(op, (8, 4, 4, 4), "float32", storage=s, batch=2) for s in HALVES
      for op in ("wilson_hop", "wilson_normal", "clover_dagger", "twisted", "wilson_schur", "clover_schur_normal")],
    *[case("wilson_schur_dagger", (6, 6, 6, 6), "float32", storage=s) for s in HALVES],
    *[case("wilson_normal", (5, 3, 4, 6), "float32", storage=s) for s in HALVES],
    case("wilson_normal", (4, 2, 5, 4), "float32", storage="float16", shards=2),
    case("wilson", (2, 2, 2, 2), "float32", "x86-64-v2", storage="bfloat16"),
    case("wilson", LARGE, "float32", storage="float16", batch=4),
    case("wilson_schur", LARGE),
    case("wilson", LARGE, batch=4),
    case("wilson_normal", LARGE, shards=3),
]  # fmt: skip
UNIQUE = list(dict.fromkeys(CASES))


FUSED = (4, 3, 2, 6)
SAME_BITS = [
    *[(case(op, (8, 4, 4, 4)), case(op, (8, 4, 4, 4), shards=4)) for op in ("wilson", "wilson_normal", "clover_normal")],
    tuple(case("twisted_normal", (8, 4, 4, 4), "float32", batch=2, shards=s) for s in (1, 8)),
    tuple(case("wilson_normal", LARGE, batch=12, shards=s) for s in (1, 3)),
    tuple(case("wilson_normal", FUSED, "float32", fused=True, shards=s) for s in (1, 2)),
    tuple(case("wilson_normal", FUSED, "float32", fused=True, shards=s) for s in (1, 4)),
    tuple(case("wilson", (8, 4, 4, 4), target=t) for t in ("x86-64-v3", "x86-64-v4")),
    tuple(case("clover_schur", (8, 4, 4, 4), target=t) for t in ("x86-64-v3", "x86-64-v4")),
    tuple(case("clover_schur_normal", (6, 6, 6, 6), target=t) for t in ("x86-64-v3", "x86-64-v4")),
    *[tuple(case("clover_normal", (8, 4, 4, 4), "float32", t, storage=s) for t in ("x86-64-v3", "x86-64-v4")) for s in HALVES],
    tuple(case("wilson_schur", (4, 6, 8, 10), "float32", batch=2, target=t) for t in ("x86-64-v3", "x86-64-v4")),
]


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
    """||artifact - naive|| <= depth eps ||naive||: depth counts roundings on the longest path, ~35 a hop, 100 for an inverse.

    Halves: of every sweep the links and what it reads and writes are rounded, 2 n + 1 times for n sweeps.
    """
    runnable(target)
    links, psi = random_fields(spec.lattice, spec.batch)
    reference = Reference(links, mass=MASS, csw=CSW, mu=MU, scale=SCALE, phase=PHASE)
    artifact = factory.load(spec, target)
    expected = reference.apply(spec.operator, psi)
    found = artifact.run(links, psi, SCALARS, SCALE, PHASE)
    depth = 35 * (2 if "normal" in spec.operator else 1) + (200 if "clover_schur" in spec.operator else 0)
    sweeps = (2 if "normal" in spec.operator else 1) * (2 if "schur" in spec.operator else 1)
    bound = depth * EPSILON[spec.dtype] + (2 * sweeps + 1) * HALVES.get(spec.storage, 0.0)
    assert np.linalg.norm(found - expected) <= bound * np.linalg.norm(expected)
    assert spec.storage == spec.dtype or np.linalg.norm(found - expected) > HALVES[spec.storage] / 8 * np.linalg.norm(expected)
    assert artifact.library.lqcd_identity().decode() == f"{spec.name}@{target}"
    assert artifact.library.lqcd_abi() == 1


@pytest.mark.parametrize(("one", "other"), SAME_BITS, ids=lambda v: f"{v[0].name}@{v[1]}")
def test_same_bits_in_every_layout(factory: Factory, one: tuple[Spec, str], other: tuple[Spec, str]) -> None:
    """Slabs, lanes and vector width change where a site lives, never the arithmetic that is done for it."""
    results = []
    for spec, target in (one, other):
        runnable(target)
        links, psi = random_fields(spec.lattice, spec.batch)
        results.append(factory.load(spec, target).run(links, psi, SCALARS, SCALE, PHASE))
    assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.parametrize("storage", HALVES)
def test_halves_keep_every_magnitude_and_what_is_not_finite(factory: Factory, storage: str) -> None:
    """A power of two passes through exactly; zeros stay zeros; NaN reaches the sites next to it and no others."""
    spec, target = case("wilson_hop", (8, 4, 4, 4), "float32", storage=storage, batch=2)
    links, psi = random_fields(spec.lattice, spec.batch)
    artifact, psi = factory.load(spec, target), psi.astype(np.complex64)
    plain = artifact.run(links, psi, SCALARS, SCALE, PHASE)
    for power in (-80, 60, 120):
        scaled = artifact.run(links, (psi * np.float32(2.0) ** power).astype(np.complex64), SCALARS, SCALE, PHASE)
        assert (scaled == plain * np.float32(2.0) ** power).all()
    assert not artifact.run(links, np.zeros_like(psi), SCALARS, SCALE, PHASE).any()
    for value in (np.nan, np.inf, -np.inf):
        psi[0, 4, 2, 2, 2] = value
        bad = ~np.isfinite(artifact.run(links, psi, SCALARS, SCALE, PHASE)).all(axis=(-2, -1))
        assert bad[0, [3, 5], 2, 2, 2].all() and bad[0].sum() == 8 and not bad[1].any()
    # One that is not finite stays itself, and the largest finite numbers are no infinities.
    psi[0, 4, 2, 2, 2] = np.finfo(np.float32).max * np.float32(0.99)
    assert np.isfinite(artifact.unpacked(psi)).all()
    psi[0, 4, 2, 2, 2, 1, 1] = complex(-np.inf, np.nan)
    kept = artifact.unpacked(psi)[0, 4, 2, 2, 2]
    assert kept[1, 1].real == -np.inf and np.isnan(kept[1, 1].imag) and np.isfinite(np.delete(kept, 4)).all()


@pytest.mark.parametrize("operator", ["wilson_normal", "clover_schur_normal"])
def test_same_bits_for_any_thread_count(factory: Factory, operator: str) -> None:
    spec, target = case(operator, (8, 4, 4, 4))
    links, psi = random_fields(spec.lattice, spec.batch)
    artifact = factory.load(spec, target)
    results = {artifact.run(links, psi, SCALARS, SCALE, PHASE, threads).tobytes() for threads in (1, 2, 3, -2, 7)}
    assert len(results) == 1


def test_pinned_threads_stay_on_one_cpu_each_and_leave_the_caller_alone(factory: Factory) -> None:
    library = factory.load(*case("wilson_normal", (8, 4, 4, 4))).library
    tasks, mine = Path("/proc/self/task"), os.sched_getaffinity(0)
    before = set(tasks.iterdir())
    pool = library.lqcd_pool_new(-3)
    workers = [int(task.name) for task in set(tasks.iterdir()) - before]
    deadline = time.monotonic() + 20
    while any(len(os.sched_getaffinity(tid)) != 1 for tid in workers) and len(mine) > 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    cpus = [cpu for tid in workers for cpu in os.sched_getaffinity(tid)]
    library.lqcd_pool_free(pool)
    ordered = sorted(mine)
    assert sorted(cpus) == sorted(ordered[i % len(ordered)] for i in (1, 2)) and os.sched_getaffinity(0) == mine


def test_a_column_does_not_depend_on_its_batch(factory: Factory) -> None:
    lattice = (4, 4, 4, 4)
    links, psi = random_fields(lattice, 12)
    whole = factory.load(*case("wilson", lattice, batch=12)).run(links, psi, SCALARS, SCALE, PHASE)
    part = factory.load(*case("wilson", lattice, batch=4)).run(links, psi[5:9], SCALARS, SCALE, PHASE)
    assert whole[5:9].tobytes() == part.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("fused", [False, True])
def test_not_finite_reaches_neighbours_and_nothing_else(factory: Factory, bad: float, fused: bool) -> None:
    lattice, batch = (4, 4, 4, 4), 3 if fused else 4
    artifact = factory.load(*case("wilson", lattice, fused=fused, batch=batch))
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
    links, psi = random_fields((8, 4, 4, 4), 2)
    plain, target = case("wilson", (8, 4, 4, 4), "float32", batch=2)
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


NPZ_OPERATORS = {
    "hop": "wilson_hop", "M": "wilson", "Mdag": "wilson_dagger", "MdagM": "wilson_normal",
    "clover_M": "clover", "clover_Mdag": "clover_dagger", "schur_ee": "wilson_schur",
}  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize("boundary", ["periodic", "antiperiodic"])
@pytest.mark.parametrize("word", NPZ_OPERATORS)
def test_agrees_with_published_fields(factory: Factory, data_dir: Path, word: str, boundary: str) -> None:
    """Chroma's weak field, mass 0.1, csw 1.0, both sources: 1e-12 in float64, 2e-5 in float32, of the largest component."""
    data = np.load(data_dir / "wilson_reference_weakfield_4448.npz")
    phase = (-1 if boundary == "antiperiodic" else 1, 1, 1, 1)
    sources = ("point", "generic")
    for dtype, bound in (("float64", 1e-12), ("float32", 2e-5)):
        psi = np.stack([data[f"{name}_src"] for name in sources])
        artifact = factory.load(*case(NPZ_OPERATORS[word], (8, 4, 4, 4), dtype, batch=1 if dtype == "float64" else 2))
        columns = [psi[:1], psi[1:]] if dtype == "float64" else [psi]
        found = np.concatenate([artifact.run(data["U"], c, (4.1, 1.0, 0.0), (1, 1, 1, 1), phase) for c in columns])
        for column, name in zip(found, sources, strict=True):
            expected = data[f"std_{boundary}_{name}_{word}"]
            assert np.abs(column - expected).max() <= bound * np.abs(expected).max()


@pytest.mark.data
@pytest.mark.parametrize("lattice", [(5, 3, 4, 6), (8, 6, 4, 2), (8, 4, 4, 4)])
def test_agrees_with_the_formula_fields(factory: Factory, data_dir: Path, lattice: tuple[int, ...]) -> None:
    """Odd extents and extents of 2: norms and products of synthetic_reference.json to 1e-12."""
    rows = [r for r in json.loads((data_dir / "synthetic_reference.json").read_text()) if tuple(r["dims_tzyx"]) == lattice]
    assert rows
    for row in rows:
        links, psi = formula_links(lattice, row["eps"]), formula_spinor(lattice)
        for boundary, sign in (("periodic", 1), ("antiperiodic", -1)):
            for key, operator in (("hop", "wilson_hop"), ("M", "wilson"), ("clover_M", "clover"), ("schur", "wilson_schur")):
                if f"std_{boundary}_{key}_norm2" not in row:
                    continue  # no even-odd on odd extents
                artifact = factory.load(*case(operator, lattice))
                out = artifact.run(links, psi, (4 + row["mass"], row["csw"], 0.0), (1, 1, 1, 1), (sign, 1, 1, 1))
                assert np.vdot(out, out).real == pytest.approx(row[f"std_{boundary}_{key}_norm2"], rel=1e-12)
