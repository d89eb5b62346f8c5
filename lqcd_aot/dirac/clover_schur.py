"""The even-odd Schur complement of clover fermions: S = A_ee - H_eo A_oo^-1 H_oe with A = 4+m + C site by site."""

from __future__ import annotations

from typing import Any

import torch

from lqcd_aot.dirac.clover import compute_clover
from lqcd_aot.dirac.even_odd import WilsonSchur
from lqcd_aot.dirac.options import finite
from lqcd_runtime.errors import UsageError

Blocks = tuple[torch.Tensor, torch.Tensor]


class CloverSchur(WilsonSchur):
    """S psi = A_ee psi_e - H_eo A_oo^-1 H_oe psi_e on the even sites; odd sites of the result are zero.

    A is Hermitian and commutes with g5, so it is two 2Nc x 2Nc blocks a site; S^dag = A_ee - H_oe^dag A_oo^-1 H_eo^dag.
    mass (or kappa=), csw real; the other keywords are those of WilsonDirac. Errors: UsageError where A is singular on some site.
    """

    def __init__(self, mass: float | None = None, csw: float = 1.0, **options: Any) -> None:
        self.csw = finite(csw, "csw")
        super().__init__(mass, **options)

    def _require_invertible_diagonal(self) -> None:
        """4+m may vanish here: only A itself must be invertible, which is known when the links are."""

    def prepare_links(self, links: torch.Tensor) -> Blocks:
        """(A, A^-1): chiral blocks [T,Z,Y,X,2,2Nc,2Nc] of every site."""
        clover = compute_clover(links, self.csw)
        half = 2 * links.shape[-1]
        blocks = torch.stack(
            [clover[..., s : s + 2, :, s : s + 2, :].reshape(*links.shape[:4], half, half) for s in (0, 2)], dim=4
        )
        blocks = blocks + self.diagonal * torch.eye(half, dtype=links.dtype, device=links.device)
        inverse, failed = torch.linalg.inv_ex(blocks)
        if not torch.compiler.is_compiling() and bool(failed.any()):
            raise UsageError(
                f"mass {self.mass}, csw {self.csw}: the clover diagonal is singular on {int((failed != 0).any(-1).sum())} sites",
                expected="4+m + clover term invertible on every odd site",
                hint="use the full operator",
            )
        return blocks, inverse

    def _diagonal_times(self, psi: torch.Tensor, prepared: Blocks) -> torch.Tensor:
        return _times_blocks(psi, prepared[0])

    def _odd_inverse(self, psi: torch.Tensor, prepared: Blocks) -> torch.Tensor:
        return _times_blocks(psi, prepared[1])

    def extra_repr(self) -> str:
        return f"csw={self.csw}, {super().extra_repr()}"


def _times_blocks(psi: torch.Tensor, blocks: torch.Tensor) -> torch.Tensor:
    """Chiral blocks [T,Z,Y,X,2,n,n] times psi [..., T,Z,Y,X,4,Nc]; the batch becomes columns."""
    inner = psi.reshape(-1, *psi.shape[-6:-2], 2, blocks.shape[-1]).permute(1, 2, 3, 4, 5, 6, 0)
    return (blocks @ inner).permute(6, 0, 1, 2, 3, 4, 5).reshape(psi.shape)
