"""Hadron correlators: published clover correlators, the free field in all directions, symmetries, an index-loop proton."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
import torch

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.dirac import CloverWilsonDirac, WilsonDirac
from lqcd_aot.observables import (
    columns_of,
    effective_mass,
    gamma_product,
    gaussian_smear,
    meson_correlator,
    meson_correlators,
    point_columns,
    propagator_from_columns,
    proton_correlator,
    proton_density,
    smear_sink,
)
from lqcd_aot.observables.baryons import charge_conjugation, parity_projector
from lqcd_aot.solvers import ConjugateGradient
from lqcd_runtime.conventions import gamma5, gamma_matrices
from lqcd_runtime.errors import UsageError
from tests.physics.gauge_fields import random_links, transformed
from tests.physics.torch_fields import weak_field_reference

G = torch.from_numpy(gamma_matrices())
G5 = torch.from_numpy(gamma5())


def solve(dirac, links, sources, tol=1e-12):
    """Propagator columns of a Dirac operator by CG on M^dag M."""
    right = dirac.dagger(sources, links)
    x, info = ConjugateGradient(tol=tol, maxiter=2000).solve(lambda v: dirac.normal(v, links), right, columns=True)
    assert info.converged, info.prose
    return propagator_from_columns(x)


def free_propagator(lattice, mass, signs=(1, 1, 1, 1)):
    """S(x, 0) of the free field by momentum sum: M(p) = 4 + m - sum cos p + i sum g sin p; sign -1 is antiperiodic."""
    momenta = [2 * math.pi * (np.arange(n) + (0.5 if s < 0 else 0.0)) / n for n, s in zip(lattice, signs, strict=True)]
    p = torch.from_numpy(np.stack(np.meshgrid(*momenta, indexing="ij"), -1))
    matrix = (4 + mass - torch.cos(p).sum(-1))[..., None, None] * torch.eye(4, dtype=torch.complex128)
    matrix = matrix + 1j * torch.einsum("...m,mab->...ab", torch.sin(p).to(torch.complex128), G)
    s = torch.fft.ifftn(torch.linalg.inv(matrix), dim=(0, 1, 2, 3))
    for mu, sign in enumerate(signs):
        if sign < 0:
            phase = torch.exp(1j * math.pi * torch.arange(lattice[mu], dtype=torch.float64) / lattice[mu])
            s = s * phase.reshape([-1 if axis == mu else 1 for axis in range(6)])
    return s[..., None, None] * torch.eye(3, dtype=torch.complex128)


# ---- published numbers ------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def clover_propagators(data_dir):
    """Up (m = 0.1) and down (m = 0.2), csw 1.17, antiperiodic, Gaussian shell source at the origin of weak_field."""
    links = torch.from_numpy(weak_field_reference(data_dir)["U"])
    source = gaussian_smear(point_columns((8, 4, 4, 4), (0, 0, 0, 0)), links, 2.0, 5)
    up, down = (solve(CloverWilsonDirac(m, 1.17, t_boundary=-1), links, source) for m in (0.1, 0.2))
    return links, up, down


@pytest.mark.data
def test_clover_pion_to_all_printed_digits(data_dir):
    """lalibe's regression spectrum, shell source at the origin: `piplus`, point sink and shell sink, p = 0 and p_X = 1.

    Chroma projects with exp(+i p x), so its p_X = +1 is our -1.
    """
    links, up, down = clover_propagators(data_dir)
    point = meson_correlator(up, antiquark=down)
    assert np.abs(point.real.numpy()[:4] - [0.21513621, 0.03641575, 0.02742811, 0.02323037]).max() < 5.1e-9
    assert abs(complex(point[1]) - (0.03641575046 - 1.44523109067e-04j)) < 1e-11
    moving = meson_correlator(up, antiquark=down, momentum=(0, 0, -1))
    expected = [5.49251141649e-02 - 3.52560633439e-05j, 1.71193592215e-03 - 4.90601423994e-05j]
    assert np.abs(moving.numpy()[:2] - expected).max() < 1e-12
    up, down = smear_sink(up, links, 2.0, 5), smear_sink(down, links, 2.0, 5)
    shell = meson_correlator(up, antiquark=down)
    assert np.abs(shell.real.numpy()[:3] - [3.0420172098, 0.06286660868, 0.02710052656]).max() < 1e-10
    moving = meson_correlator(up, antiquark=down, momentum=(0, 0, -1))
    assert abs(complex(moving[1]) - (2.70306677933e-03 - 9.48392092723e-06j)) < 1e-12


@pytest.mark.data
def test_clover_proton_to_all_printed_digits(data_dir):
    """The same spectrum's proton, upper Dirac-Pauli components, spin up + spin down: normalised to half of ours."""
    _, up, down = clover_propagators(data_dir)
    mine = proton_correlator(up, down, nonrelativistic=True).numpy()
    spin_up = [3.77969903366e-03 - 4.22794914422e-05j, 4.04088940308e-04 - 8.15801087882e-06j]
    spin_down = [3.77970075005e-03 - 4.33027905615e-05j, 4.04061998842e-04 - 8.37802943552e-06j]
    assert np.abs(mine[:2] / 2 - np.add(spin_up, spin_down)).max() < 1e-13


