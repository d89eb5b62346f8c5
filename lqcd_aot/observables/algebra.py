"""Moves on the group: force of the Wilson action, exponential of the Lie algebra, and handing links back as they came.

Owns: `wilson_force`, `expm`, `wrap`; shared by the flow and by stout smearing, which are one formula.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lqcd_aot.observables.links import DIRECTIONS, antihermitian, staple


def wilson_force(links: Tensor, directions: tuple[int, ...] = DIRECTIONS) -> Tensor:
    """Z_mu(x) = P[ C_mu(x) U_mu(x)^dag ], C = sum of the staples, P = traceless anti-Hermitian part: [T,Z,Y,X,4,Nc,Nc].

    Equals -g0^2 dS_W/dU in M. Luescher, JHEP 08 (2010) 071, eq. (1.4). Only planes within `directions` count; the links of
    other directions get zero.
    """
    force = []
    for mu in DIRECTIONS:
        planes = [nu for nu in directions if nu != mu] if mu in directions else []
        u_mu = links[..., mu, :, :]
        if not planes:
            force.append(torch.zeros_like(u_mu))
            continue
        staples = staple(links, mu, planes[0])
        for nu in planes[1:]:
            staples = staples + staple(links, mu, nu)
        force.append(antihermitian(staples @ u_mu.mH))
    return torch.stack(force, dim=4)


def expm(algebra: Tensor) -> Tensor:
    """exp of each matrix. For a traceless anti-Hermitian argument the result is in SU(N) to rounding."""
    exponential: Tensor = torch.linalg.matrix_exp(algebra)
    return exponential


def wrap(field: Any, links: Tensor) -> Any:
    """`links` in the form `field` came in: a tensor for a tensor, a GaugeField on the same geometry for a GaugeField."""
    return links if isinstance(field, Tensor) else type(field)(links, field.geom)
