"""Artifacts of the kinds observable and gauge_map against published numbers and a path-following NumPy reference.

Bounds: float64 1e-12 relative and float32 2e-5, as the published references are stated to; for maps, the unit rounding times the
number of roundings a link goes through (_MAP_ROUNDINGS).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lqcd_runtime.target import CPU_TARGETS, this_host
from tests.contracts import gauge_reference as reference
from tests.contracts.gauge_artifact import BEST, gauge_artifact

ODD, NARROW = (5, 3, 4, 6), (2, 3, 2, 5)
RELATIVE = {"float64": 1e-12, "float32": 2e-5}
# Three stages; in each 6 staples of two products and one more product (3 complex terms, 4 roundings each), the series of 18 terms
# with about 4 roundings, two products.
_MAP_ROUNDINGS = 3 * (6 * 2 * 12 + 12 + 18 * 4 + 2 * 12)
OBSERVABLES: dict[str, tuple[float, ...]] = {
    "plaquette": (), "wilson_action": (6.0,), "polyakov_loop": (), "topological_charge": (), "energy_density": (),
}  # fmt: skip
MAPS = {"wilson_flow_step": 0.05, "stout_smear": 0.11}
OPERATORS = {**OBSERVABLES, **{name: (value,) for name, value in MAPS.items()}}


def expected_of(operator: str, links: Any, *inputs: float) -> Any:
    if operator == "plaquette":
        return reference.plaquette_planes(links)
    return np.atleast_1d(getattr(reference, operator)(links, *inputs))


def close(found: Any, expected: Any, relative: float) -> None:
    """Largest difference, relative to the largest expected number."""
    expected = np.atleast_1d(np.asarray(expected))
    assert np.abs(found - expected).max() <= relative * np.abs(expected).max(), (found, expected)


def map_bound(dtype: str) -> float:
    return float(_MAP_ROUNDINGS * np.finfo(dtype).eps)


def published(data_dir: Path, index: int) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((data_dir / "synthetic_reference.json").read_text())[index]
    planes = case["planes_tzyx"]
    case["results"] = {
        "plaquette": [planes[p] for p in ("01", "02", "03", "12", "13", "23")],
        "wilson_action": case["wilson_action_beta6"],
        "polyakov_loop": np.ravel(case["polyakov_tzyx"]),
        "topological_charge": case["topo_clover_traceless"],
        "energy_density": case["clover_energy_density"],
    }
    return case


@pytest.mark.data
@pytest.mark.parametrize("index", range(5))
def test_observables_reproduce_the_published_synthetic_fields(index: int, data_dir: Path) -> None:
    """Odd extents and extents of 2 included; the mean plaquette is the mean over the six planes."""
    case = published(data_dir, index)
    links = reference.synthetic_links(case["dims_tzyx"], case["eps"])
    close(links[0, 0, 0, 0, 0].view(float).reshape(9, 2), case["U[0,0,0,0,0]"], 1e-14)
    close(links[-1, -1, -1, -1, 3].view(float).reshape(9, 2), case["U[-1,-1,-1,-1,3]"], 1e-14)
    for dtype in ("float64", "float32") if index in (0, 4) else ("float64",):
        for operator, inputs in OBSERVABLES.items():
            found = gauge_artifact(operator, tuple(case["dims_tzyx"]), dtype).run(links, *inputs)
            close(found, case["results"][operator], RELATIVE[dtype])
            if operator == "plaquette":
                close(found.mean(), case["plaquette"], RELATIVE[dtype])
                close(found[:3].mean(), case["plaq_time"], RELATIVE[dtype])
                close(found[3:].mean(), case["plaq_space"], RELATIVE[dtype])


def weak_field(data_dir: Path) -> Any:
    """The links of weak_field.lime: record `ildg-binary-data`, big-endian float64 [T,Z,Y,X,(x,y,z,t),3,3]."""
    data = (data_dir / "pyquda" / "weak_field.lime").read_bytes()
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 16], "big")
        if data[at + 16 : at + 144].rstrip(b"\0") == b"ildg-binary-data":
            links = np.frombuffer(data, ">c16", size // 16, at + 144).reshape(8, 4, 4, 4, 4, 3, 3)
            return links[:, :, :, :, ::-1].astype(np.complex128)
        at += 144 + (size + 7) // 8 * 8
    raise AssertionError("no ildg-binary-data")


@pytest.mark.data
def test_observables_reproduce_the_weak_field(data_dir: Path) -> None:
    """Chroma's regression configuration. The charge cancels over the lattice: its bound is relative to the sum of |q(x)|."""
    links = weak_field(data_dir)
    npz = np.load(data_dir / "wilson_reference_weakfield_4448.npz")
    lattice = (8, 4, 4, 4)
    planes = gauge_artifact("plaquette", lattice).run(links)
    close(planes, npz["plaq_planes"], 1e-12)
    assert abs(planes.mean() - 0.994804132266700) < 1e-12
    loops = gauge_artifact("polyakov_loop", lattice).run(links)
    close(loops, npz["polyakov_tzyx"].view(float), 1e-12)
    close(loops[:2], [0.878769500914, -0.009913861137], 1e-12)
    density = npz["q_density_clover_traceless"]
    charge = gauge_artifact("topological_charge", lattice).run(links)[0]
    assert abs(charge - density.sum()) < 1e-12 * np.abs(density).sum()
    assert abs(charge - -4.875864e-6) < 1e-12
    single = gauge_artifact("topological_charge", lattice, "float32").run(links)[0]
    assert abs(single - density.sum()) < 2e-5 * np.abs(density).sum()


