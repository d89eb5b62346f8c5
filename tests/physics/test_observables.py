"""Gauge observables against published references, exact fields, symmetries, and loops walked one site at a time."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.dirac import WilsonDirac
from lqcd_aot.observables import (
    energy_density,
    field_strength,
    plaquette,
    plaquette_planes,
    plaquette_tensor,
    polyakov_loop,
    polyakov_loop_spatially_resolved,
    rectangle,
    rectangle_tensor,
    symanzik_action,
    topological_charge,
    topological_charge_density,
    wilson_action,
    wilson_loops,
)
from lqcd_runtime.conventions import PLANES
from lqcd_runtime.errors import UsageError
from tests.physics.gauge_fields import abelian_flux, plane_wave, random_links, reflected, transformed, walk
from tests.physics.torch_fields import synthetic as synthetic_links

TIGHT = 1e-12


def everything(links):
    """All scalar observables of one field, by name."""
    values = {
        "plaquette": plaquette(links),
        "action": wilson_action(links, 6.0),
        "rectangle": rectangle(links),
        "symanzik": symanzik_action(links, 4.0),
        "energy": energy_density(links),
        "charge": topological_charge(links),
        "loop 2x2": float(wilson_loops(links, 2, 2)),
    }
    return values | {f"polyakov {mu}": complex(polyakov_loop(links, mu)) for mu in range(4)}


@pytest.mark.data
def test_weak_field_reference(data_dir):
    d = np.load(data_dir / "wilson_reference_weakfield_4448.npz")
    links = torch.from_numpy(d["U"])
    assert np.abs(plaquette_planes(links).numpy() - d["plaq_planes"]).max() < TIGHT
    assert max(abs(complex(polyakov_loop(links, mu)) - d["polyakov_tzyx"][mu]) for mu in range(4)) < TIGHT
    assert np.abs(field_strength(links, traceless=False).numpy() - d["field_strength_antiherm"]).max() < TIGHT
    density = topological_charge_density(links).numpy()
    assert np.abs(density - d["q_density_clover_traceless"]).max() < TIGHT * np.abs(density).max()
    assert abs(topological_charge(links) - -4.875864e-6) < 5e-13
    assert abs(complex(polyakov_loop(links)) - (0.878769500914 - 0.009913861137j)) < 1e-12
    assert abs(plaquette(links) - 0.994804132266700) < 1e-14


@pytest.mark.data
@pytest.mark.parametrize("index", range(5))
def test_synthetic_reference(data_dir, index):
    r = json.loads((data_dir / "synthetic_reference.json").read_text())[index]
    links = synthetic_links(tuple(r["dims_tzyx"]), r["eps"])
    assert abs(plaquette(links) - r["plaquette"]) < TIGHT
    planes = dict(zip(PLANES, plaquette_planes(links).tolist(), strict=True))
    for key, value in r["planes_tzyx"].items():
        assert abs(planes[int(key[0]), int(key[1])] - value) < TIGHT
    assert abs(sum(planes[p] for p in PLANES[:3]) / 3 - r["plaq_time"]) < TIGHT
    assert wilson_action(links, 6.0) == pytest.approx(r["wilson_action_beta6"], rel=TIGHT)
    for mu in range(4):
        assert abs(complex(polyakov_loop(links, mu)) - complex(*r["polyakov_tzyx"][mu])) < TIGHT
    assert topological_charge(links) == pytest.approx(r["topo_clover_traceless"], rel=TIGHT, abs=1e-15)
    assert energy_density(links) == pytest.approx(r["clover_energy_density"], rel=TIGHT)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "value", "charge"),
    [
        ("milc/lat.sample.l4444", 0.594850158947151, None),
        ("milc/lat.sample.l4448", 0.569055724369011, 0.095542880),
        ("milc/lat.sample.l8888", 0.593560240432841, None),
        ("pyquda/weak_field.lime", 0.994804132266700, -4.875864e-6),
        ("qdpxx/t_dprec_ildg.lime", 0.038242289409576, None),
    ],
)
def test_published_configurations(data_dir, name, value, charge):
    field = GaugeField.load(data_dir / name)
    assert abs(plaquette(field) - value) < 2e-14
    if charge is not None:
        assert abs(topological_charge(field) - charge) < 5e-10


@pytest.mark.parametrize("nc", [2, 3, 4])
def test_loops_walked_one_site_at_a_time(nc):
    lattice = (3, 2, 4, 2)
    links = random_links(lattice, nc)
    plaquettes, rectangles = plaquette_tensor(links), rectangle_tensor(links)
    resolved = [polyakov_loop_spatially_resolved(links, mu) for mu in range(4)]
    for x in ((0, 0, 0, 0), (2, 1, 3, 1), (1, 0, 2, 1)):
        for p, (mu, nu) in enumerate(PLANES):
            a, b = mu + 1, nu + 1
            assert abs(np.trace(walk(links, x, (a, b, -a, -b))).real - float(plaquettes[x][p])) < TIGHT
            for q, (i, j) in enumerate(((a, b), (b, a))):
                loop = walk(links, x, (i, i, j, -i, -i, -j))
                assert abs(np.trace(loop).real - float(rectangles[x][2 * p + q])) < TIGHT
        for mu in range(4):
            site = tuple(n for axis, n in enumerate(x) if axis != mu)
            start = [*x]
            start[mu] = 0
            line = walk(links, start, (mu + 1,) * lattice[mu])
            assert abs(np.trace(line) / nc - complex(resolved[mu][site])) < TIGHT


def test_wilson_loops_walked_one_site_at_a_time():
    lattice = (3, 2, 2, 3)
    links = random_links(lattice)
    total = 0.0
    for x in np.ndindex(*lattice):
        for k in (2, 3, 4):
            total += np.trace(walk(links, x, (k, k, 1, 1, 1, -k, -k, -1, -1, -1))).real
    expected = total / (3 * 3 * np.prod(lattice))
    table = wilson_loops(links, [1, 2], [1, 3])
    assert table.shape == (2, 2)
    assert abs(float(table[1, 1]) - expected) < TIGHT
    assert abs(float(table[0, 0]) - float(plaquette_planes(links)[:3].mean())) < TIGHT


def test_cold_field():
    field = GaugeField.cold(LatticeGeometry(T=4, Z=2, Y=3, X=2))
    assert plaquette(field) == 1.0
    values = everything(field)
    for name, value in values.items():
        expected = 0.0 if name in ("action", "symanzik", "energy", "charge") else 1.0
        assert value == pytest.approx(expected, abs=1e-12), name


@pytest.mark.parametrize("nc", [2, 3])
def test_gauge_invariance(nc):
    links = random_links((4, 3, 2, 4), nc)
    other, _ = transformed(links)
    for name, value in everything(links).items():
        scale = max(1.0, abs(value))
        assert abs(everything(other)[name] - value) < TIGHT * scale, name


def test_translation_invariance():
    links = synthetic_links((4, 3, 2, 5), 0.4)
    moved = links.roll((1, 2, 1, 3), (0, 1, 2, 3))
    for name, value in everything(links).items():
        assert abs(everything(moved)[name] - value) < TIGHT * max(1.0, abs(value)), name


def test_parity_turns_the_charge_and_nothing_else():
    links = synthetic_links((4, 4, 4, 4), 0.5)
    before, after = everything(links), everything(reflected(links))
    assert abs(before["charge"]) > 1e-3
    assert after["charge"] == pytest.approx(-before["charge"], rel=1e-12)
    assert everything(reflected(reflected(links)))["charge"] == pytest.approx(before["charge"], rel=1e-12)
    for name in ("plaquette", "rectangle", "energy", "loop 2x2", "polyakov 0"):
        assert abs(after[name] - before[name]) < TIGHT, name


def test_s1_every_clover_leaf_is_based_at_its_site():
    """lqcd-neuron based three of four leaves elsewhere, so F was not covariant and Q changed under gauge transformations."""
    links = random_links((3, 4, 2, 3))
    other, g = transformed(links)
    f, f_other = field_strength(links), field_strength(other)
    covariant = g[..., None, :, :] @ f @ g.mH[..., None, :, :]
    assert float((f_other - covariant).abs().max()) < TIGHT
    x = (1, 2, 1, 0)
    for p, (mu, nu) in enumerate(PLANES):
        a, b = mu + 1, nu + 1
        leaves = sum(walk(links, x, q) for q in ((a, b, -a, -b), (b, -a, -b, a), (-a, -b, a, b), (-b, a, b, -a)))
        by_hand = (leaves - leaves.conj().T) / 8
        by_hand = by_hand - np.trace(by_hand) / 3 * np.eye(3)
        assert np.abs(f[x][p].numpy() - by_hand).max() < TIGHT


@pytest.mark.parametrize(("n_tz", "n_yx"), [(1, 1), (1, -2), (2, 1)])
def test_s2_charge_of_constant_flux_has_its_exact_value(n_tz, n_yx):
    """Flux n in two planes of diag(1,-1,0): Q = 2 n n' in the continuum, V 2 sin(phi) sin(chi)/(4 pi^2) by clover leaves.

    lqcd-neuron's prefactor was half of that and its F kept the trace.
    """
    lattice = (8, 6, 6, 8)
    links, phi, chi = abelian_flux(lattice, n_tz, n_yx)
    expected = np.prod(lattice) * 2 * math.sin(phi) * math.sin(chi) / (4 * math.pi**2)
    assert topological_charge(links) == pytest.approx(expected, rel=1e-12)
    assert abs(expected - 2 * n_tz * n_yx) < 0.15 * abs(2 * n_tz * n_yx)
    energy = 2 * (math.sin(phi) ** 2 + math.sin(chi) ** 2)
    assert energy_density(links) == pytest.approx(energy, rel=1e-12)
    assert plaquette(links) == pytest.approx((4 + (2 * math.cos(phi) + 1 + 2 * math.cos(chi) + 1) / 3) / 6, rel=1e-12)


def test_s2_the_field_strength_is_traceless():
    links = random_links((2, 3, 2, 3))
    f = field_strength(links)
    assert float(f.diagonal(dim1=-2, dim2=-1).sum(-1).abs().max()) < 1e-14
    assert float((f + f.mH).abs().max()) < 1e-14
    with_trace = field_strength(links, traceless=False)
    assert float(with_trace.diagonal(dim1=-2, dim2=-1).sum(-1).abs().max()) > 0.01


def test_s7_the_fermion_boundary_sign_never_reaches_gauge_loops():
    field = GaugeField.random(LatticeGeometry(T=4, Z=2, Y=2, X=4), seed=3, dtype=torch.complex128)
    before = everything(field)
    psi = torch.ones(field.geom.spinor_shape, dtype=torch.complex128)
    antiperiodic, periodic = WilsonDirac(0.1, t_boundary=-1)(psi, field), WilsonDirac(0.1)(psi, field)
    assert float((antiperiodic - periodic).abs().max()) > 0.1
    assert everything(field) == before
    signed = field.tensor.clone()
    signed[-1, :, :, :, 0] *= -1
    assert complex(polyakov_loop(signed)) == pytest.approx(-before["polyakov 0"], rel=1e-12)
    assert plaquette(signed) == pytest.approx(before["plaquette"], rel=1e-12)


def test_symanzik_action_is_wilson_plus_rectangles():
    links = random_links((3, 2, 4, 2))
    volume = 3 * 2 * 4 * 2
    assert symanzik_action(links, 5.0, 0.0) == pytest.approx(wilson_action(links, 5.0), rel=1e-12)
    c1 = -1.0 / 12.0
    by_hand = 5.0 * volume * ((1 - 8 * c1) * 6 * (1 - plaquette(links)) + c1 * 12 * (1 - rectangle(links)))
    assert symanzik_action(links, 5.0) == pytest.approx(by_hand, rel=1e-12)


def test_symanzik_action_is_improved_on_a_weak_wave():
    """A transverse wave costs phat^2 by plaquettes, phat^2 - c1 phat^4 with rectangles: p^2 + O(p^6) at c1 = -1/12."""
    extent = 12
    links = plane_wave(extent, 1e-3)
    p = 2 * math.pi / extent
    phat2 = 4 * math.sin(p / 2) ** 2
    # Quartic terms are relatively amplitude^2, rounding 1e-16/amplitude^2.
    assert symanzik_action(links, 1.0) / wilson_action(links, 1.0) == pytest.approx(1 + phat2 / 12, abs=1e-6)
    assert abs(phat2 * (1 + phat2 / 12) / p**2 - 1) < p**4 / 50 < abs(phat2 / p**2 - 1)


def test_single_precision_and_field_class_agree():
    field = GaugeField.random(LatticeGeometry(T=4, Z=4, Y=2, X=2), seed=5)
    exact = everything(field.tensor.to(torch.complex128))
    for name, value in everything(field).items():
        # Random signs: relative rounding 6e-8 times sqrt(operations) of at most 400 sites.
        assert abs(value - exact[name]) < 1e-5 * max(1.0, abs(exact[name])), name
    assert isinstance(plaquette(field), float)
    assert isinstance(topological_charge(field), float)
    assert polyakov_loop(field).is_complex()


def test_bad_input_is_named():
    with pytest.raises(UsageError, match="wrong shape"):
        plaquette(torch.zeros(2, 2, 2, 2, 3, 3, 3, dtype=torch.complex128))
    with pytest.raises(UsageError, match="not complex"):
        plaquette(torch.zeros(2, 2, 2, 2, 4, 3, 3))
    with pytest.raises(UsageError, match="not a GaugeField"):
        plaquette([1.0])
    with pytest.raises(UsageError, match="direction 4"):
        polyakov_loop(random_links((2, 2, 2, 2)), 4)
    with pytest.raises(UsageError, match="side"):
        wilson_loops(random_links((2, 2, 2, 2)), 0, 1)
