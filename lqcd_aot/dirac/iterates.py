"""What a solver artifact must hold after a few iterations, and how far rounding may take it from that: the judge of kind solver.

The algorithms are the textbook's, written once more over torch modules in complex128; every vector and scalar carries an estimate
of its rounding error to first order ("running error analysis", J. Wilkinson, Comp. J. 29 (1986) 86), in units u of the artifact's
arithmetic. A vector's is a root mean square over components, a scalar's is relative. Roundings do not know each other, so K of
them add up like their squares (as in lqcd_runtime.witness_bound); what a scalar does to a vector adds up as it is:

    A v        |A| (e(v) + sqrt(K) rms(v))        K paths of one application; |A| <= d + 4, Schur below;
               clover has 3 csw more, twisted |mu|
    y + a v    e(y) + |a| (e(v) + rel(a) rms(v)) + 2 (rms(y) + |a| rms(v))
    (v, w)     n (e(v) rms(w) + e(w) rms(v) + 5 rms(v) rms(w)), relative to |(v, w)|;  24 terms are added in that arithmetic

Two errors are followed side by side: that of the arithmetic, in units u, and that of vectors stored in halves, in units u_s of
the storage: there K is the roundings of storage on a path (witness_bound.stored_path), |A| the factor for vectors that do not
know A, a stored sum rounds once, x is kept as computed.

By Hoeffding's inequality no component is off by more than 8 times that, but with probability below 2 exp(-32). The bound follows
from the numbers of the run itself; no condition number has to be guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lqcd_aot.dirac.judge import module_for
from lqcd_runtime.signature import OPERATORS
from lqcd_runtime.witness_bound import diagonal_of, dirac, dirac_likely, stored_path

_DEVIATIONS = 8.0
# Roundings of arithmetic, of storage: in a dot product, in a sum of vectors, in a scalar operation.
_DOT, _SUM, _SCALAR = np.array([5.0, 0.0]), np.array([2.0, 1.0]), np.array([2.0, 0.0])
_KEPT = np.array([2.0, 0.0])  # a sum that is not stored in halves
Errors = NDArray[np.float64]


class Tracked(NamedTuple):
    """A vector and the root mean square of its error, in units of u and of u_s."""

    value: torch.Tensor
    error: Errors

    @property
    def rms(self) -> float:
        return float(self.value.norm()) / math.sqrt(self.value.numel())


class Number(NamedTuple):
    """A scalar and its relative error, in units of u and of u_s."""

    value: complex
    error: Errors

    def over(self, other: Number) -> Number:
        return Number(self.value / other.value, self.error + other.error + _SCALAR)

    def times(self, other: Number) -> Number:
        return Number(self.value * other.value, self.error + other.error + _SCALAR)


class Iterate(NamedTuple):
    """x on all sites; how far a component may be off, in units of u and of u_s; root mean square of one."""

    x: torch.Tensor
    error: tuple[float, float, float]


def iterate(
    operator: str,
    psi: Any,
    links: Any,
    iterations: int,
    *,
    mass: float,
    csw: float = 0.0,
    mu: float = 0.0,
    phases: Sequence[complex] | None = None,
    anisotropy: tuple[float, float] = (1.0, 1.0),
) -> Iterate:
    """x of a solver word ("wilson_schur_cg") after some iterations from zero, for the right-hand side psi [T,Z,Y,X,4,3]."""
    entry = OPERATORS[operator]
    system, method = entry["solves"], entry["method"]
    module: Any = module_for(system, mass=mass, csw=csw, mu=mu, phases=phases, anisotropy=anisotropy)
    U, b = torch.as_tensor(links).to(torch.complex128), torch.as_tensor(psi).to(torch.complex128)
    ratio = anisotropy[1] / anisotropy[0]
    root = np.sqrt([dirac(system, {"mass": mass, "csw": csw}, ratio)[0], stored_path(system)])
    size = np.array([largest_factor(system, mass, csw, ratio), likely_factor(system, mass, csw, ratio)])

    def apply(form: str) -> Callable[[Tracked], Tracked]:
        def product(v: Tracked) -> Tracked:
            return Tracked(getattr(module, form)(v.value, U), size * (v.error + root * v.rms))

        return product

    size += abs(mu)  # |diagonal + i mu gamma_5| <= diagonal + |mu|
    even_odd = entry["parity"] == "even"
    source = Tracked(b, np.ones(2))
    if even_odd:
        # b' takes one hop and one inverse, which one application of S bounds from above.
        source = Tracked(module.even_source(b, U), size * (1 + root))
    if method == "cg":
        x = _conjugate_gradient(apply("forward"), apply("dagger"), source, iterations)
    else:
        x = _bicgstab(apply("forward"), source, iterations)
    if not even_odd:
        return _judged(x.value, x.error)
    # x_o takes one hop and one inverse, which together do not enlarge x_e where m >= 3 csw.
    return _judged(module.full_solution(x.value, b, U), x.error + root * (x.rms + 1))


def likely_factor(system: str, mass: float, csw: float, ratio: float = 1.0) -> float:
    """By how much an operator lengthens a vector that does not know it, such as the roundings of halves."""
    _, size = dirac_likely(system, {"mass": mass, "csw": csw}, ratio)
    return size / math.sqrt(2.0 / 3.0)


def largest_factor(system: str, mass: float, csw: float, ratio: float = 1.0) -> float:
    """Bound on the 2-norm, twist apart: every direction of the hop is an isometry, |F| <= 1, A between d -/+ 3 csw."""
    diagonal, hop = diagonal_of({"mass": mass}, ratio), 1.0 + 3.0 * ratio
    clover = 3.0 * abs(csw) if system.startswith("clover") else 0.0
    if system.endswith("_schur"):
        return diagonal + clover + hop**2 / (diagonal - clover)
    return diagonal + clover + hop


def _judged(x: torch.Tensor, error: Errors) -> Iterate:
    whole = Tracked(x, _DEVIATIONS * error)
    return Iterate(x, (float(whole.error[0]), float(whole.error[1]), whole.rms))


def _sum(y: Tracked, a: Number, v: Tracked, roundings: Errors = _SUM) -> Tracked:
    size = abs(a.value)
    rounding = roundings * (y.rms + size * v.rms)
    return Tracked(y.value + a.value * v.value, y.error + size * (v.error + a.error * v.rms) + rounding)


def _inner(v: Tracked, w: Tracked) -> Number:
    value = complex(torch.vdot(v.value.reshape(-1), w.value.reshape(-1)))
    error = v.error * w.rms + w.error * v.rms + _DOT * v.rms * w.rms
    return Number(value, v.value.numel() * error / abs(value))


def _minus(a: Number) -> Number:
    return Number(-a.value, a.error)


def _conjugate_gradient(
    forward: Callable[[Tracked], Tracked], dagger: Callable[[Tracked], Tracked], b: Tracked, iterations: int
) -> Tracked:
    r = p = dagger(b)
    x = Tracked(torch.zeros_like(b.value), np.zeros(2))
    rr = _inner(r, r)
    for _ in range(iterations):
        w = forward(p)
        alpha = rr.over(_inner(w, w))
        x = _sum(x, alpha, p, _KEPT)
        r = _sum(r, _minus(alpha), dagger(w))
        old, rr = rr, _inner(r, r)
        p = _sum(r, rr.over(old), p)
    return x


def _bicgstab(forward: Callable[[Tracked], Tracked], b: Tracked, iterations: int) -> Tracked:
    r = p = shadow = b
    x = Tracked(torch.zeros_like(b.value), np.zeros(2))
    rho = _inner(shadow, r)
    for _ in range(iterations):
        v = forward(p)
        alpha = rho.over(_inner(shadow, v))
        s = _sum(r, _minus(alpha), v)
        t = forward(s)
        omega = _inner(t, s).over(_inner(t, t))
        x = _sum(_sum(x, alpha, p, _KEPT), omega, s, _KEPT)
        r = _sum(s, _minus(omega), t)
        old, rho = rho, _inner(shadow, r)
        p = _sum(r, rho.over(old).times(alpha.over(omega)), _sum(p, _minus(omega), v))
    return x