@pytest.mark.data
def test_published_propagators_are_solutions_for_our_smeared_source(data_dir):
    """lalibe's propagator file: M S is our Gaussian source at t = 4, to its solver's residual; its pion by plain sums."""
    h5py = pytest.importorskip("h5py")
    links = torch.from_numpy(weak_field_reference(data_dir)["U"])
    source = gaussian_smear(point_columns((8, 4, 4, 4), (4, 0, 0, 0)), links, 2.0, 5)
    props = {}
    with h5py.File(data_dir / "lalibe/test_propagator_t4.h5") as f:
        for name, mass in (("up", 0.1), ("dn", 0.2)):
            raw = np.frombuffer(f[f"sh_sig2p0_n5/PS_{name}_4"][()].tobytes(), "<c16").reshape(8, 4, 4, 4, 4, 4, 3, 3)
            props[name] = torch.from_numpy(raw.copy())
            columns = columns_of(props[name])
            residual = CloverWilsonDirac(mass, 1.17, t_boundary=-1)(columns, links) - source
            assert float(residual.norm() / source.norm()) < 5e-12
            assert torch.equal(propagator_from_columns(columns), props[name])
    pion = meson_correlator(props["up"], antiquark=props["dn"], source=(4, 0, 0, 0))
    by_sums = (props["up"] * props["dn"].conj()).sum((1, 2, 3, 4, 5, 6, 7)).roll(-4)
    assert float((pion - by_sums).abs().max()) < 1e-14


# ---- free field -------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("boundary", ["periodic", "antiperiodic"])
@pytest.mark.parametrize("mass", [0.1, 0.5])
def test_free_pion_in_all_four_directions(data_dir, boundary, mass):
    reference = json.loads((data_dir / "free_field_reference.json").read_text())
    sign = 1 if boundary == "periodic" else -1
    for long, short in ((8, 4), (16, 8)):
        expected = np.array(reference[f"T{long}L{short} m={mass} t-{boundary}"])
        for axis in range(4) if long == 8 else (0,):
            lattice = [long if mu == axis else short for mu in range(4)]
            s = free_propagator(lattice, mass, [sign if mu == axis else 1 for mu in range(4)])
            pion = meson_correlator(s, axis=axis)
            assert np.abs(pion.numpy() - expected).max() < 1e-12


