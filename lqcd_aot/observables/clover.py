"""Clover field strength, topological charge and energy density.

Owns: the traceless field strength of gauge observables and what is built of it. The leaves are those of the Dirac operator's
clover term (lqcd_aot.dirac.field_strength), which keeps the trace.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from lqcd_aot.dirac.field_strength import clover_leaves
from lqcd_aot.observables.links import PLANES, antihermitian, links_of


def field_strength(field: Any, *, traceless: bool = True) -> Tensor:
    """F_{mu nu}(x) = (Q - Q^dag)/8, anti-Hermitian, planes TZ, TY, TX, ZY, ZX, YX: complex [T,Z,Y,X,6,Nc,Nc].

    traceless: subtract tr F / Nc (what the topological charge and the energy density use). The clover term of the Dirac
    operator keeps the trace (Chroma's convention).
    """
    links = links_of(field)
    leaves = [antihermitian(clover_leaves(links, mu, nu), traceless=traceless) / 4.0 for mu, nu in PLANES]
    return torch.stack(leaves, dim=4)


def _real_trace(a: Tensor, b: Tensor) -> Tensor:
    """Re tr(A B) over the last two axes."""
    return (a * b.transpose(-1, -2)).real.sum((-2, -1))


def topological_charge_density(field: Any) -> Tensor:
    """q(x) = -1/(32 pi^2) eps_{mu nu rho sigma} tr F_{mu nu} F_{rho sigma}, traceless F, eps_xyzt = +1: real [T,Z,Y,X].

    = -1/(4 pi^2) tr(F_TZ F_YX - F_TY F_ZX + F_TX F_ZY): each of the three terms stands for eight of the sum, and (T,Z,Y,X) is an
    even permutation of (x,y,z,t). openQCD prints the other sign.
    """
    f = field_strength(field)
    tz, ty, tx, zy, zx, yx = f.unbind(4)
    return -(_real_trace(tz, yx) - _real_trace(ty, zx) + _real_trace(tx, zy)) / (4.0 * math.pi**2)


def topological_charge(field: Any) -> float:
    """Q = sum_x q(x), clover definition: near an integer only on smooth (flowed) fields. Odd under parity."""
    return float(topological_charge_density(field).double().sum())


def energy_density_tensor(field: Any) -> Tensor:
    """E(x) = -sum_{mu<nu} tr F_{mu nu}(x)^2 with the traceless anti-Hermitian F: real [T,Z,Y,X].

    = 1/4 G^a_{mu nu} G^a_{mu nu} of M. Luescher, JHEP 08 (2010) 071, for F = G^a T^a with tr T^a T^b = -1/2 delta_ab.
    """
    f = field_strength(field)
    return f.abs().square().sum((-3, -2, -1))


def energy_density(field: Any) -> float:
    """E: the average of E(x) over the lattice, in lattice units a^4; 0 on a cold field."""
    return float(energy_density_tensor(field).double().mean())
