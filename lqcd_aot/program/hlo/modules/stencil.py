"""The hop on components: psi [2,4,3,B,T,Z,Y,X], links [2,4,3,3,T,Z,Y,X] with phases and anisotropy folded in.

    hop psi(x) = -1/2 sum_mu [(1-g_mu) U_mu(x) psi(x+mu) + (1+g_mu) U_mu(x-mu)^dag psi(x-mu)]

(1 -+ g_mu) psi has two independent spin rows; all four directions share one colour product. On a slab psi has one more slice of
T on each side and the links one more before: no shift along T then, only slices.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lqcd_aot.program.hlo.modules.parts import cut, shift, times_i, times_links, total
from lqcd_runtime.conventions import GAMMA_COLUMN, GAMMA_VALUE

T_AXIS = -4


def spin_rows(psi: Tensor, columns: Sequence[int], values: Sequence[complex]) -> Tensor:
    """[2,2,...]: row r is values[r] times spin row columns[r] of psi [2,spin,...]. Both values are +-1, or both +-i."""
    first, second = columns
    if second == first + 1:
        rows = cut(psi, 1, first, second + 1)
    else:
        rows = torch.cat([cut(psi, 1, first, first + 1), cut(psi, 1, second, second + 1)], 1)
    units = [complex(v) for v in values]
    if units[0].real == 0:
        rows, units = times_i(rows), [v / 1j for v in units]
    signs = [v.real > 0 for v in units]
    if not any(signs):
        return -rows
    if all(signs):
        return rows
    pieces = [cut(rows, 1, r, r + 1) for r in (0, 1)]
    return torch.cat([piece if sign else -piece for piece, sign in zip(pieces, signs, strict=True)], 1)


def halves(psi: Tensor, mu: int) -> tuple[Tensor, Tensor]:
    """Rows 0, 1 of (1 - g_mu) psi and of (1 + g_mu) psi: [2,2,3,...] each."""
    upper, turned = cut(psi, 1, 0, 2), spin_rows(psi, GAMMA_COLUMN[mu][:2], GAMMA_VALUE[mu][:2])
    return upper - turned, upper + turned


def rebuilt(forward: Sequence[Tensor], backward: Sequence[Tensor]) -> Tensor:
    """sum_mu of the full spinors whose rows 0, 1 are forward[mu] (of 1 - g_mu) and backward[mu] (of 1 + g_mu)."""
    upper = total([*forward, *backward])
    lower = [
        spin_rows(b - f, GAMMA_COLUMN[mu][2:], GAMMA_VALUE[mu][2:])
        for mu, (f, b) in enumerate(zip(forward, backward, strict=True))
    ]
    return torch.cat([upper, total(lower)], 1)


def hop(psi: Tensor, links: Tensor, dagger: bool = False, slab: bool = False) -> Tensor:
    """The hop, or its adjoint (1-g and 1+g exchanged); on a slab the result is two slices of T shorter than psi."""
    inner = cut(psi, T_AXIS, 1, -1) if slab else psi
    ahead, behind = [], []
    for mu in range(4):
        apart = slab and mu == 0
        minus, plus = halves(psi if apart else inner, mu)
        if dagger:
            minus, plus = plus, minus
        ahead.append(cut(minus, T_AXIS, 2) if apart else shift(minus, mu, 1))
        behind.append(cut(plus, T_AXIS, 0, -2) if apart else plus)
    here = there = links
    if slab:
        here = cut(links, T_AXIS, 1)
        there = torch.cat([cut(cut(links, 1, 0, 1), T_AXIS, 0, -1), cut(cut(links, 1, 1), T_AXIS, 1)], 1)
    came = times_links(here, torch.stack(ahead, 1))
    went = times_links(there, torch.stack(behind, 1), adjoint=True)
    forward = [came.select(1, mu) for mu in range(4)]
    backward = [went.select(1, mu) if slab and mu == 0 else shift(went.select(1, mu), mu, -1) for mu in range(4)]
    return -0.5 * (rebuilt(backward, forward) if dagger else rebuilt(forward, backward))
