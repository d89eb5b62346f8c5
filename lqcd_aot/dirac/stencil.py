"""The Wilson hop as text: shifts, spin projection, colour multiplication, reconstruction.

    hop psi(x) = -1/2 sum_mu s_mu [(1-g_mu) U_mu(x) psi(x+mu) + (1+g_mu) U_mu(x-mu)^dag psi(x-mu)]

Owns the order of operations and the inner layout. The same text serves complex tensors and the split representation, in which a
colour vector is its real parts followed by its imaginary parts and a link is the real matrix [[Re,-Im],[Im,Re]]: there the
adjoint is the transpose and multiplication by i is a permutation with a sign (`core.shift.times`).

Inner layout: a spinor is four rows (spin) of tensors [T,Z,Y,X,colour,columns]; leading batch dimensions are the columns, so one
colour multiplication serves the whole batch. Shifts are slice + concatenate (a roll has no lowering on every target).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lqcd_aot.core.shift import shifted, times
from lqcd_runtime.conventions import GAMMA_COLUMN, GAMMA_VALUE

Rows = list[torch.Tensor]


def plus(a: torch.Tensor, factor: complex, b: torch.Tensor) -> torch.Tensor:
    """a + factor * b, in one pass where the dtype allows it."""
    factor = complex(factor)
    if factor.imag == 0:
        return torch.add(a, b, alpha=factor.real)
    return torch.add(a, b, alpha=factor) if a.is_complex() else a + times(b, factor)


def to_rows(psi: torch.Tensor) -> Rows:
    """[..., T,Z,Y,X,4,C] -> four tensors [T,Z,Y,X,C,columns]."""
    inner = psi.reshape(-1, *psi.shape[-6:]).permute(1, 2, 3, 4, 5, 6, 0)
    return [inner[:, :, :, :, r].contiguous() for r in range(4)]


def from_rows(rows: Sequence[torch.Tensor], shape: Sequence[int]) -> torch.Tensor:
    """Inverse of `to_rows`, to the given shape."""
    return torch.stack(list(rows), dim=4).permute(6, 0, 1, 2, 3, 4, 5).reshape(tuple(shape))


def adjoint(links: torch.Tensor) -> torch.Tensor:
    """U^dag, as a view where possible; for real (split) links the transpose."""
    return links.mH


def hop_rows(rows: Rows, links: torch.Tensor, phases: Sequence[complex], scales: Sequence[float], dagger: bool = False) -> Rows:
    """The hop on inner rows. links [T,Z,Y,X,4,C,C]; phases[mu] multiplies U_mu on the last slice of direction mu;
    scales[mu] is a real factor of direction mu; dagger exchanges 1-g and 1+g, which is the adjoint."""
    columns = rows[0].shape[-1]
    out: list[torch.Tensor | None] = [None] * 4
    for mu in range(4):
        matrix = links[:, :, :, :, mu]
        for step in (1, -1):
            sign = step if dagger else -step
            column, value = GAMMA_COLUMN[mu], [sign * complex(v) for v in GAMMA_VALUE[mu]]
            # (1 + sign g) psi has two independent rows; rows 2, 3 are sign g times them.
            half = torch.cat([plus(rows[r], value[r], rows[column[r]]) for r in (0, 1)], dim=-1)
            if step == 1:
                half = matrix @ shifted(half, mu, 1, phases[mu])
            else:
                half = shifted(adjoint(matrix) @ half, mu, -1, complex(phases[mu]).conjugate())
            pieces = [half[..., :columns], half[..., columns:]]
            factor = -0.5 * scales[mu]
            for r in range(4):
                piece, weight = (pieces[r], factor) if r < 2 else (pieces[column[r]], factor * value[r])
                previous = out[r]
                out[r] = times(piece, weight) if previous is None else plus(previous, weight, piece)
    return [row for row in out if row is not None]


def hop(
    psi: torch.Tensor,
    links: torch.Tensor,
    phases: Sequence[complex],
    scales: Sequence[float],
    dagger: bool = False,
) -> torch.Tensor:
    """The hop on psi [..., T,Z,Y,X,4,C] with links [T,Z,Y,X,4,C,C]; see `hop_rows`."""
    return from_rows(hop_rows(to_rows(psi), links, phases, scales, dagger), psi.shape)
