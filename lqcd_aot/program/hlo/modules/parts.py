"""Arithmetic on split fields: tensors whose first axis is (re, im) and whose last four are T, Z, Y, X.

Owns i, complex conjugation, shifts by slice and concatenation, products of colour matrices. Knows no spin.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def cut(x: Tensor, axis: int, start: int, end: int | None = None, step: int = 1) -> Tensor:
    """x[start:end:step] along an axis: one node of the graph, where indexing writes one per axis."""
    part: Tensor = torch.ops.aten.slice.Tensor(x, axis, start, end, step)
    return part


def times_i(x: Tensor) -> Tensor:
    """i x."""
    return torch.cat([-cut(x, 0, 1, 2), cut(x, 0, 0, 1)], 0)


def conjugate(x: Tensor) -> Tensor:
    """x*."""
    return torch.cat([cut(x, 0, 0, 1), -cut(x, 0, 1, 2)], 0)


def shift(x: Tensor, mu: int, step: int) -> Tensor:
    """x(site + step mu), periodic; step is 1 or -1."""
    return shift_axis(x, mu - 4, step)


def shift_axis(x: Tensor, axis: int, step: int) -> Tensor:
    """`shift` along any tensor axis."""
    if step == 1:
        return torch.cat([cut(x, axis, 1), cut(x, axis, 0, 1)], axis)
    return torch.cat([cut(x, axis, -1), cut(x, axis, 0, -1)], axis)


def total(terms: Sequence[Tensor]) -> Tensor:
    """The sum, pair by pair: the shortest path for rounding errors."""
    level = list(terms)
    while len(level) > 1:
        pairs = [a + b for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def times_links(links: Tensor, half: Tensor, adjoint: bool = False) -> Tensor:
    """U h or U^dag h: links [2,M,3,3,sites], h [2,M,spin,3,B,sites]."""
    real: list[Tensor] = []
    imaginary: list[Tensor] = []
    for k in range(3):
        column = links.select(2, k) if adjoint else links.select(3, k)
        h = half.select(3, k).unsqueeze(3)
        for part, terms in ((0, real), (1, imaginary)):
            terms.append(column.select(0, part).unsqueeze(1).unsqueeze(3) * h)
    turned = times_i(total(imaginary))
    return total(real) - turned if adjoint else total(real) + turned


def times_matrix(a: Tensor, b: Tensor, adjoint_a: bool = False, adjoint_b: bool = False) -> Tensor:
    """A B, A^dag B, A B^dag: [2,N,3,3,sites] each; N may be 1 on one side."""
    if adjoint_b:
        b = conjugate(b)
    real, imaginary = [], []
    for k in range(3):
        row = (b.select(3, k) if adjoint_b else b.select(2, k)).unsqueeze(2)
        column = (a.select(2, k) if adjoint_a else a.select(3, k)).unsqueeze(3)
        real.append(column.select(0, 0) * row)
        imaginary.append(column.select(0, 1) * row)
    turned = times_i(total(imaginary))
    return total(real) - turned if adjoint_a else total(real) + turned
