"""Meson two-point functions at zero momentum, and effective masses.

Owns the contraction of propagators in the DeGrand-Rossi basis and the numbering of the sixteen gamma structures. Knows
no solver.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.conventions import gamma5, gamma_matrices
from lqcd_runtime.errors import UsageError
from lqcd_runtime.scalars import whole
from lqcd_runtime.signature import suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.observables.propagator import Propagator

# Gamma(n) = g_X^b0 g_Y^b1 g_Z^b2 g_T^b3 with n = b0 + 2 b1 + 4 b2 + 8 b3, the numbering of QDP++.
MESONS = {
    "scalar": 0, "rho_x": 1, "rho_y": 2, "rho_z": 4, "b1_z": 3, "b1_y": 5, "b1_x": 6, "axial_t": 7, "vector_t": 8, "tensor_tx": 9,
    "tensor_ty": 10, "axial_z": 11, "tensor_tz": 12, "axial_y": 13, "axial_x": 14, "pion": 15,
}  # fmt: skip


def gamma_structure(name: str | int) -> NDArray[np.complex128]:
    """Gamma(n) by word of MESONS or number 0..15: complex128 [4,4]. Errors: UsageError."""
    number = MESONS.get(name, -1) if isinstance(name, str) else whole(name, "meson")
    if number not in range(16):
        raise UsageError(f"meson {name!r}: is not known{suggest(str(name), MESONS)}", expected=", ".join(MESONS) + ", or 0..15")
    g = gamma_matrices()
    product = np.eye(4, dtype=np.complex128)
    for bit, mu in enumerate((3, 2, 1, 0)):
        if number >> bit & 1:
            product = product @ g[mu]
    return product


def meson_correlator(prop: Propagator, name: str | int = "pion", source: str | int | None = None) -> NDArray[np.complex128]:
    """C(t) = - sum_x tr[ G S(x) Gbar g5 S(x)^dag g5 ], Gbar = g_T G_source^dag g_T: complex128 [T], t counted from the
    source.

    The connected two-point function of qbar' G q with degenerate quarks; G by `gamma_structure`, G_source = G unless
    `source` is given. The sign of antiperiodic quarks cancels. Where the source has no time slice, t is the lattice's.
    Errors: UsageError.
    """
    g5, g_t = gamma5(), gamma_matrices()[0]
    left = g5 @ gamma_structure(name)
    right = g_t @ gamma_structure(name if source is None else source).conj().T @ g_t @ g5
    t_extent = prop.lattice[0]
    s = prop.data.reshape(t_extent, -1, 4, 3, 4, 3).astype(np.complex128, copy=False)
    turned = np.einsum("ab,txbidj,de->txaiej", left, s, right, optimize=True)
    c = -np.einsum("txaiej,txaiej->t", turned, s.conj())
    return np.roll(c, -(prop.time or 0))


def pion_correlator(prop: Propagator) -> NDArray[np.float64]:
    """C(t) = sum_x tr S(x)^dag S(x), the pion at zero momentum: float64 [T], t counted from the source; never negative."""
    parts = prop.data.reshape(prop.lattice[0], -1)
    c: NDArray[np.float64] = np.sum(parts.real.astype(np.float64) ** 2 + parts.imag.astype(np.float64) ** 2, axis=1)
    return np.roll(c, -(prop.time or 0))


def effective_mass(correlator: Any, kind: str = "cosh") -> NDArray[np.float64]:
    """m(t) in lattice units, NaN where the correlator admits none: float64 [T].

    kind "cosh": arcosh[(C(t-1) + C(t+1)) / 2 C(t)], exact for any sum of one mass running forward and backward, with
    periodic t; kind "log": ln[C(t) / C(t+1)], exact for one mass running forward, NaN at the last t. Errors: UsageError
    for another kind.
    """
    if kind not in ("cosh", "log"):
        raise UsageError(f"effective mass {kind!r}: is not known", expected="cosh, log")
    c = np.real(np.asarray(correlator)).astype(np.float64)
    with np.errstate(all="ignore"):
        if kind == "cosh":
            ratio = (np.roll(c, 1) + np.roll(c, -1)) / (2 * c)
            return np.where(ratio >= 1.0, np.arccosh(np.maximum(ratio, 1.0)), np.nan)
        mass = np.log(c / np.roll(c, -1))
        mass[-1] = np.nan
        return np.where(np.isfinite(mass), mass, np.nan)
