"""Heatbath: the SU(2) law, detailed balance by exact strong-coupling plaquettes, staples on every extent, reproducibility."""

from __future__ import annotations

import math

import pytest
import torch

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.core.heatbath import CREUTZ_BELOW, Heatbath, _su2_heatbath, heatbath
from lqcd_aot.core.su_n import deviation
from lqcd_aot.observables import plaquette, wilson_action
from lqcd_aot.observables.algebra import wilson_force
from lqcd_runtime.errors import UsageError
from tests.physics.gauge_fields import random_links

COLD = GaugeField.cold(LatticeGeometry(T=4, Z=4, Y=4, X=4), dtype=torch.complex128).tensor


@pytest.mark.parametrize("coupling", [0.01, 0.5, CREUTZ_BELOW - 0.01, CREUTZ_BELOW + 0.01, 6.0, 60.0])
def test_su2_law(coupling):
    """Density exp(a h0) sqrt(1-h0^2): <h0> = I2/I1, <1-h0^2> = 3 I2/(a I1), on both sides of the change of proposal."""
    n = 40_000
    h = torch.stack(_su2_heatbath(torch.full((n,), coupling, dtype=torch.float64), torch.Generator().manual_seed(5)))
    assert float((h.square().sum(0) - 1).abs().max()) < 1e-14
    a = torch.tensor(coupling, dtype=torch.float64)
    i1 = torch.special.i1(a)
    # I2 by its recurrence loses digits at small a; its series does not.
    i2 = torch.special.i0(a) - 2 * i1 / a if coupling > 0.4 else a**2 / 8 * (1 + a**2 / 12)
    mean, spread = float(i2 / i1), float(3 * i2 / (a * i1))
    assert abs(float(h[0].mean()) - mean) < 5 * float(h[0].std()) / math.sqrt(n)
    assert abs(float((1 - h[0].square()).mean()) - spread) < 5 * float(h[0].square().std()) / math.sqrt(n)
    # The direction is uniform: mean 0, equal second moments, spread/3 each.
    for component in h[1:]:
        assert abs(float(component.mean())) < 5 * float(component.std()) / math.sqrt(n)
        assert abs(float(component.square().mean()) - spread / 3) < 5 * float(component.square().std()) / math.sqrt(n)


def one_plaquette(beta, nc):
    """u = <Re tr U / Nc> under exp(beta/Nc Re tr U) by Weyl's integration on a grid (periodic integrand: exact to rounding)."""
    angle = torch.arange(128, dtype=torch.float64) * (2 * math.pi / 128)
    if nc == 2:
        eigen = torch.stack((angle, -angle))
    else:
        x, y = torch.meshgrid(angle, angle, indexing="ij")
        eigen = torch.stack((x, y, -x - y))
    measure = torch.ones_like(eigen[0])
    for i in range(nc):
        for j in range(i):
            measure = measure * (2 - 2 * torch.cos(eigen[i] - eigen[j]))
    trace = torch.cos(eigen).sum(0) / nc
    weight = measure * torch.exp(beta * trace)
    return float((weight * trace).sum() / weight.sum())


def test_one_plaquette_series():
    """beta/18 + beta^2/216 and no cubic term, for SU(3)."""
    assert one_plaquette(0.05, 3) == pytest.approx(0.05 / 18 + 0.05**2 / 216, abs=2 * 0.05**4 / 5000)


@pytest.mark.parametrize(("nc", "beta", "sweeps"), [(3, 1.5, 100), (2, 0.6, 150)])
def test_strong_coupling_plaquette(nc, beta, sweeps):
    """<P> = u + 4 u^5 + O(u^9) in four dimensions: detailed balance of heatbath and overrelaxation together.

    At these couplings sweeps decorrelate in one step; bins of ten sweeps are independent. Bound: four standard errors.
    """
    chain = Heatbath(COLD[..., :nc, :nc], beta, seed=17)
    for _ in range(10):
        chain.sweep()
    history = []
    for _ in range(sweeps):
        chain.sweep()
        history.append(plaquette(torch.stack(chain._links, 1).reshape(4, 4, 4, 4, 4, nc, nc)))
    bins = torch.tensor(history, dtype=torch.float64).reshape(-1, 10).mean(1)
    error = float(bins.std()) / math.sqrt(len(bins))
    u = one_plaquette(beta, nc)
    expected = u + 4 * u**5
    assert error < 0.001
    assert abs(float(bins.mean()) - expected) < 4 * error, (float(bins.mean()), expected, error)
    # It has the power to see a wrong coupling: ten percent of beta would be far outside.
    assert abs(one_plaquette(1.1 * beta, nc) - u) > 8 * error


@pytest.mark.parametrize(("nc", "beta"), [(3, 6.0), (2, 2.3)])
def test_schwinger_dyson_equation(nc, beta):
    """C_F <Re tr U C^dag> = beta/(2 Nc) <|P[U C^dag]|^2>: integration by parts on one link, exact at any beta and volume.

    This is the weak-coupling regime of the proposal that strong coupling never reaches. Bound: four standard errors of bins.
    """
    lattice = (4, 4, 4, 2)
    chain = Heatbath(COLD[:, :, :, :2, :, :nc, :nc], beta, seed=23)
    history = []
    for n in range(130):
        chain.sweep()
        if n >= 30:
            links = torch.stack(chain._links, 1).reshape(*lattice, 4, nc, nc)
            left = (nc * nc - 1) / (2 * nc) * 6 * nc * plaquette(links)
            right = beta / (2 * nc) * float(wilson_force(links).abs().square().sum((-2, -1)).mean())
            history.append((left, left - right))
    bins = torch.tensor(history, dtype=torch.float64).reshape(-1, 10, 2).mean(1)
    error = float(bins[:, 1].std()) / math.sqrt(len(bins))
    assert abs(float(bins[:, 1].mean())) < 4 * error
    # Three percent of beta would be seen.
    assert 4 * error < 0.03 * float(bins[:, 0].mean())


