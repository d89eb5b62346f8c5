"""Wilson, clover and twisted operators on components, for the whole lattice and for slabs.

    M = diagonal + hop [+ csw C] [+ i mu g5];  C: the clover term for csw = 1 as columns (see `clover_rows`)

A slab's psi has one slice more on each side per application (M^dag M: two), links 2 n - 1 more in all, clover 2 (n - 1).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lqcd_aot.program.hlo.modules.parts import cut, times_i, total
from lqcd_aot.program.hlo.modules.stencil import T_AXIS, hop


def clover_rows(psi: Tensor, clover: Tensor) -> Tensor:
    """A psi for Hermitian A of two chiral blocks: clover [2,chirality,spin,3,6,sites], psi [2,4,3,B,sites].

    Column k = 3 s + c of a block meets spin 2 chirality + s, colour c.
    """
    real, imaginary = [], []
    for k in range(6):
        column = clover.select(4, k).unsqueeze(4)
        # Spins s and 2 + s: the same place in both chiralities.
        entry = cut(psi.select(2, k % 3), 1, k // 3, None, 2).unsqueeze(2).unsqueeze(2)
        real.append(column.select(0, 0) * entry)
        imaginary.append(column.select(0, 1) * entry)
    out = total(real) + times_i(total(imaginary))
    return torch.cat([out.select(1, 0), out.select(1, 1)], 1)


def gamma5(psi: Tensor) -> Tensor:
    """g5 psi: the lower two spin rows change sign."""
    return torch.cat([cut(psi, 1, 0, 2), -cut(psi, 1, 2)], 1)


class ComponentDirac(nn.Module):
    """family: wilson, clover, twisted; form: hop, forward, dagger, normal. forward takes the fields the binding names."""

    def __init__(self, family: str, form: str, slab: bool) -> None:
        super().__init__()
        self.family, self.form, self.slab = family, form, slab

    def forward(self, **fields: Tensor) -> tuple[Tensor]:
        psi = fields.pop("psi")
        if self.form == "normal":
            psi = self.act(psi, fields, dagger=False)
            if self.slab:
                fields = {n: cut(f, T_AXIS, 1, -1) if n in ("links", "clover") else f for n, f in fields.items()}
        return (self.act(psi, fields, dagger=self.form in ("dagger", "normal")),)

    def act(self, psi: Tensor, fields: dict[str, Tensor], dagger: bool) -> Tensor:
        """One application, or its adjoint."""
        result = hop(psi, fields["links"], dagger, self.slab)
        if self.form == "hop":
            return result
        inner = cut(psi, T_AXIS, 1, -1) if self.slab else psi
        result = result + fields["diagonal"] * inner
        if self.family == "clover":
            result = result + fields["csw"] * clover_rows(inner, fields["clover"])
        elif self.family == "twisted":
            twist = fields["mu"] * times_i(gamma5(inner))
            result = result - twist if dagger else result + twist
        return result
