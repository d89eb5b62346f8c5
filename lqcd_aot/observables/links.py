"""Gauge links as tensors: what every observable, flow and smearing routine is written with.

Owns: the accepted forms of a gauge field, shifts, colour algebra (dagger, colour trace, traceless anti-Hermitian part,
projection to SU(N)), staples. Refuses to know: fermion boundary phases; links are always joined periodically here.
Shapes: U [T,Z,Y,X,4,Nc,Nc] complex, axes 0..3 are T, Z, Y, X, U_mu(x) joins x to x+mu; a "matrix field" is [T,Z,Y,X,Nc,Nc].
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lqcd_runtime.conventions import PLANES
from lqcd_runtime.errors import UsageError

DIRECTIONS = (0, 1, 2, 3)
__all__ = ["DIRECTIONS", "PLANES", "antihermitian", "colour_trace", "links_of", "project_su", "shift", "staple", "transport"]


def links_of(field: Any) -> Tensor:
    """The link tensor [T,Z,Y,X,4,Nc,Nc] of a GaugeField (its `.tensor`) or of a plain tensor.

    Errors: UsageError where it is not a complex tensor of that shape with Nc >= 2.
    """
    links = field if isinstance(field, Tensor) else getattr(field, "tensor", None)
    if not isinstance(links, Tensor):
        raise UsageError("gauge field: is not a GaugeField or tensor", found=type(field).__name__)
    if links.dim() != 7 or links.shape[4] != 4 or links.shape[5] != links.shape[6] or links.shape[6] < 2:
        raise UsageError(
            "gauge field: has a wrong shape", expected="[T,Z,Y,X,4,Nc,Nc], Nc >= 2", found=list(links.shape)
        )
    if not links.is_complex():
        raise UsageError("gauge field: is not complex", expected="complex64 or complex128", found=links.dtype)
    return links


def shift(field: Tensor, mu: int, distance: int = 1) -> Tensor:
    """field(x + distance * mu), periodic: slice and concatenate, so that exported graphs hold no roll."""
    extent = field.shape[mu]
    distance %= extent
    if distance == 0:
        return field
    return torch.cat((field.narrow(mu, distance, extent - distance), field.narrow(mu, 0, distance)), dim=mu)


def colour_trace(matrices: Tensor) -> Tensor:
    """tr over the last two axes."""
    return matrices.diagonal(dim1=-2, dim2=-1).sum(-1)


def antihermitian(matrices: Tensor, *, traceless: bool = True) -> Tensor:
    """(A - A^dag)/2, minus its trace / Nc unless traceless=False: the projection onto the Lie algebra su(N)."""
    part = 0.5 * (matrices - matrices.mH)
    if not traceless:
        return part
    nc = matrices.shape[-1]
    eye = torch.eye(nc, dtype=matrices.dtype, device=matrices.device)
    return part - (colour_trace(part) / nc)[..., None, None] * eye


def transport(links: Tensor, path: tuple[int, ...], start: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Tensor:
    """Ordered product of links along a path from x + start: a matrix field [T,Z,Y,X,Nc,Nc].

    path: steps +-(mu+1): +1 forward in T, -1 backward in T, ... +-4 in X. A closed path gives a loop based at x + start.
    """
    at = list(start)
    product: Tensor | None = None
    for step in path:
        mu = abs(step) - 1
        if step < 0:
            at[mu] -= 1
        link = links[..., mu, :, :]
        for axis in DIRECTIONS:
            link = shift(link, axis, at[axis])
        if step < 0:
            link = link.mH
        else:
            at[mu] += 1
        product = link if product is None else product @ link
    if product is None:
        raise UsageError("path: is empty", expected="at least one step +-(mu+1)")
    return product


def staple(links: Tensor, mu: int, nu: int) -> Tensor:
    """Sum of the two staples of U_mu(x) in the plane (mu, nu), both going from x to x+mu: a matrix field.

    U_nu(x) U_mu(x+nu) U_nu(x+mu)^dag + U_nu(x-nu)^dag U_mu(x-nu) U_nu(x-nu+mu).
    """
    u_mu, u_nu = links[..., mu, :, :], links[..., nu, :, :]
    u_nu_ahead = shift(u_nu, mu)
    upper = u_nu @ shift(u_mu, nu) @ u_nu_ahead.mH
    lower = u_nu.mH @ u_mu @ u_nu_ahead
    return upper + shift(lower, nu, -1)


def project_su(matrices: Tensor) -> Tensor:
    """The element of SU(N) nearest to each matrix in its polar decomposition.

    A = W P with P = (A^dag A)^(1/2) gives the unitary W; then W det(W)^(-1/N), principal branch of the root.
    For A already in SU(N) this is the identity. Source: A. Hasenfratz, R. Hoffmann, S. Schaefer, JHEP 05 (2007) 029 (the polar
    part, called n-HYP there); the choice of the principal root makes det = 1.
    """
    left, _, right = torch.linalg.svd(matrices)
    unitary = left @ right
    phase = torch.angle(torch.linalg.det(unitary)) / matrices.shape[-1]
    return unitary * torch.polar(torch.ones_like(phase), -phase)[..., None, None]
