"""Wilson flow: published numbers, exact damping of a weak wave, order of the integrator, scales."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.core.su_n import deviation
from lqcd_aot.observables import (
    energy_density,
    flow_history,
    flow_scales,
    topological_charge,
    wilson_action,
    wilson_flow,
    wilson_flow_adaptive,
    wilson_flow_step,
)
from lqcd_aot.observables.algebra import expm, wilson_force
from lqcd_runtime.errors import UsageError
from tests.physics.gauge_fields import plane_wave, random_links, transformed
from tests.physics.torch_fields import synthetic as synthetic_links


@pytest.mark.data
def test_charge_along_the_flow_of_a_published_configuration(data_dir):
    """Traceless clover Q of lat.sample.l4448: 0.0955429 at t=0, 0.03898 at t=0.1, 0.00570 at t=0.5, steps of 0.1."""
    history = flow_history(GaugeField.load(data_dir / "milc/lat.sample.l4448"), [0.0, 0.1, 0.5], 0.1)
    assert abs(history[0].charge - 0.0955429) < 5e-8
    assert abs(history[1].charge - 0.03898) < 5e-6
    assert abs(history[2].charge - 0.00570) < 5e-6


def test_a_weak_wave_is_damped_by_its_lattice_momentum():
    """Linearised flow: dA/dt = -phat^2 A for a transverse wave; Runge-Kutta of third order has local error x^4/24."""
    extent, t = 8, 0.4
    phat2 = 4 * math.sin(math.pi / extent) ** 2
    start = plane_wave(extent, 1e-3)
    flowed = wilson_flow(start, t, 0.01)
    ratio = torch.angle(flowed[0, 0, 0, 0, 2, 0, 0]) / torch.angle(start[0, 0, 0, 0, 2, 0, 0])
    # Corrections: amplitude^2, and t/eps steps of (phat^2 eps)^4/24.
    assert float(ratio) == pytest.approx(math.exp(-phat2 * t), abs=1e-6)


def test_the_force_is_minus_the_gradient_of_the_action():
    """d/ds of sum Re tr P under U -> exp(s X) U is sum Re tr(X Z^dag) for X in the algebra; for X = Z it is |Z|^2."""
    links = random_links((2, 3, 2, 4))
    force = wilson_force(links)
    direction = wilson_force(random_links((2, 3, 2, 4), seed=9))
    h = 1e-5
    up, down = (-3.0 * wilson_action(expm(s * direction) @ links, 1.0) for s in (h, -h))
    slope = float((direction * force.conj()).real.sum())
    # Central difference: h^2 truncation and 1e-16 |S|/h rounding.
    assert (up - down) / (2 * h) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_third_order():
    links, t = synthetic_links((4, 2, 2, 2), 0.4), 0.4
    exact = wilson_flow(links, t, t / 256)
    errors = [float((wilson_flow(links, t, t / n) - exact).abs().max()) for n in (8, 16, 32)]
    orders = [math.log2(errors[0] / errors[1]), math.log2(errors[1] / errors[2])]
    assert all(2.7 < order < 3.3 for order in orders), orders


def test_adaptive_agrees_and_lands_on_time():
    links, t = synthetic_links((4, 2, 2, 2), 0.4), 0.5
    exact = wilson_flow(links, t, t / 100)
    for tolerance in (1e-4, 1e-5):
        flowed, steps = wilson_flow_adaptive(links, t, tolerance)
        assert sum(steps) == pytest.approx(t, rel=1e-12)
        # Each accepted step is in error by less than the tolerance, in norm per Nc.
        assert float((flowed - exact).abs().max()) < 3 * tolerance * len(steps)
    coarse, fine = (len(wilson_flow_adaptive(links, t, tolerance)[1]) for tolerance in (1e-3, 1e-5))
    assert coarse < fine


def test_adaptive_repeats_a_step_that_is_too_long():
    links = synthetic_links((4, 2, 2, 2), 0.4)
    flowed, steps = wilson_flow_adaptive(links, 0.5, 1e-5, epsilon=0.5)
    assert steps[0] < 0.1
    assert float((flowed - wilson_flow(links, 0.5, 0.005)).abs().max()) < 3e-5 * len(steps)


def test_the_action_only_falls():
    links = random_links((4, 2, 4, 2))
    actions = [wilson_action(links, 1.0)]
    for _ in range(10):
        links = wilson_flow_step(links, 0.02)
        actions.append(wilson_action(links, 1.0))
    assert all(b < a for a, b in pairwise(actions))


@pytest.mark.parametrize("nc", [2, 3])
def test_covariant_and_in_the_group(nc):
    links = random_links((3, 2, 4, 2), nc)
    other, g = transformed(links)
    flowed, flowed_other = wilson_flow(links, 0.1, 0.05), wilson_flow(other, 0.1, 0.05)
    expected = torch.stack([g @ flowed[..., mu, :, :] @ g.roll(-1, mu).mH for mu in range(4)], 4)
    assert float((flowed_other - expected).abs().max()) < 1e-12
    assert max(deviation(flowed)) < 1e-13


def test_history_and_forms():
    field = GaugeField.random(LatticeGeometry(T=4, Z=2, Y=2, X=4), seed=2, dtype=torch.complex128)
    history = flow_history(field, [0.0, 0.05, 0.2], 0.01)
    assert history[0].energy == energy_density(field)
    again = wilson_flow(wilson_flow(field, 0.05, 0.01), 0.15, 0.01)
    assert isinstance(again, GaugeField)
    # The steps are (0.2 - 0.05)/15 and 0.15/15: equal to one rounding.
    assert history[2].energy == pytest.approx(energy_density(again), rel=1e-12)
    assert history[2].charge == pytest.approx(topological_charge(again), rel=1e-11)
    assert history[2].t2_energy == pytest.approx(0.04 * history[2].energy, rel=1e-14)
    assert torch.equal(wilson_flow(field, 0.0).tensor, field.tensor)
    with pytest.raises(UsageError, match="times fall"):
        flow_history(field, [0.2, 0.1])
    with pytest.raises(UsageError, match="cannot step"):
        wilson_flow(field, -1.0)
    with pytest.raises(UsageError, match="cannot step"):
        wilson_flow_adaptive(field, 1.0, 0.0)


def test_adaptive_flow_ends_where_no_step_can_be_accurate():
    links = synthetic_links((2, 2, 2, 2), 0.4)
    with pytest.raises(UsageError, match="no step is accurate enough"):
        wilson_flow_adaptive(links * math.nan, 0.1)
    with pytest.raises(UsageError, match="no step is accurate enough"):
        wilson_flow_adaptive(links, 0.1, 1e-19)


def test_scales_solve_their_equations():
    """At t0 the adaptively flowed field has t^2 E = reference; at w0^2 the slope measured on a finer grid equals it."""
    links, reference = synthetic_links((4, 4, 4, 4), 0.5), 0.02
    scales = flow_scales(links, 0.4, 0.01, reference=reference)
    assert scales.t0 is not None
    assert scales.w0 is not None
    flowed, _ = wilson_flow_adaptive(links, scales.t0, 1e-7)
    # Linear interpolation on a grid of 0.01: relative 0.01^2/8 times t^2 E''/E, of order 100.
    assert scales.t0**2 * energy_density(flowed) == pytest.approx(reference, rel=5e-3)
    t, h = scales.w0**2, 1e-3
    low, high = flow_history(links, [t - h, t + h], 0.01)
    assert t * (high.t2_energy - low.t2_energy) / (2 * h) == pytest.approx(reference, rel=5e-3)
    assert flow_scales(links, 0.04, 0.02).t0 is None
