"""Quark sources, propagators and correlators of the runtime: the analytic free field, symmetries, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lqcd_runtime as lqcd
from lqcd_runtime.conventions import gamma5, gamma_matrices
from lqcd_runtime.errors import UsageError
from lqcd_runtime.fields import random_links
from lqcd_runtime.noise import z2
from lqcd_runtime.observables.correlators import MESONS, effective_mass, gamma_structure, meson_correlator
from lqcd_runtime.observables.propagator import Propagator
from tests.physics.numpy_wilson import NumpyWilson

LATTICE = (4, 2, 3, 2)


def free_operator(lattice, mass, t_boundary):
    return NumpyWilson(np.broadcast_to(np.eye(3, dtype=complex), (*lattice, 4, 3, 3)), mass, t_boundary)


def free_propagator(lattice, mass, t_boundary):
    """The inverse by Fourier transform, at the origin: [T,Z,Y,X,4,4]. Second derivation, beside the solve.

    M(p) = 4 + m - sum cos p + i sum g sin p; antiperiodic time shifts p_T by pi / T.
    """
    axes = [2 * np.pi * (np.arange(n) + (0.5 if mu == 0 and t_boundary == -1 else 0)) / n for mu, n in enumerate(lattice)]
    p = np.meshgrid(*axes, indexing="ij")
    slashed = sum(np.sin(p[mu])[..., None, None] * gamma_matrices()[mu] for mu in range(4))
    scalar = 4 + mass - sum(np.cos(q) for q in p)
    denominator = scalar**2 + sum(np.sin(q) ** 2 for q in p)
    momentum = (scalar[..., None, None] * np.eye(4) - 1j * slashed) / denominator[..., None, None]
    s = np.fft.ifftn(momentum, axes=(0, 1, 2, 3))
    if t_boundary == -1:
        s *= np.exp(1j * np.pi * np.arange(lattice[0]) / lattice[0])[:, None, None, None, None, None]
    return s


@pytest.fixture(scope="module")
def rough():
    D = NumpyWilson(random_links(LATTICE, 3), mass=0.6, t_boundary=-1)
    return D, lqcd.propagator(D, source=lqcd.point_source((1, 0, 2, 1)), tol=1e-11)


@pytest.mark.data
@pytest.mark.parametrize("mass", [0.1, 0.5])
@pytest.mark.parametrize(("t_boundary", "word"), [(1, "periodic"), (-1, "antiperiodic")])
def test_the_free_pion_is_the_analytic_one(data_dir, mass, t_boundary, word):
    """Relative 1e-12: the solve is asked for 1e-14 so that its error, up to tol / m^2, stays below it."""
    reference = json.loads((data_dir / "free_field_reference.json").read_text())
    lattice = (8, 4, 4, 4)
    prop = lqcd.propagator(free_operator(lattice, mass, t_boundary), lqcd.point_source((0, 0, 0, 0)), tol=2e-15)
    expected = np.array(reference[f"T8L4 m={mass} t-{word}"])
    assert np.abs(lqcd.pion_correlator(prop) / expected - 1).max() < 1e-12


@pytest.mark.parametrize("t_boundary", [1, -1])
def test_the_free_propagator_is_the_fourier_transform(t_boundary):
    prop = lqcd.propagator(free_operator(LATTICE, 0.4, t_boundary), lqcd.point_source((0, 0, 0, 0)), tol=1e-13)
    expected = free_propagator(LATTICE, 0.4, t_boundary)
    for colour in range(3):
        assert np.abs(prop.by_spin[..., colour, colour] - expected).max() < 1e-12
    assert np.abs(prop.data[..., 0, :, 1]).max() == 0.0
    analytic = 3 * (np.abs(expected) ** 2).sum(axis=(1, 2, 3, 4, 5))
    assert np.abs(lqcd.pion_correlator(prop) - analytic).max() < 1e-12


def test_columns_of_a_propagator_solve_their_source(rough):
    D, prop = rough
    assert prop.converged and len(prop.columns) == 12 and prop.data.shape == (*LATTICE, 4, 3, 4, 3)
    for spin, colour in ((0, 0), (1, 2), (3, 1)):
        b = np.zeros((*LATTICE, 4, 3), complex)
        b[1, 0, 2, 1, spin, colour] = 1
        assert np.linalg.norm(b - D.apply(np.ascontiguousarray(prop.data[..., spin, colour]))) <= 1e-11


def test_the_pion_is_the_gamma5_meson_and_others_are_their_trace_formula(rough):
    _, prop = rough
    pion = lqcd.pion_correlator(prop)
    assert (pion > 0).all() and np.abs(meson_correlator(prop, "pion") - pion).max() < 1e-13 * pion.max()
    s, g5, g_t = prop.by_spin, gamma5(), gamma_matrices()[0]
    for name in ("rho_x", "axial_t", "scalar"):
        g = gamma_structure(name)
        expected = np.zeros(LATTICE[0], complex)
        for t in range(LATTICE[0]):
            for site in np.ndindex(*LATTICE[1:]):
                m = s[(t, *site)].transpose(0, 2, 1, 3).reshape(12, 12)
                spin = lambda q: np.kron(q, np.eye(3))  # noqa: E731
                anti = spin(g5) @ m.conj().T @ spin(g5)
                expected[(t - 1) % LATTICE[0]] -= np.trace(spin(g) @ m @ spin(g_t @ g.conj().T @ g_t) @ anti)
        got = meson_correlator(prop, name)
        # 288 products of magnitude at most the pion's enter every sum.
        assert np.abs(got - expected).max() < 1e3 * 2.0**-52 * pion.max()
        assert np.abs(got).max() <= pion.max() * (1 + 1e-12)


def test_time_is_counted_from_the_source_and_translations_do_not_matter():
    """On the free field with periodic time every position of the source gives one correlator."""
    D = free_operator(LATTICE, 0.5, 1)
    first = lqcd.pion_correlator(lqcd.propagator(D, lqcd.point_source((0, 0, 0, 0)), tol=1e-12))
    other = lqcd.pion_correlator(lqcd.propagator(D, lqcd.point_source((3, 1, 2, 1)), tol=1e-12, method="bicgstab"))
    assert np.abs(first / other - 1).max() < 1e-9 and first.argmax() == 0
    assert np.abs(first[1:] / first[:0:-1] - 1).max() < 1e-9


def test_a_wall_source_is_the_sum_of_point_sources():
    wall = lqcd.wall_source(2).on(LATTICE)
    points = sum(lqcd.point_source((2, z, y, x)).on(LATTICE) for z in range(2) for y in range(3) for x in range(2))
    assert np.array_equal(wall, points) and wall.shape == (12, *LATTICE, 4, 3) and wall.sum() == 12 * 12
    single = lqcd.wall_source(2, spin=3, colour=1).on(LATTICE)
    assert np.array_equal(single[0], wall[3 * 3 + 1]) and len(single) == 1


@pytest.mark.parametrize("kind", ["z2", "z4"])
def test_noise_is_unit_modulus_and_the_same_on_a_slice_as_in_the_volume(kind):
    whole = lqcd.noise_source(kind, seed=5).on(LATTICE)
    slab = lqcd.noise_source(kind, seed=5, t=2).on(LATTICE)
    assert whole.shape == (1, *LATTICE, 4, 3) and (np.abs(whole) == 1).all()
    assert np.array_equal(slab[0, 2], whole[0, 2]) and np.count_nonzero(slab) == 12 * 12
    assert not np.array_equal(whole, lqcd.noise_source(kind, seed=5, stream=1).on(LATTICE))
    diluted = lqcd.noise_source(kind, seed=5, t=2, dilute=True).on(LATTICE)
    assert diluted.shape[0] == 12 and np.count_nonzero(diluted) == 12 * 12
    assert all(np.array_equal(diluted[3 * s + c, ..., s, c], diluted[0, ..., 0, 0]) for s in range(4) for c in range(3))


def test_noise_numbers_belong_to_global_sites():
    site, component = np.ravel_multi_index((3, 1, 2, 0), LATTICE), 3 * 2 + 1
    value = lqcd.noise_source("z2", seed=9).on(LATTICE)[0, 3, 1, 2, 0, 2, 1]
    assert value == z2(9, 0, 1, 12 * int(site) + component)[0]


def test_effective_masses_of_exact_correlators():
    t = np.arange(16)
    both = effective_mass(2.5 * np.cosh(0.3 * (t - 8)))
    # At t = 0 the neighbours of a cosh on a ring are both C(1): no mass there, as C(0) is a cusp.
    assert np.abs(both[1:] - 0.3).max() < 1e-12 and np.isnan(both[0])
    log = effective_mass(7 * np.exp(-0.4 * t), "log")
    assert np.abs(log[:-1] - 0.4).max() < 1e-13 and np.isnan(log[-1])
    assert np.isnan(effective_mass(np.array([1.0, 2.0, -1.0, 0.0]), "log"))[[1, 2, 3]].all()
    with pytest.raises(UsageError, match="not known"):
        effective_mass(t, "sinh")


def test_the_sixteen_structures_are_distinct_and_unitary():
    structures = np.stack([gamma_structure(n) for n in range(16)]).reshape(16, 16)
    assert np.array_equal(structures @ structures.conj().T, 4 * np.eye(16)) and sorted(MESONS.values()) == list(range(16))
    assert np.array_equal(gamma_structure("pion"), gamma5()) and np.array_equal(gamma_structure("rho_z"), gamma_matrices()[1])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda D: lqcd.point_source((0, 0, 0)), "no position"),
        (lambda D: lqcd.point_source((0, 0, -1, 0)), "a coordinate: is not a whole number"),
        (lambda D: lqcd.point_source((0, 0, 0, 0), spin=4), "no such component"),
        (lambda D: lqcd.point_source((0, 2, 0, 0)).on(LATTICE), "outside the lattice"),
        (lambda D: lqcd.wall_source(4).on(LATTICE), "outside the lattice"),
        (lambda D: lqcd.wall_source(-1), "time slice: is not a whole number"),
        (lambda D: lqcd.noise_source("z3"), "not known"),
        (lambda D: lqcd.noise_source("z2", seed=-1), "seed: is not a whole number"),
        (lambda D: lqcd.noise_source("z2", seed=2**64), "out of range"),
        (lambda D: lqcd.propagator(D, lqcd.noise_source("z2")), "twelve columns"),
        (lambda D: lqcd.propagator(D, np.zeros((*LATTICE, 4, 3))), "twelve columns"),
        (lambda D: Propagator(np.zeros((2, 2))), "wrong shape"),
        (lambda D: gamma_structure("poin"), "did you mean 'pion'"),
        (lambda D: gamma_structure(16), "not known"),
    ],
)
def test_senseless_requests_are_refused(rough, call, text):
    with pytest.raises(UsageError, match=text):
        call(rough[0])


class FakeBundle:
    """Answers observables with numbers that show which artifact was asked for."""

    def __init__(self):
        self.calls = []

    def observable(self, name, lattice, dtype, *, engine=None, threads):
        def run(gauge, **inputs):
            self.calls.append((name, lattice, dtype, inputs))
            planes = {f"plane_{p}": k + 1.0 for k, p in enumerate(("TZ", "TY", "TX", "ZY", "ZX", "YX"))}
            loops = {f"{a}_{part}": k + (0.5 if part == "im" else 0.0) for k, a in enumerate("TZYX") for part in ("re", "im")}
            return {**planes, **loops, "wilson_action": 11.0, "topological_charge": -2.0, "energy_density": 3.0}

        return run


def test_observe_names_results_and_asks_each_artifact_once():
    bundle, links = FakeBundle(), random_links(LATTICE, 1)
    assert lqcd.observe(bundle, links, "plaquette") == 3.5
    got = lqcd.observe(bundle, links, "plaquette_planes", "plaquette", "polyakov_loop", "polyakov_loops", "wilson_action", beta=6)
    assert got["plaquette_planes"]["ZX"] == 5.0 and got["polyakov_loop"] == 0.5j and got["polyakov_loops"]["X"] == 3 + 3.5j
    assert bundle.calls[1:] == [
        (name, LATTICE, "float64", inputs)
        for name, inputs in (("plaquette", {}), ("polyakov_loop", {}), ("wilson_action", {"beta": 6.0}))
    ]
    for names, kwargs, text in (
        (("plaquete",), {}, "did you mean 'plaquette'"),
        ((), {}, "no observable"),
        (("wilson_action",), {}, "needs beta"),
        (("plaquette",), {"beta": 6.0}, "nothing asked for uses it"),
    ):
        with pytest.raises(UsageError, match=text):
            lqcd.observe(bundle, links, *names, **kwargs)