@pytest.mark.data
@pytest.mark.parametrize("sign", [1, -1])
def test_free_pion_by_solving_the_wilson_operator(data_dir, sign):
    reference = json.loads((data_dir / "free_field_reference.json").read_text())
    field = GaugeField.cold(LatticeGeometry(T=8, Z=4, Y=4, X=4), dtype=torch.complex128)
    dirac = WilsonDirac(0.5, t_boundary=sign)
    sources = point_columns((8, 4, 4, 4), (0, 0, 0, 0))
    s = solve(dirac, field.tensor, sources, tol=1e-14)
    expected = np.array(reference[f"T8L4 m=0.5 t-{'periodic' if sign == 1 else 'antiperiodic'}"])
    assert np.abs(meson_correlator(s).numpy() - expected).max() < 1e-12
    assert float((s - free_propagator((8, 4, 4, 4), 0.5, (sign, 1, 1, 1))).abs().max()) < 1e-12


def test_free_mesons_are_positive_and_symmetric():
    """< O(t) O(0)^dag > = sum exp(-(T-t) E_m - t E_n) |<m|O|n>|^2 > 0 off the source, and t <-> T-t by charge conjugation."""
    s = free_propagator((8, 4, 4, 4), 0.2, (-1, 1, 1, 1))
    c = meson_correlators(s)
    assert c.shape == (16, 8)
    assert float(c.imag.abs().max()) < 1e-14
    assert bool((c.real[:, 1:] > 0).all())
    assert bool((c.real[15] > 0).all())
    assert float((c - c.roll(-1, 1).flip(1)).abs().max()) < 1e-14
    # Rotations by 90 degrees about Z exchange X and Y: the three vectors agree, and so on.
    for group in ((1, 2, 4), (3, 5, 6), (9, 10, 12), (11, 13, 14)):
        for n in group[1:]:
            assert float((c[n] - c[group[0]]).abs().max()) < 1e-14


def test_free_pion_momentum_projection_is_a_fourier_sum():
    s = free_propagator((4, 3, 4, 5), 0.3, (-1, 1, 1, 1))
    density = (s * s.conj()).real.sum((4, 5, 6, 7)).numpy()
    z, y, x = np.meshgrid(np.arange(3), np.arange(4), np.arange(5), indexing="ij")
    for n in ((1, 0, 0), (0, 1, 2), (1, 3, 4)):
        wave = np.exp(-2j * np.pi * (n[0] * z / 3 + n[1] * y / 4 + n[2] * x / 5))
        expected = (density * wave).sum((1, 2, 3))
        assert np.abs(meson_correlator(s, momentum=n).numpy() - expected).max() < 1e-13


# ---- structure --------------------------------------------------------------------------------------------------


def test_gamma_products_are_the_sixteen_of_the_clifford_algebra():
    for n, m in product(range(16), repeat=2):
        overlap = torch.trace(gamma_product(n).mH @ gamma_product(m)) / 4
        assert abs(complex(overlap) - (1.0 if n == m else 0.0)) < 1e-15
    assert torch.equal(gamma_product(15), G5)
    assert torch.equal(gamma_product(1), G[3])
    assert torch.equal(gamma_product(8), G[0])
    c = charge_conjugation()
    for mu in range(4):
        assert float((c @ G[mu] @ torch.linalg.inv(c) + G[mu].mT).abs().max()) < 1e-15
    with pytest.raises(UsageError, match="sixteen"):
        gamma_product(16)


@lru_cache(maxsize=1)
def rough():
    """Haar links on a small lattice and the propagator of a heavy quark from a point at (1, 0, 2, 1), antiperiodic."""
    lattice, x = (4, 2, 4, 2), (1, 0, 2, 1)
    links = random_links(lattice)
    dirac = WilsonDirac(0.5, t_boundary=-1)
    return links, dirac, x, solve(dirac, links, point_columns(lattice, x))


