"""The proton two-point function.

Owns: charge conjugation and the contraction of chi = eps_abc (u_a^T C g5 d_b) u_c. Refuses to know: how propagators were made.

The formula holds in every basis if C and the gammas are of that basis: under S -> R S R^dag (unitary R, e.g. to Dirac-Pauli)
C goes to R* C R^dag, so a correlator traced with a covariant projector does not change (tests/physics rotates and compares).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import torch
from torch import Tensor

from lqcd_aot.observables.propagators import check_propagator, project
from lqcd_runtime.conventions import gamma5, gamma_matrices
from lqcd_runtime.errors import UsageError


def charge_conjugation() -> Tensor:
    """C = g_Y g_T of the DeGrand-Rossi basis: C g_mu C^-1 = -g_mu^T; complex128 [4,4]."""
    g = torch.from_numpy(gamma_matrices())
    return g[2] @ g[0]


def parity_projector(sign: int = 1) -> Tensor:
    """(1 + sign g_T)/2: +1 is the proton going forward in time, -1 its parity partner; complex128 [4,4]."""
    return 0.5 * (torch.eye(4, dtype=torch.complex128) + sign * torch.from_numpy(gamma_matrices())[0])


def _epsilon() -> list[tuple[int, tuple[int, ...]]]:
    """(sign, (a, b, c)) for the six permutations of three colours."""
    signs = []
    for p in permutations(range(3)):
        inversions = sum(p[i] > p[j] for i in range(3) for j in range(i + 1, 3))
        signs.append((-1 if inversions % 2 else 1, p))
    return signs


def proton_density(up: Tensor, down: Tensor | None = None, *, nonrelativistic: bool = False) -> Tensor:
    """< chi_g(x) chibar_g'(0) >: complex128 [T,Z,Y,X,4,4], spin g, g' open.

    = eps_abc eps_a'b'c' D^bb'_{al al'} ( U^aa'_{al al'} U^cc'_{g g'} - U^ac'_{al g'} U^ca'_{g al'} ),
    D = G S_d (g_T G^dag g_T^T), G = C g5. nonrelativistic: G = C g5 (1 + g_T)/2, so that with the same projector on the open
    spins only the upper Dirac-Pauli components of all three quarks enter. up, down (default up): [T,Z,Y,X,4,4,3,3].
    Errors: UsageError for other shapes or colours.
    """
    d = up if down is None else down
    if check_propagator(up) != check_propagator(d) or up.shape[-1] != 3 or d.shape[-1] != 3:
        raise UsageError("proton: propagators do not fit", expected="[T,Z,Y,X,4,4,3,3], both", found=[*up.shape, *d.shape])
    g_t = torch.from_numpy(gamma_matrices())[0]
    diquark = charge_conjugation() @ torch.from_numpy(gamma5())
    if nonrelativistic:
        diquark = diquark @ parity_projector(1)
    diquark_bar = g_t @ diquark.mH @ g_t.mT
    u = up.to(torch.complex128).permute(6, 7, 0, 1, 2, 3, 4, 5)
    turned = torch.einsum("ab,...bcij,cd->...adij", diquark, d.to(torch.complex128), diquark_bar)
    turned = turned.permute(6, 7, 0, 1, 2, 3, 4, 5)
    total = torch.zeros(*up.shape[:4], 4, 4, dtype=torch.complex128)
    for sign, (a, b, c) in _epsilon():
        for sign_source, (a1, b1, c1) in _epsilon():
            pair = turned[b, b1]
            direct = (pair * u[a, a1]).sum((-2, -1))[..., None, None] * u[c, c1]
            exchange = u[c, a1] @ pair.mT @ u[a, c1]
            total += sign * sign_source * (direct - exchange)
    return total


def proton_correlator(
    up: Tensor,
    down: Tensor | None = None,
    *,
    momentum: Sequence[int] = (0, 0, 0),
    source: Sequence[int] = (0, 0, 0, 0),
    parity: int = 1,
    t_boundary: int = 1,
    nonrelativistic: bool = False,
) -> Tensor:
    """C(t) = sum_x exp(-i p.x) tr[ P < chi(x, t) chibar(0) > ], P = (1 + parity g_T)/2, t from the source: complex128 [T].

    t_boundary: +-1 of the quarks in time; three antiperiodic quarks that crossed the end of the lattice give -1.
    Further arguments: see `proton_density` and `propagators.project`.
    """
    density = torch.einsum("ab,...ba->...", parity_projector(parity), proton_density(up, down, nonrelativistic=nonrelativistic))
    return project(density, momentum, source, 0, float(t_boundary) ** 3)
