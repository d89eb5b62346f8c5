"""Gauge links as tensors: what every observable, flow and smearing routine is written with.

Owns: the accepted forms of a gauge field, shifts by any distance, colour trace, traceless anti-Hermitian part, staples.
Refuses to know: fermion boundary phases; links are always joined periodically here.
Shapes: U [T,Z,Y,X,4,Nc,Nc] complex, axes 0..3 are T, Z, Y, X, U_mu(x) joins x to x+mu; a "matrix field" is [T,Z,Y,X,Nc,Nc].
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lqcd_runtime.conventions import PLANES
from lqcd_runtime.errors import UsageError

DIRECTIONS = (0, 1, 2, 3)
__all__ = [
    "DIRECTIONS", "PLANES", "antihermitian", "colour_trace", "count", "links_of", "shift", "staple", "staple_sum", "wrap",
]  # fmt: skip


def links_of(field: Any) -> Tensor:
    """The link tensor [T,Z,Y,X,4,Nc,Nc] of a GaugeField (its `.tensor`) or of a plain tensor.

    Errors: UsageError where it is not a complex tensor of that shape with Nc >= 2.
    """
    links = field if isinstance(field, Tensor) else getattr(field, "tensor", None)
    if not isinstance(links, Tensor):
        raise UsageError("gauge field: is not a GaugeField or tensor", found=type(field).__name__)
    if links.dim() != 7 or links.shape[4] != 4 or links.shape[5] != links.shape[6] or links.shape[6] < 2:
        raise UsageError("gauge field: has a wrong shape", expected="[T,Z,Y,X,4,Nc,Nc], Nc >= 2", found=list(links.shape))
    if not links.is_complex():
        raise UsageError("gauge field: is not complex", expected="complex64 or complex128", found=links.dtype)
    return links


def count(value: int, what: str, least: int = 0) -> int:
    """`value` if it is an integer >= least. Errors: UsageError naming `what`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{what}: is not a count", expected=f"an integer >= {least}", found=repr(value))
    return value


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


def staple(u_mu: Tensor, u_nu: Tensor, mu: int, nu: int) -> Tensor:
    """Sum of the two paths from x to x+mu that go around through +nu and -nu: a matrix field.

    u_nu(x) u_mu(x+nu) u_nu(x+mu)^dag + u_nu(x-nu)^dag u_mu(x-nu) u_nu(x-nu+mu); u_mu and u_nu are matrix fields.
    """
    u_nu_ahead = shift(u_nu, mu)
    upper = u_nu @ shift(u_mu, nu) @ u_nu_ahead.mH
    lower = u_nu.mH @ u_mu @ u_nu_ahead
    return upper + shift(lower, nu, -1)


def staple_sum(links: Tensor, mu: int, directions: tuple[int, ...] = DIRECTIONS) -> Tensor:
    """Sum of the staples of U_mu over the planes (mu, nu), nu in `directions`: a matrix field (zero where there is no plane)."""
    total = torch.zeros_like(links[..., mu, :, :])
    for nu in directions:
        if nu != mu:
            total = total + staple(links[..., mu, :, :], links[..., nu, :, :], mu, nu)
    return total


def wrap(field: Any, links: Tensor) -> Any:
    """`links` in the form `field` came in: a tensor for a tensor, a GaugeField on the same geometry for a GaugeField."""
    return links if isinstance(field, Tensor) else type(field)(links, field.geom)