def test_correlators_are_gauge_invariant():
    links, dirac, x, s = rough()
    other, g = transformed(links)
    s_other = solve(dirac, other, point_columns(s.shape[:4], x))
    mesons, mesons_other = (meson_correlators(p, source=x, momentum=(1, 0, 1)) for p in (s, s_other))
    assert float((mesons - mesons_other).abs().max()) < 1e-11
    protons = [proton_correlator(p, source=x, t_boundary=-1) for p in (s, s_other)]
    assert float((protons[0] - protons[1]).abs().max()) < 1e-11
    smeared = gaussian_smear(point_columns(s.shape[:4], x), links, 1.5, 3)
    rotated = gaussian_smear(point_columns(s.shape[:4], x), other, 1.5, 3)
    expected = torch.einsum("tzyxab,ntzyxsb->ntzyxsa", g, smeared)
    # The point source itself is not rotated: column c mixes with g(x)^dag on the right.
    columns = rotated.reshape(4, 3, *rotated.shape[1:])
    back = torch.einsum("sc...,cd->sd...", columns, g[x])
    assert float((back.reshape(rotated.shape) - expected).abs().max()) < 1e-12


def test_pion_is_the_propagator_squared_and_gamma5_hermiticity_holds():
    _, _, x, s = rough()
    pion = meson_correlator(s, source=x)
    squares = s.abs().square().sum((1, 2, 3, 4, 5, 6, 7)).roll(-1)
    assert float((pion - squares).abs().max()) < 1e-14
    assert bool((pion.real > 0).all())
    # < O_1 O_2^dag > and < O_2 O_1^dag > are complex conjugates when sink and source structures and quarks swap at p = 0.
    mixed = meson_correlator(s, 15, 7, source=x)
    general = -torch.einsum(
        "ab,...bcij,cd,...edij,ea->...", gamma_product(15), s, G[0] @ gamma_product(7).mH @ G[0] @ G5, s.conj(), G5
    )
    assert float((mixed - general.sum((1, 2, 3)).roll(-1)).abs().max()) < 1e-13


def levi_civita():
    e = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        e[i, j, k], e[i, k, j] = 1, -1
    return e


@pytest.mark.parametrize("nonrelativistic", [False, True])
def test_proton_by_explicit_index_loops(nonrelativistic):
    """Wick's theorem with every colour and spin index summed by hand, at single sites of two different propagators."""
    rng = np.random.default_rng(7)
    up, down = (rng.normal(size=(1, 2, 1, 1, 4, 4, 3, 3, 2)) @ [1, 1j] for _ in range(2))
    mine = proton_density(torch.from_numpy(up), torch.from_numpy(down), nonrelativistic=nonrelativistic).numpy()
    e, g_t = levi_civita(), G[0].numpy()
    gamma = charge_conjugation().numpy() @ G5.numpy()
    if nonrelativistic:
        gamma = gamma @ (np.eye(4) + g_t) / 2
    bar = g_t @ gamma.conj().T @ g_t.T
    colours = [c for c in product(range(3), repeat=3) if e[c]]
    for site in ((0, 0, 0, 0), (0, 1, 0, 0)):
        u, d = up[site], down[site]
        expected = np.zeros((4, 4), complex)
        for (a, b, c), (a1, b1, c1) in product(colours, colours):
            sign = e[a, b, c] * e[a1, b1, c1]
            for al, be, al1, be1 in product(range(4), repeat=4):
                weight = sign * gamma[al, be] * bar[be1, al1] * d[be, be1, b, b1]
                if weight == 0:
                    continue
                for g, g1 in product(range(4), repeat=2):
                    direct = u[al, al1, a, a1] * u[g, g1, c, c1]
                    expected[g, g1] += weight * (direct - u[al, g1, a, c1] * u[g, al1, c, a1])
        assert np.abs(mine[site] - expected).max() < 1e-11