@pytest.mark.parametrize("lattice", [(2, 2, 2, 2), (4, 2, 2, 6), (2, 4, 4, 2)])
def test_the_action_is_linear_in_every_link_with_these_staples(lattice):
    """Changing one link changes sum Re tr P by Re tr (U' - U) C^dag: also where both staples share links (extent 2)."""
    links = random_links(lattice)
    chain = Heatbath(links, 1.0)
    fresh = random_links((2, 2, 2, 2), seed=8)[0, 0, 0, 0, 0]
    x = (1, 0, 1, 1)
    site = torch.tensor([((x[0] * lattice[1] + x[1]) * lattice[2] + x[2]) * lattice[3] + x[3]])
    for mu in range(4):
        changed = links.clone()
        changed[x][mu] = fresh
        staple = chain._staples(mu, site)[0]
        expected = torch.trace((fresh - links[x][mu]) @ staple.mH).real
        difference = -3.0 * (wilson_action(changed, 1.0) - wilson_action(links, 1.0))
        assert difference == pytest.approx(float(expected), abs=1e-10)


@pytest.mark.parametrize("nc", [2, 3, 4])
def test_overrelaxation_keeps_the_action_and_moves_every_link(nc):
    links = random_links((4, 2, 2, 4), nc)
    chain = Heatbath(links, 5.0)
    chain._update(heat=False)
    moved = chain.links
    assert wilson_action(moved, 1.0) == pytest.approx(wilson_action(links, 1.0), rel=1e-12)
    assert float((moved - links).abs().amax((-2, -1)).min()) > 1e-3
    assert max(deviation(moved)) < 1e-13


def test_strong_and_weak_limits():
    geom = LatticeGeometry(T=4, Z=2, Y=2, X=4)
    hot = heatbath(geom, 0.0, 6, seed=3, start="cold")
    # At beta = 0 links are Haar: each of 384 plaquettes has variance 1/18, and 4 standard errors of the mean.
    assert abs(plaquette(hot)) < 4 / math.sqrt(18 * 6 * geom.volume)
    frozen = heatbath(geom, 1e6, 3, seed=3, start="cold")
    # Each of the 8 gluons (3 of 4 polarisations, about) costs T/2: 1 - P = 2/beta.
    assert 1 - plaquette(frozen) == pytest.approx(2e-6, rel=0.1)


def test_s5_every_configuration_is_in_the_group():
    """lqcd-neuron's random and unitarize left determinants off by up to 1.57."""
    field = heatbath(LatticeGeometry(T=4, Z=4, Y=2, X=2), 5.7, 40, seed=1, start="hot")
    assert max(field.deviation()) < 1e-13
    single = heatbath(LatticeGeometry(T=4, Z=4, Y=2, X=2), 5.7, 2, seed=1, dtype=torch.complex64)
    assert single.dtype == torch.complex64
    assert max(single.deviation()) < 1e-6


def test_reproducible_by_seed():
    geom = LatticeGeometry(T=4, Z=2, Y=2, X=2)
    first, again = heatbath(geom, 5.5, 5, seed=4), heatbath(geom, 5.5, 5, seed=4)
    assert torch.equal(first.tensor, again.tensor)
    assert not torch.equal(first.tensor, heatbath(geom, 5.5, 5, seed=5).tensor)
    onwards = heatbath(geom, 5.5, 1, seed=6, start=first)
    assert float((onwards.tensor - first.tensor).abs().max()) > 0.1
    assert torch.equal(heatbath(geom, 5.5, 0, seed=6, start=first).tensor, GaugeField(first.tensor, geom).unitarize().tensor)
    assert torch.equal(GaugeField.heatbath(geom, 5.5, 5, seed=4).tensor, first.tensor)


def test_refusals():
    with pytest.raises(UsageError, match="cannot colour"):
        heatbath(LatticeGeometry(T=4, Z=3, Y=2, X=2), 5.5, 1)
    with pytest.raises(UsageError, match="no weight"):
        heatbath(LatticeGeometry(T=4, Z=2, Y=2, X=2), math.nan, 1)
    with pytest.raises(UsageError, match="no weight"):
        heatbath(LatticeGeometry(T=4, Z=2, Y=2, X=2), -1.0, 1)
    with pytest.raises(UsageError, match="start is not usable"):
        heatbath(LatticeGeometry(T=4, Z=2, Y=2, X=2), 5.5, 1, start="warm")
    with pytest.raises(UsageError, match="not counts"):
        heatbath(LatticeGeometry(T=4, Z=2, Y=2, X=2), 5.5, -1)
    for factor in (1.1, math.nan):
        with pytest.raises(UsageError, match=r"not in SU\(N\)"):
            Heatbath(factor * COLD, 5.5)
    with pytest.raises(UsageError, match="start is not usable"):
        other = GaugeField.cold(LatticeGeometry(T=2, Z=2, Y=2, X=2))
        heatbath(LatticeGeometry(T=4, Z=2, Y=2, X=2), 5.5, 1, start=other)
