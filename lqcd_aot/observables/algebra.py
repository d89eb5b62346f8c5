"""Moves on the group: force of the Wilson action and exponential of the Lie algebra.

Owns: `wilson_force` and `expm`; shared by the flow and by stout smearing, which are one formula.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lqcd_aot.observables.links import DIRECTIONS, antihermitian, staple_sum


def wilson_force(links: Tensor, directions: tuple[int, ...] = DIRECTIONS) -> Tensor:
    """Z_mu(x) = P[ C_mu(x) U_mu(x)^dag ], C = sum of the staples, P = traceless anti-Hermitian part: [T,Z,Y,X,4,Nc,Nc].

    Equals -g0^2 dS_W/dU in M. Luescher, JHEP 08 (2010) 071, eq. (1.4). Only planes within `directions` count; the links of
    other directions get zero.
    """
    force = []
    for mu in DIRECTIONS:
        planes = directions if mu in directions else ()
        force.append(antihermitian(staple_sum(links, mu, planes) @ links[..., mu, :, :].mH))
    return torch.stack(force, dim=4)


def expm(algebra: Tensor) -> Tensor:
    """exp of each matrix. For a traceless anti-Hermitian argument the result is in SU(N) to rounding."""
    exponential: Tensor = torch.linalg.matrix_exp(algebra)
    return exponential