def test_proton_does_not_depend_on_the_spin_basis():
    """Rotate propagator, gammas and C to a basis with diagonal g_T (Dirac-Pauli): the traced correlator stays."""
    _, _, _, s = rough()
    _, r = torch.linalg.eigh(-G[0])
    r = r.mH
    rotated = torch.einsum("ab,...bcij,dc->...adij", r, s, r.conj())
    assert float((r @ G[0] @ r.mH - torch.diag(torch.tensor([1.0, 1, -1, -1], dtype=torch.complex128))).abs().max()) < 1e-14
    gamma = charge_conjugation() @ G5
    here = torch.einsum("ab,...ba->...", parity_projector(), proton_density(s))
    turned_gamma = r.conj() @ gamma @ r.mH
    turned_bar = r @ (G[0] @ gamma.mH @ G[0].mT) @ r.mT
    e = torch.from_numpy(levi_civita()).to(torch.complex128)
    pair = torch.einsum("ab,...bcij,cd->...adij", turned_gamma, rotated, turned_bar)
    direct = torch.einsum("abc,def,...klbe,...klad,...ghcf->...gh", e, e, pair, rotated, rotated)
    exchange = torch.einsum("abc,def,...klbe,...khaf,...glcd->...gh", e, e, pair, rotated, rotated)
    projector = r @ parity_projector() @ r.mH
    there = torch.einsum("ab,...ba->...", projector, direct - exchange)
    assert float((here - there).abs().max()) < 1e-13


def test_free_proton_is_positive_and_changes_sign_when_it_wraps():
    """tr P+ < chi chibar > > 0 forward in time; a source moved along T gives the same correlator with t_boundary = -1."""
    lattice, sign = (8, 4, 4, 4), -1
    s = free_propagator(lattice, 0.3, (sign, 1, 1, 1))
    here = proton_correlator(s, t_boundary=sign)
    assert float(here.imag.abs().max()) < 1e-14
    assert bool((here.real[:4] > 0).all())
    moved = s.roll(3, 0)
    moved[:3] *= sign
    there = proton_correlator(moved, source=(3, 0, 0, 0), t_boundary=sign)
    assert float((here - there).abs().max()) < 1e-15
    wrong = proton_correlator(moved, source=(3, 0, 0, 0), t_boundary=1)
    assert float((here + wrong)[5:].abs().max()) < 1e-15
    # The partner of negative parity is the proton going backward: C_-(t) = -(-1)^... C_+(T-t), signs by antiperiodicity.
    partner = proton_correlator(s, parity=-1, t_boundary=sign)
    assert float((partner[1:].flip(0).abs() - here[1:].abs()).abs().max()) < 1e-14


def test_gaussian_smearing_widens_by_its_width():
    """On a cold field n steps of (1 + w^2/(4n) Delta) give mean square radius 6 w^2/4 = 3 w^2/2, exactly, before wrapping."""
    lattice, width, steps = (2, 12, 12, 12), 0.9, 5
    cold = GaugeField.cold(LatticeGeometry(*lattice), dtype=torch.complex128)
    smeared = gaussian_smear(point_columns(lattice, (1, 0, 0, 0)), cold, width, steps)
    assert float(smeared[:, 0].abs().max()) == 0.0
    profile = smeared[0, 1, :, :, :, 0, 0].real.numpy()
    distance = np.minimum(np.arange(12), 12 - np.arange(12)) ** 2.0
    radius = distance[:, None, None] + distance[None, :, None] + distance[None, None, :]
    assert profile.sum() == pytest.approx(1.0, rel=1e-12)
    assert (profile * radius).sum() == pytest.approx(1.5 * width**2, rel=1e-12)
    with pytest.raises(UsageError, match="iterations"):
        gaussian_smear(point_columns(lattice, (0, 0, 0, 0)), cold, width, 0)
    with pytest.raises(UsageError, match="does not fit"):
        gaussian_smear(point_columns((2, 2, 2, 2), (0, 0, 0, 0)), cold, width, 1)


def test_effective_mass_of_a_single_state():
    t = torch.arange(12, dtype=torch.float64)
    correlator = 3.0 * torch.cosh(0.7 * (t - 6.0))
    assert float((effective_mass(correlator) - 0.7).abs().max()) < 1e-11
    assert bool(torch.isnan(effective_mass(-torch.cosh(0.7 * (t - 6.0)).reciprocal())).all())
    with pytest.raises(UsageError, match="odd length"):
        effective_mass(correlator[:11])
