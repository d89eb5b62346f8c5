"""The clover term in numpy, for targets whose programs take it as a parameter.

    C = -1/2 sum_{mu<nu} g_mu g_nu F_{mu nu}     (csw = 1),   F = (Q - Q^dag)/8, Q the four leaves based at x, trace kept

Owns the term and the inverse of the diagonal it belongs to. From links without boundary phases: the loops are closed.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.conventions import PLANES, gamma_matrices
from lqcd_runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    Complex = NDArray[np.complexfloating[Any, Any]]


def field_strength(links: Complex, mu: int, nu: int) -> Complex:
    """F_{mu nu} [T,Z,Y,X,3,3], anti-Hermitian, trace kept; links [T,Z,Y,X,4,3,3]."""
    u, v = links[..., mu, :, :], links[..., nu, :, :]
    ud, vd = _adjoint(u), _adjoint(v)
    # The four leaves from x, each walked as it stands: up-left, left-down, down-right, right-up in the mu-nu plane.
    leaves = u @ _at(v, mu, 1) @ _adjoint(_at(u, nu, 1)) @ vd
    leaves = leaves + v @ _adjoint(_at(_at(u, nu, 1), mu, -1)) @ _at(vd, mu, -1) @ _at(u, mu, -1)
    corner = _at(_at(v, mu, -1), nu, -1)
    leaves = leaves + _at(ud, mu, -1) @ _adjoint(corner) @ _at(_at(u, mu, -1), nu, -1) @ _at(v, nu, -1)
    leaves = leaves + _at(vd, nu, -1) @ _at(u, nu, -1) @ _at(_at(v, nu, -1), mu, 1) @ ud
    strength: Complex = (leaves - _adjoint(leaves)) / 8
    return strength


def clover_term(links: Complex) -> Complex:
    """C for csw = 1: its two chiral blocks [T,Z,Y,X,2,6,6], rows and columns 3 spin + colour; Hermitian."""
    gammas = gamma_matrices()
    out: NDArray[Any] = np.zeros((*links.shape[:4], 2, 2, 3, 2, 3), links.dtype)
    for mu, nu in PLANES:
        strength, turn = field_strength(links, mu, nu), -0.5 * gammas[mu] @ gammas[nu]
        for chirality in (0, 1):
            block = turn[2 * chirality : 2 * chirality + 2, 2 * chirality : 2 * chirality + 2].astype(links.dtype)
            out[..., chirality, :, :, :, :] += np.einsum("st,...ab->...satb", block, strength)
    return out.reshape(*links.shape[:4], 2, 6, 6)


def inverse_diagonal(term: Complex, diagonal: float, csw: float) -> Complex:
    """(diagonal + csw C)^-1 of every block given. Errors: UsageError where one is singular."""
    blocks: Any = csw * term + diagonal * np.eye(6, dtype=term.dtype)
    try:
        inverse: Complex = np.linalg.inv(blocks)
    except np.linalg.LinAlgError as err:
        raise UsageError(
            f"diagonal {diagonal}, csw {csw}: the clover diagonal is singular on some site",
            expected="4+m + clover term invertible on every odd site", hint="use the full operator",
        ) from err  # fmt: skip
    return inverse


def _adjoint(a: Complex) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


def _at(a: Complex, mu: int, step: int) -> Any:
    """a(x + step mu)."""
    return np.roll(a, -step, axis=mu)