@pytest.mark.parametrize("lattice", [ODD, NARROW, (3, 2, 2, 9)], ids=str)
@pytest.mark.parametrize("operator", OBSERVABLES)
def test_observables_agree_with_path_following(operator: str, lattice: tuple[int, ...]) -> None:
    """On rough fields, where no term is small; the float64 sums of float32 links differ from exact ones by float64 rounding."""
    links = reference.random_links(lattice, seed=7).astype(np.complex64)
    expected = expected_of(operator, links.astype(np.complex128), *OBSERVABLES[operator])
    for dtype in ("float64", "float32"):
        close(gauge_artifact(operator, lattice, dtype).run(links, *OBSERVABLES[operator]), expected, 1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lattice", [ODD, NARROW], ids=str)
@pytest.mark.parametrize("operator", MAPS)
def test_maps_agree_with_path_following_and_stay_unitary(operator: str, lattice: tuple[int, ...], dtype: str) -> None:
    links = reference.random_links(lattice, seed=8)
    artifact = gauge_artifact(operator, lattice, dtype)
    mapped = artifact.run(links, MAPS[operator])
    expected = getattr(reference, operator)(links.astype(artifact.dtype).astype(np.complex128), MAPS[operator])
    assert np.abs(mapped - expected).max() < map_bound(dtype)
    assert np.abs(mapped @ reference.dagger(mapped) - np.eye(3)).max() < map_bound(dtype)
    assert np.abs(np.linalg.det(mapped.astype(np.complex128)) - 1).max() < map_bound(dtype)
    assert np.array_equal(artifact.run(links, MAPS[operator], in_place=True), mapped)
    assert reference.plaquette_planes(mapped).mean() > reference.plaquette_planes(links).mean()


@pytest.mark.parametrize("operator", MAPS)
def test_maps_are_gauge_covariant(operator: str) -> None:
    """Transforming first or last is the same, for any g(x)."""
    links, g = reference.random_links(ODD, seed=9), reference.random_links(ODD, seed=10, shape=())
    artifact = gauge_artifact(operator, ODD)
    first = artifact.run(reference.gauge_transformed(links, g), MAPS[operator])
    last = reference.gauge_transformed(artifact.run(links, MAPS[operator]), g)
    assert np.abs(first - last).max() < 2 * map_bound("float64")


@pytest.mark.parametrize("operator", OBSERVABLES)
def test_observables_are_gauge_invariant(operator: str) -> None:
    links, g = reference.random_links(ODD, seed=11), reference.random_links(ODD, seed=12, shape=())
    artifact, inputs = gauge_artifact(operator, ODD), OBSERVABLES[operator]
    close(artifact.run(reference.gauge_transformed(links, g), *inputs), artifact.run(links, *inputs), 1e-12)


@pytest.mark.parametrize("operator", MAPS)
def test_a_small_step_follows_the_gradient_of_the_gauge_action(operator: str) -> None:
    """d/de of the map at e = 0 is Z = T^a Z^a with Z^a = -d S/d(omega^a), where U' = exp(omega^a T^a) U.

    S = sum of Re tr(1 - P) over squares of both orientations (Luescher): wilson_action with beta = 6. Both derivatives are
    central differences, so each carries a relative error of the step squared.
    """
    links = reference.random_links(NARROW, seed=13)
    step = 1e-4
    artifact = gauge_artifact(operator, NARROW)
    moved = artifact.run(links, step) - artifact.run(links, -step)
    z = (moved / (2 * step)) @ reference.dagger(links)
    action = gauge_artifact("wilson_action", NARROW)
    for site in [(0, 0, 0, 0, 0), (1, 2, 1, 4, 3), (1, 0, 1, 2, 1)]:
        for generator in -0.5j * reference.gell_mann():
            values = []
            for sign in (1, -1):
                varied = links.copy()
                varied[site] = reference.exponential(sign * step * generator) @ varied[site]
                values.append(action.run(varied, 6.0)[0])
            gradient = (values[0] - values[1]) / (2 * step)
            component = -2 * np.trace(generator @ z[site]).real
            # |Z| is at most 6 in each component; the differences of S lose |S| eps / step.
            assert abs(component + gradient) < 10 * 6 * step**2 + abs(values[0]) * 1e-16 * 64 / step


def test_large_steps_use_the_exponential_exactly() -> None:
    """Arguments of norm 30 and more, where the series alone would fail: still unitary, still the same as by eigenvectors."""
    links = reference.random_links(NARROW, seed=14)
    mapped = gauge_artifact("stout_smear", NARROW).run(links, 10.0)
    size = np.abs(np.linalg.eigvalsh(-1j * 10.0 * reference.force(links))).max()
    assert size > 30
    # exp amplifies the rounding of its argument by its norm; each of the halvings doubles a rounding.
    assert np.abs(mapped - reference.stout_smear(links, 10.0)).max() < 8 * size * map_bound("float64")
    assert np.abs(mapped @ reference.dagger(mapped) - np.eye(3)).max() < 8 * size * map_bound("float64")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_cold_field_is_exact(dtype: str) -> None:
    cold = np.broadcast_to(np.eye(3), (*NARROW, 4, 3, 3))
    expected = {"plaquette": [1.0] * 6, "polyakov_loop": [1.0, 0.0] * 4}
    for operator, inputs in OBSERVABLES.items():
        found = gauge_artifact(operator, NARROW, dtype).run(cold, *inputs)
        assert np.abs(found - expected.get(operator, [0.0])).max() < 1e-14, operator
    for operator, size in MAPS.items():
        assert np.array_equal(gauge_artifact(operator, NARROW, dtype).run(cold, size), cold)


@pytest.mark.parametrize("operator", OPERATORS)
def test_same_bits_for_any_thread_count(operator: str) -> None:
    links = reference.random_links(ODD, seed=15)
    for dtype in ("float64", "float32"):
        artifact = gauge_artifact(operator, ODD, dtype)
        serial = artifact.run(links, *OPERATORS[operator])
        for threads in (2, 3, 7):
            assert np.array_equal(artifact.run(links, *OPERATORS[operator], threads=threads), serial)


@pytest.mark.parametrize("target", [t for t in CPU_TARGETS if this_host().refusal(t) is None and t != BEST])
@pytest.mark.parametrize("operator", ["topological_charge", "wilson_flow_step"])
def test_every_target_this_machine_executes_agrees(operator: str, target: str) -> None:
    links = reference.random_links(ODD, seed=16)
    found = gauge_artifact(operator, ODD, "float64", target).run(links, *OPERATORS[operator])
    close(found, gauge_artifact(operator, ODD).run(links, *OPERATORS[operator]), 1e-12)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_not_finite_links_are_seen(bad: float) -> None:
    """In every result of the observables that use the link, and around it, and only there, in a map."""
    links = reference.random_links(ODD, seed=17)
    links[4, 2, 3, 5, 3, 1, 2] = bad
    with np.errstate(invalid="ignore"):
        assert np.isfinite(gauge_artifact("plaquette", ODD).run(links)).tolist() == [True, True, False, True, False, False]
        assert not np.isfinite(gauge_artifact("topological_charge", ODD).run(links)).any()
        mapped = gauge_artifact("stout_smear", ODD).run(links, 0.1)
    spoiled = ~np.isfinite(mapped).all((-1, -2))
    assert spoiled[4, 2, 3, 5, 3] and spoiled[4, 2, 3, 0, 0] and spoiled[0, 2, 3, 5, 3]
    # The link itself; in each of three planes 3 further links in the square above it and 3 in the one below.
    assert spoiled.sum() == 1 + 3 * 6


@pytest.mark.parametrize("operator", OPERATORS)
def test_it_answers_its_name_and_refuses_null(operator: str) -> None:
    artifact = gauge_artifact(operator, ODD)
    library = artifact.library
    assert library.lqcd_abi() == 1
    assert library.lqcd_identity().decode() == f"{artifact.spec.name}@{artifact.target}"
    assert [library.lqcd_bytes(what) for what in (0, 1, 2, 4)] == [0] * 4 and library.lqcd_bytes(3) > 0
    function = library.lqcd_observe if artifact.spec.kind == "observable" else library.lqcd_map
    assert function(None, None, None, None, None) == 2
