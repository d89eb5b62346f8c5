"""Clover field strength, topological charge and energy density.

Owns: the four-leaf field strength of gauge observables (traceless) and what is built of it. Refuses to know: the clover term
of the Dirac operator, which keeps the trace (lqcd_aot.dirac).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from lqcd_aot.observables.links import PLANES, antihermitian, links_of, shift


def clover_leaves(links: Tensor, mu: int, nu: int) -> Tensor:
    """Q_{mu nu}(x): the sum of the four plaquettes that begin and end at x, all turning from mu to nu: a matrix field.

    Leaves, counter-clockwise: (+mu,+nu), (+nu,-mu), (-mu,-nu), (-nu,+mu). Every leaf is based at x: only so F is gauge covariant.
    """
    u_mu, u_nu = links[..., mu, :, :], links[..., nu, :, :]
    u_mu_nu, u_nu_mu = shift(u_mu, nu), shift(u_nu, mu)
    # With A = U_mu(x) U_nu(x+mu) and B = U_nu(x) U_mu(x+nu), leaf 1 is A B^dag at x. The plaquette of x - mu, seen from its
    # corner x, is U_nu(x) U_mu(x-mu+nu)^dag U_nu(x-mu)^dag U_mu(x-mu); and so on.
    leaf1 = u_mu @ u_nu_mu @ (u_nu @ u_mu_nu).mH
    leaf2 = shift(u_nu_mu @ u_mu_nu.mH @ u_nu.mH @ u_mu, mu, -1)
    leaf3 = shift(shift((u_nu @ u_mu_nu).mH @ u_mu @ u_nu_mu, mu, -1), nu, -1)
    leaf4 = shift(u_nu.mH @ u_mu @ u_nu_mu @ u_mu_nu.mH, nu, -1)
    return leaf1 + leaf2 + leaf3 + leaf4


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
