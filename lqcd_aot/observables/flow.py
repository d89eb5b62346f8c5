"""Wilson (gradient) flow: steps, adaptive integration, E(t), Q(t), and the scales t0 and w0.

Owns: the integrators and the definition of the scales. Refuses to know: files, beta (flow time is in lattice units a^2).
Source: M. Luescher, JHEP 08 (2010) 071 [flow, third-order Runge-Kutta, t0]; S. Borsanyi et al., JHEP 09 (2012) 010 [w0];
P. Fritzsch, A. Ramos, JHEP 10 (2013) 008 [adaptive step].
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lqcd_aot.observables.algebra import expm, wilson_force
from lqcd_aot.observables.clover import energy_density, topological_charge
from lqcd_aot.observables.links import links_of, wrap
from lqcd_runtime.errors import UsageError


class FlowPoint(NamedTuple):
    """One measurement on the flow: time t (a^2), E(t) (a^-4, clover), t^2 E(t), Q(t)."""

    t: float
    energy: float
    t2_energy: float
    charge: float


def _third_order(links: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """One step, with the first two forces (times epsilon) that an embedded second-order step needs."""
    z0 = epsilon * wilson_force(links)
    w1 = expm(0.25 * z0) @ links
    z1 = epsilon * wilson_force(w1)
    middle = (8.0 / 9.0) * z1 - (17.0 / 36.0) * z0
    w2 = expm(middle) @ w1
    return expm(0.75 * epsilon * wilson_force(w2) - middle) @ w2, z0, z1


def wilson_flow_step(field: Any, epsilon: float) -> Any:
    """One Runge-Kutta step of size epsilon of dV/dt = Z(V) V, Z = P[C V^dag]; local error O(epsilon^4).

    W1 = exp(Z0/4) V, W2 = exp(8/9 Z1 - 17/36 Z0) W1, V' = exp(3/4 Z2 - 8/9 Z1 + 17/36 Z0) W2, Zi = epsilon Z(Wi).
    Returns the form it was given (GaugeField or tensor).
    """
    return wrap(field, _third_order(links_of(field), float(epsilon))[0])


def wilson_flow(field: Any, t: float, epsilon: float = 0.01) -> Any:
    """The field flowed to time t by equal steps of at most epsilon. Errors: UsageError for t < 0 or epsilon <= 0."""
    if not (t >= 0.0 and epsilon > 0.0):
        raise UsageError("wilson_flow: cannot step", expected="t >= 0 and epsilon > 0", found=f"t={t}, epsilon={epsilon}")
    steps = max(1, _ceil(t / epsilon)) if t > 0.0 else 0
    for _ in range(steps):
        field = wilson_flow_step(field, t / steps)
    return field


def _ceil(x: float) -> int:
    """Ceiling that forgives rounding of t / epsilon (0.3 / 0.1 is 3 steps, not 4)."""
    nearest = round(x)
    return nearest if abs(x - nearest) < 1e-9 * max(1.0, x) else int(x) + 1


def wilson_flow_adaptive(field: Any, t: float, tolerance: float = 1e-6, epsilon: float = 0.01) -> tuple[Any, list[float]]:
    """The field flowed to time t with steps chosen so that the local error stays below `tolerance`; and the steps taken.

    Error of a step: max over links of |V' - V'_second| (Frobenius) / Nc; the next step is 0.95 (tolerance/error)^(1/3) times this
    one; a step with error above tolerance is done again. epsilon: first step. Errors: UsageError as wilson_flow, for
    links that are not finite, and for a tolerance that rounding cannot meet.
    """
    if not (t >= 0.0 and epsilon > 0.0 and tolerance > 0.0):
        raise UsageError(
            "wilson_flow_adaptive: cannot step",
            expected="t >= 0, epsilon > 0 and tolerance > 0",
            found=f"t={t}, epsilon={epsilon}, tolerance={tolerance}",
        )
    links = links_of(field)
    nc = links.shape[-1]
    now, taken = 0.0, list[float]()
    while t - now > 1e-14 * max(t, 1.0):
        epsilon = min(epsilon, t - now)
        third, z0, z1 = _third_order(links, epsilon)
        second = expm(2.0 * z1 - z0) @ links
        error = float((third - second).abs().square().sum((-2, -1)).max().sqrt()) / nc
        if error <= tolerance:
            links, now = third, now + epsilon
            taken.append(epsilon)
        # An exact zero (cold field) would divide by zero; growth is capped so that one lucky step cannot overshoot.
        epsilon *= min(4.0, 0.95 * (tolerance / error) ** (1.0 / 3.0)) if error > 0.0 else 4.0
        # Not finite links have no error to control; a tolerance below rounding would shrink steps for ever.
        if not math.isfinite(error) or epsilon < 1e-9 * t:
            raise UsageError(
                "wilson_flow_adaptive: no step is accurate enough",
                expected=f"finite links and a tolerance above rounding ({torch.finfo(links.dtype).eps:.0e})",
                found=f"error {error:.1e} at a step of {taken[-1] if taken else epsilon:.1e}, tolerance {tolerance:.1e}",
            )
    return wrap(field, links), taken


def flow_history(field: Any, times: Iterable[float], epsilon: float = 0.01) -> list[FlowPoint]:
    """E(t), t^2 E(t) and Q(t) at the given increasing times, by fixed steps of at most epsilon."""
    history, now = [], 0.0
    for t in times:
        if t < now:
            raise UsageError("flow_history: times fall", expected="increasing times >= 0", found=f"{t} after {now}")
        field, now = wilson_flow(field, t - now, epsilon), t
        energy = energy_density(field)
        history.append(FlowPoint(t, energy, t * t * energy, topological_charge(field)))
    return history


class FlowScales(NamedTuple):
    """t0 / a^2 and w0 / a; None where the flow ended before the reference value was crossed. history: what was measured."""

    t0: float | None
    w0: float | None
    history: list[FlowPoint]


def flow_scales(field: Any, t_max: float, epsilon: float = 0.02, *, reference: float = 0.3) -> FlowScales:
    """t0 and w0 on one configuration: t^2 E(t) = reference at t0, and t d/dt (t^2 E) = reference at t = w0^2.

    E is measured after each step of `epsilon`; the derivative is the central difference; crossings by linear interpolation.
    Scales are defined on the ensemble average: average `history` over configurations first for physics.
    """
    steps = max(2, _ceil(t_max / epsilon))
    history = flow_history(field, [epsilon * k for k in range(steps + 1)], epsilon)
    value = [point.t2_energy for point in history]
    times = [point.t for point in history]
    slope = [times[i] * (value[i + 1] - value[i - 1]) / (2.0 * epsilon) for i in range(1, steps)]
    w0_squared = _crossing(times[1:-1], slope, reference)
    t0 = _crossing(times, value, reference)
    return FlowScales(t0, None if w0_squared is None else w0_squared**0.5, history)


def _crossing(times: list[float], values: list[float], reference: float) -> float | None:
    """First time where values rise through reference, linearly interpolated; None where they never do."""
    for i in range(1, len(values)):
        low, high = values[i - 1], values[i]
        if low < reference <= high:
            return times[i - 1] + (times[i] - times[i - 1]) * (reference - low) / (high - low)
    return None
