"""One iteration of conjugate gradients, every column with its own scalars; a chunk repeats it.

    q = A p; alpha = rr / p^dag A p; x += alpha p; r -= alpha q; rr' = r^dag r; p = r + (rr'/rr) p

A column with rr <= stop, or with p^dag A p <= 0, is frozen: nothing of it changes and `steps` does not count on. So a chunk may
run past the solution of one column while others still move, and the host sees a breakdown as a column that stands still above
stop.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

Normal = Callable[..., tuple[Tensor]]


class CgIteration(nn.Module):
    """normal: module (psi=, **fields) -> (A psi,); sites_first: layout [T,Z,Y,X,24,B] instead of [2,4,3,B,T,Z,Y,X]."""

    def __init__(self, normal: nn.Module, sites_first: bool) -> None:
        super().__init__()
        self.normal, self.sites_first = normal, sites_first

    def forward(self, **fields: Tensor) -> tuple[Tensor, ...]:
        x, r, p, rr, stop, steps = (fields.pop(name) for name in ("x", "r", "p", "rr", "stop", "steps"))
        (q,) = self.normal(psi=p, **fields)
        curvature = self.columns(p * q)
        one = torch.where(curvature > 0.0, torch.where(rr > stop, 1.0, torch.zeros_like(rr)), 0.0)
        moves = one > 0.0
        alpha = torch.where(moves, rr / torch.where(moves, curvature, 1.0), 0.0)
        x = x + self.spread(alpha) * p
        r = r - self.spread(alpha) * q
        new = torch.where(moves, self.columns(r * r), rr)
        beta = torch.where(moves, new / torch.where(moves, rr, 1.0), 0.0)
        p = torch.where(self.spread(one) > 0.0, r + self.spread(beta) * p, p)
        return x, r, p, new, steps + one

    def columns(self, x: Tensor) -> Tensor:
        """Sum of each column, [B]: in two stages, which halves the length of the longest chain of roundings."""
        if self.sites_first:
            return x.sum((2, 3, 4)).sum((0, 1))
        return x.sum((6, 7)).sum((0, 1, 2, 4, 5))

    def spread(self, scalars: Tensor) -> Tensor:
        """[B] so that it broadcasts over the fields."""
        if self.sites_first:
            return scalars
        return scalars.unsqueeze(1).unsqueeze(2).unsqueeze(3).unsqueeze(4)
