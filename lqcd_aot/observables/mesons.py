"""Meson two-point functions for all sixteen gamma structures.

Owns: numbering of the gamma products and the contraction. Refuses to know: how propagators were made. DeGrand-Rossi basis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from lqcd_aot.observables.propagators import check_propagator, project
from lqcd_runtime.conventions import gamma5, gamma_matrices
from lqcd_runtime.errors import UsageError

PION = 15
GAMMA_NAMES = (
    "1", "gX", "gY", "gXgY", "gZ", "gXgZ", "gYgZ", "gXgYgZ", "gT", "gXgT", "gYgT", "gXgYgT", "gZgT", "gXgZgT", "gYgZgT", "g5",
)  # fmt: skip


def gamma_product(n: int) -> Tensor:
    """Gamma(n) = g_X^b0 g_Y^b1 g_Z^b2 g_T^b3, n = b0 + 2 b1 + 4 b2 + 8 b3 (the numbering of QDP++): complex128 [4,4].

    Gamma(0) = 1, Gamma(15) = g5. Errors: UsageError outside 0..15.
    """
    if n not in range(16):
        raise UsageError(f"gamma {n!r}: is not one of the sixteen", expected="0..15", found=n)
    g = torch.from_numpy(gamma_matrices())
    product = torch.eye(4, dtype=torch.complex128)
    for bit, mu in enumerate((3, 2, 1, 0)):
        if n >> bit & 1:
            product = product @ g[mu]
    return product


def meson_density(quark: Tensor, sink: int = PION, source: int | None = None, antiquark: Tensor | None = None) -> Tensor:
    """-tr[ G S(x) Gbar g5 S'(x)^dag g5 ], G = Gamma(sink), Gbar = g_T Gamma(source)^dag g_T: complex128 [T,Z,Y,X].

    This is < O(x) O(0)^dag > of O = qbar' Gamma q; for the pion it is tr S'(x)^dag S(x). quark S and antiquark S' (default S):
    [T,Z,Y,X,4,4,Nc,Nc]; source: default the sink's structure. Only the connected contraction. With point sources S'(0,x) = g5
    S'(x)^dag g5; a smeared source must be smeared alike for both.
    """
    other = quark if antiquark is None else antiquark
    if check_propagator(quark) != check_propagator(other):
        raise UsageError("mesons: propagators differ in lattice", expected=list(quark.shape), found=list(other.shape))
    g5, g_t = torch.from_numpy(gamma5()), torch.from_numpy(gamma_matrices())[0]
    left = g5 @ gamma_product(sink)
    right = g_t @ gamma_product(sink if source is None else source).mH @ g_t @ g5
    s = quark.to(torch.complex128)
    # -tr[left S right S'^dag] over spin and colour.
    turned = torch.einsum("ab,...bcij,cd->...adij", left, s, right)
    return -(turned * other.to(torch.complex128).conj()).sum((-4, -3, -2, -1))


def meson_correlator(
    quark: Tensor,
    sink: int = PION,
    source_gamma: int | None = None,
    *,
    antiquark: Tensor | None = None,
    momentum: Sequence[int] = (0, 0, 0),
    source: Sequence[int] = (0, 0, 0, 0),
    axis: int = 0,
) -> Tensor:
    """C(t) = sum_x exp(-i p.x) < O(x, t) O(0)^dag >, t counted from the source: complex128 [N_axis].

    Arguments: see `meson_density` and `propagators.project`. A meson never feels the sign of antiperiodic quarks.
    """
    return project(meson_density(quark, sink, source_gamma, antiquark), momentum, source, axis)


def meson_correlators(
    quark: Tensor,
    *,
    antiquark: Tensor | None = None,
    momentum: Sequence[int] = (0, 0, 0),
    source: Sequence[int] = (0, 0, 0, 0),
    axis: int = 0,
) -> Tensor:
    """The sixteen diagonal correlators, row n with Gamma(n) at source and sink: complex128 [16, N_axis]."""
    rows = [meson_correlator(quark, n, antiquark=antiquark, momentum=momentum, source=source, axis=axis) for n in range(16)]
    return torch.stack(rows)


def effective_mass(correlator: Tensor) -> Tensor:
    """m(t) solving C(t)/C(t+1) = cosh(m (t - N/2)) / cosh(m (t + 1 - N/2)), t = 0 .. N/2 - 1: float64 [N/2].

    For a correlator symmetric under t -> N - t; nan where the ratio admits no mass. N must be even (UsageError).
    """
    c = correlator.real.double() if correlator.is_complex() else correlator.double()
    n = c.numel()
    if n % 2:
        raise UsageError("effective_mass: correlator has an odd length", expected="an even number of times", found=n)
    masses = torch.full((n // 2,), torch.nan, dtype=torch.float64)
    for t in range(n // 2):
        ratio, a, b = float(c[t] / c[t + 1]), n / 2 - t, n / 2 - t - 1
        # cosh(m a)/cosh(m b) rises from 1 to infinity with m: bisection cannot fail once ratio > 1.
        low, high = 0.0, 1.0
        if not 1.0 < ratio < math.inf:
            continue
        while _cosh_ratio(high, a, b) < ratio:
            high *= 2.0
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if _cosh_ratio(middle, a, b) < ratio else (low, middle)
        masses[t] = 0.5 * (low + high)
    return masses


def _cosh_ratio(m: float, a: float, b: float) -> float:
    """cosh(m a)/cosh(m b) for a >= b >= 0 without overflow."""
    return math.exp(m * (a - b)) * (1.0 + math.exp(-2.0 * m * a)) / (1.0 + math.exp(-2.0 * m * b))
