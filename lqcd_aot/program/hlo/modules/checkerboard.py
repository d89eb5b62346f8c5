"""Even-odd operators on arrays of one parity: psi [2,4,3,B,T,Z,Y,X/2], site x = 2 xh + s with s = (t+z+y+parity) mod 2.

    S = A_ee - H_eo A_oo^-1 H_oe;   wilson: A = diagonal;   clover: A = diagonal + csw C

Along T, Z, Y a neighbour has the same xh; along X it has the same xh or the next, by the row. `rows_t`, `rows_z`, `rows_y` are
the constants (-1)^t, (-1)^z, (-1)^y from which a row's parity is multiplied together.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lqcd_aot.program.hlo.modules.dirac import clover_rows
from lqcd_aot.program.hlo.modules.parts import shift, times_links
from lqcd_aot.program.hlo.modules.stencil import halves, rebuilt

EVEN, ODD = 0, 1
X = 3


def even_rows(fields: dict[str, Tensor]) -> Tensor:
    """True on rows with t+z+y even: [T,Z,Y,1]."""
    t = fields["rows_t"].unsqueeze(1).unsqueeze(2).unsqueeze(3)
    z = fields["rows_z"].unsqueeze(1).unsqueeze(2)
    return t * z * fields["rows_y"].unsqueeze(1) > 0.0


def shift_to(x: Tensor, mu: int, step: int, parity: int, rows: Tensor) -> Tensor:
    """x(site + step mu) at the sites of `parity`, from an array of the other one."""
    moved = shift(x, mu, step)
    if mu != X:
        return moved
    # s = 0 where the row's parity is the site's; the neighbour ahead then has the same xh, the one behind the previous.
    if (step == 1) == (parity == EVEN):
        return torch.where(rows, x, moved)
    return torch.where(rows, moved, x)


def hop_to(parity: int, psi: Tensor, fields: dict[str, Tensor], dagger: bool) -> Tensor:
    """The hop from the other parity to `parity`, or its adjoint in spin (1-g and 1+g exchanged)."""
    rows = even_rows(fields)
    links = [fields["links_even"], fields["links_odd"]]
    ahead, behind = [], []
    for mu in range(4):
        minus, plus = halves(psi, mu)
        if dagger:
            minus, plus = plus, minus
        ahead.append(shift_to(minus, mu, 1, parity, rows))
        behind.append(plus)
    came = times_links(links[parity], torch.stack(ahead, 1))
    went = times_links(links[1 - parity], torch.stack(behind, 1), adjoint=True)
    forward = [came.select(1, mu) for mu in range(4)]
    backward = [shift_to(went.select(1, mu), mu, -1, parity, rows) for mu in range(4)]
    return -0.5 * (rebuilt(backward, forward) if dagger else rebuilt(forward, backward))


class SchurDirac(nn.Module):
    """family: wilson_schur or clover_schur; form: forward, dagger, normal."""

    def __init__(self, family: str, form: str) -> None:
        super().__init__()
        self.family, self.form = family, form

    def forward(self, **fields: Tensor) -> tuple[Tensor]:
        psi = fields.pop("psi")
        if self.form == "normal":
            psi = self.act(psi, fields, dagger=False)
        return (self.act(psi, fields, dagger=self.form != "forward"),)

    def act(self, psi: Tensor, fields: dict[str, Tensor], dagger: bool) -> Tensor:
        """One application, or its adjoint."""
        odd = hop_to(ODD, psi, fields, dagger)
        here = fields["diagonal"] * psi
        if self.family == "clover_schur":
            odd = clover_rows(odd, fields["inverse_odd"])
            here = here + fields["csw"] * clover_rows(psi, fields["clover_even"])
        else:
            odd = odd / fields["diagonal"]
        return here - hop_to(EVEN, odd, fields, dagger)
