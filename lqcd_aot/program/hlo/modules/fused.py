"""Operators over fused spin-colour blocks: one batched real dot a site, [24,96] x [96,B].

The eight half spinors (1 -+ g_mu) psi(x +- mu) are projected and gathered by slices; their 96 real rows meet one block that holds
-1/2 (reconstruction x gauge link) of all directions. K = 96 fits the 128 rows of the matrix engine, so a site costs one
instruction where a 24x192 block of full spinors costs two, eight 24x24 blocks eight and split 12x12 blocks thirty-two; and its
bytes are half of theirs. M^dag = g5 M g5 uses the same blocks.

    psi [T,Z,Y,X,24,B]: row 12 part + 3 spin + colour;   blocks [T,Z,Y,X,24,96]: column 12 d + 6 part + 3 spin + colour,
    d = 0..3 ahead along T,Z,Y,X, 4..7 behind
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lqcd_aot.program.hlo.modules.parts import conjugate, cut, shift, shift_axis
from lqcd_runtime.conventions import GAMMA_COLUMN, GAMMA_VALUE

ROWS = -2
T_AXIS = 0


def _row(psi: Tensor, part: int, spin: int) -> Tensor:
    start = 12 * part + 3 * spin
    return cut(psi, ROWS, start, start + 3)


def halves(psi: Tensor, mu: int) -> tuple[Tensor, Tensor]:
    """Rows 0, 1 of (1 - g_mu) psi and of (1 + g_mu) psi: [...,12,B] each."""
    minus, plus = [], []
    for part in (0, 1):
        for spin in (0, 1):
            value, column = complex(GAMMA_VALUE[mu][spin]), GAMMA_COLUMN[mu][spin]
            own = _row(psi, part, spin)
            other = _row(psi, part if value.imag == 0 else 1 - part, column)
            # i (re, im) = (-im, re)
            sign = value.real if value.imag == 0 else (-value.imag if part == 0 else value.imag)
            minus.append(own - other if sign > 0 else own + other)
            plus.append(own + other if sign > 0 else own - other)
    return torch.cat(minus, ROWS), torch.cat(plus, ROWS)


def gamma5(psi: Tensor) -> Tensor:
    """g5 psi."""
    return torch.cat([cut(psi, ROWS, 0, 6), -cut(psi, ROWS, 6, 12), cut(psi, ROWS, 12, 18), -cut(psi, ROWS, 18, 24)], ROWS)


class FusedWilson(nn.Module):
    """form: hop, forward, dagger, normal of the Wilson operator."""

    def __init__(self, form: str, slab: bool) -> None:
        super().__init__()
        self.form, self.slab = form, slab

    def forward(self, **fields: Tensor) -> tuple[Tensor]:
        psi, blocks, diagonal = fields["psi"], fields["blocks"], fields.get("diagonal")
        if self.form in ("hop", "forward"):
            return (self.act(psi, blocks, diagonal),)
        if self.form == "normal":
            psi = self.act(psi, blocks, diagonal)
            blocks = cut(blocks, T_AXIS, 1, -1) if self.slab else blocks
        return (gamma5(self.act(gamma5(psi), blocks, diagonal)),)

    def act(self, psi: Tensor, blocks: Tensor, diagonal: Tensor | None) -> Tensor:
        """One application; on a slab two slices of T shorter than psi."""
        inner = cut(psi, T_AXIS, 1, -1) if self.slab else psi
        ahead, behind = [], []
        for mu in range(4):
            apart = self.slab and mu == 0
            minus, plus = halves(psi if apart else inner, mu)
            ahead.append(cut(minus, T_AXIS, 2) if apart else shift_axis(minus, mu, 1))
            behind.append(cut(plus, T_AXIS, 0, -2) if apart else shift_axis(plus, mu, -1))
        result = torch.matmul(blocks, torch.cat([*ahead, *behind], ROWS))
        return result if diagonal is None else result + diagonal * inner


class BlockBuilder(nn.Module):
    """links [2,4,3,3,T,Z,Y,X] (a slab: one slice more, before it) -> blocks [T,Z,Y,X,24,96]."""

    def __init__(self, slab: bool) -> None:
        super().__init__()
        self.slab = slab

    def forward(self, **fields: Tensor) -> tuple[Tensor]:
        links = fields["links"]
        matrices = []
        for step in (1, -1):
            for mu in range(4):
                matrix = links.select(1, mu)
                if step == -1:
                    matrix = conjugate(matrix.permute(0, 2, 1, 3, 4, 5, 6))
                if self.slab and mu == 0:
                    matrix = cut(matrix, -4, 1) if step == 1 else cut(matrix, -4, 0, -1)
                else:
                    matrix = cut(matrix, -4, 1) if self.slab else matrix
                    matrix = matrix if step == 1 else shift(matrix, mu, -1)
                matrices.append(-0.5 * matrix.permute(0, 3, 4, 5, 6, 1, 2))
        rows = [torch.cat(self.row(matrices, part, spin), -1) for part in (0, 1) for spin in range(4)]
        return (torch.cat(rows, -2),)

    def row(self, matrices: list[Tensor], part: int, spin: int) -> list[Tensor]:
        """The pieces [T,Z,Y,X,3,3] of one output spin row, in the order of the 96 columns."""
        pieces = []
        for d, matrix in enumerate(matrices):
            mu, sign = d % 4, -1 if d < 4 else 1
            value = 1 + 0j if spin < 2 else sign * complex(GAMMA_VALUE[mu][spin])
            source = spin if spin < 2 else GAMMA_COLUMN[mu][spin]
            real, imaginary = matrix.select(0, 0), matrix.select(0, 1)
            if value.imag:
                real, imaginary = -value.imag * imaginary, value.imag * real
            elif value.real < 0:
                real, imaginary = -real, -imaginary
            by_part = (real, -imaginary) if part == 0 else (imaginary, real)
            for entry in by_part:
                pieces += [entry if half == source else torch.zeros_like(entry) for half in (0, 1)]
        return pieces
