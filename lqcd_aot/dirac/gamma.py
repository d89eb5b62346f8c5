"""Gamma matrices as torch tensors, sigma_{mu nu}, and the (unnormalised) spin projectors 1 +- gamma_mu.

DeGrand-Rossi basis in axis order T, Z, Y, X, from lqcd_runtime.conventions. Each call returns a fresh tensor, so that a caller
who writes into one harms nobody.
"""

from __future__ import annotations

import torch

from lqcd_runtime import conventions
from lqcd_runtime.conventions import GAMMA_COLUMN, GAMMA_VALUE

Device = torch.device | str | None


def degrand_rossi_gammas(dtype: torch.dtype = torch.complex64, device: Device = None) -> torch.Tensor:
    """gamma_mu, mu = T, Z, Y, X: tensor [4,4,4]. Hermitian, {g_mu, g_nu} = 2 delta_{mu nu}."""
    return torch.from_numpy(conventions.gamma_matrices()).to(dtype=dtype, device=device)


def gamma5(dtype: torch.dtype = torch.complex64, device: Device = None) -> torch.Tensor:
    """gamma_5 = g_X g_Y g_Z g_T = diag(1,1,-1,-1): tensor [4,4]."""
    return torch.from_numpy(conventions.gamma5()).to(dtype=dtype, device=device)


def sigma_munu(dtype: torch.dtype = torch.complex64, device: Device = None) -> torch.Tensor:
    """sigma_{mu nu} = (i/2)[g_mu, g_nu] for mu < nu in the order TZ, TY, TX, ZY, ZX, YX: tensor [6,4,4], Hermitian."""
    g = degrand_rossi_gammas(torch.complex128)
    return torch.stack([0.5j * (g[m] @ g[n] - g[n] @ g[m]) for m, n in conventions.PLANES]).to(dtype=dtype, device=device)


def spin_project_plus(psi: torch.Tensor, G: torch.Tensor, mu: int) -> torch.Tensor:
    """(1 + g_mu) psi for psi [..., 4, Nc] and G = degrand_rossi_gammas(...). Twice a projector."""
    return psi + torch.einsum("ab,...bc->...ac", G[mu], psi)


def spin_project_minus(psi: torch.Tensor, G: torch.Tensor, mu: int) -> torch.Tensor:
    """(1 - g_mu) psi for psi [..., 4, Nc] and G = degrand_rossi_gammas(...). Twice a projector."""
    return psi - torch.einsum("ab,...bc->...ac", G[mu], psi)


def apply_gamma5(psi: torch.Tensor) -> torch.Tensor:
    """gamma_5 psi for psi [..., 4, C] (complex, or real in the split representation): signs (1,1,-1,-1)."""
    return torch.cat([psi[..., :2, :], -psi[..., 2:, :]], dim=-2)


def plane_rows(mu: int, nu: int) -> tuple[tuple[int, complex], ...]:
    """Row r of g_mu g_nu as (column, value): every row of a product of gammas has one non-zero entry, a power of i."""
    rows = []
    for r in range(4):
        middle = GAMMA_COLUMN[mu][r]
        value = complex(GAMMA_VALUE[mu][r]) * complex(GAMMA_VALUE[nu][middle])
        rows.append((GAMMA_COLUMN[nu][middle], value))
    return tuple(rows)
