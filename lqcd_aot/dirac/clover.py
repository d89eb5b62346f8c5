"""Clover-improved Wilson fermions: M_clover = M + C, C = csw (i/2) sum_{mu<nu} sigma_{mu nu} F_{mu nu}.

With sigma = (i/2)[g_mu, g_nu] and mu != nu this is C = -(csw/2) sum_{mu<nu} g_mu g_nu F_{mu nu}, the form applied here: six
colour multiplications and permutations of spin rows. C is Hermitian, does not see boundary phases (its loops are closed), and
takes csw for all planes; anisotropy acts on the Wilson part only.
"""

from __future__ import annotations

from typing import Any

import torch

from lqcd_aot.core.shift import times
from lqcd_aot.dirac.field_strength import compute_field_strength
from lqcd_aot.dirac.gamma import plane_rows, sigma_munu
from lqcd_aot.dirac.options import finite
from lqcd_aot.dirac.stencil import Rows, from_rows, plus, to_rows
from lqcd_aot.dirac.wilson import Links, WilsonDirac, link_tensor
from lqcd_runtime.conventions import PLANES


def compute_clover(U: Links, csw: float) -> torch.Tensor:
    """The clover term as matrices: C [T,Z,Y,X,4,Nc,4,Nc], Hermitian in (spin,colour). Without the diagonal 4+m."""
    strength = compute_field_strength(link_tensor(U))
    sigma = sigma_munu(strength.dtype, strength.device)
    return 0.5j * csw * torch.einsum("pst,TZYXpab->TZYXsatb", sigma, strength)


def clover_rows(rows: Rows, strength: torch.Tensor, csw: float) -> Rows:
    """C psi on inner rows (dirac/stencil.py), from F [T,Z,Y,X,6,C,C]; complex or split."""
    columns = rows[0].shape[-1]
    psi = torch.cat(rows, dim=-1)
    out: list[torch.Tensor | None] = [None] * 4
    for p, (mu, nu) in enumerate(PLANES):
        turned = strength[:, :, :, :, p] @ psi
        for r, (column, value) in enumerate(plane_rows(mu, nu)):
            piece = turned[..., column * columns : (column + 1) * columns]
            previous, weight = out[r], -0.5 * csw * value
            out[r] = times(piece, weight) if previous is None else plus(previous, weight, piece)
    return [row for row in out if row is not None]


class CloverWilsonDirac(WilsonDirac):
    """(4+m) + hop + C. mass (or kappa=) and csw are real; the other keywords are those of WilsonDirac.

    The field strength is computed from U in every call; `set_gauge(U)` keeps it for many calls with the same links.
    clover_dtype: dtype in which it is computed before it is rounded to that of the links; None: theirs.
    """

    def __init__(
        self, mass: float | None = None, csw: float = 1.0, *, clover_dtype: torch.dtype | None = None, **options: Any
    ) -> None:
        super().__init__(mass, **options)
        self.csw = finite(csw, "csw")
        self.clover_dtype = clover_dtype

    def prepare_links(self, links: torch.Tensor) -> torch.Tensor:
        """F [T,Z,Y,X,6,C,C] in the dtype of the links."""
        return compute_field_strength(links.to(self.clover_dtype or links.dtype)).to(links.dtype)

    def act(self, psi: torch.Tensor, links: torch.Tensor, dagger: bool, prepared: torch.Tensor) -> torch.Tensor:
        term = from_rows(clover_rows(to_rows(psi), prepared, self.csw), psi.shape)
        return super().act(psi, links, dagger, None) + term

    def extra_repr(self) -> str:
        return f"csw={self.csw}, {super().extra_repr()}"
