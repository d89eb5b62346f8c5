"""Gauge-covariant Gaussian smearing of quark fields, for sources and sinks.

Owns: the spatial Laplacian and its Gaussian. Refuses to know: Dirac structure (spin indices pass through untouched).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lqcd_aot.observables.links import count, links_of, shift
from lqcd_runtime.errors import UsageError


def _laplacian(columns: Tensor, links: Tensor) -> Tensor:
    """sum_k [ U_k(x) f(x+k) + U_k(x-k)^dag f(x-k) ] - 6 f(x) over Z, Y, X, for f [T,Z,Y,X,Nc,anything]."""
    result = -6.0 * columns
    for mu in (1, 2, 3):
        u_mu = links[..., mu, :, :]
        result = result + u_mu @ shift(columns, mu) + shift(u_mu.mH @ columns, mu, -1)
    return result


def gaussian_smear(psi: Tensor, field: Any, width: float, iterations: int) -> Tensor:
    """(1 + width^2/(4 n) Delta)^n psi, n = iterations, Delta the spatial Laplacian above: Chroma's GAUGE_INV_GAUSSIAN.

    psi: [...,T,Z,Y,X,spin,colour] with any leading axes (columns of a propagator); links join periodically, no time hops, so
    the fermion boundary sign in time never enters. Errors: UsageError for a lattice or colour that differs, iterations < 1.
    """
    links = links_of(field)
    if psi.dim() < 6 or psi.shape[-6:-2] != links.shape[:4] or psi.shape[-1] != links.shape[-1]:
        raise UsageError(
            "gaussian_smear: quark field does not fit the gauge field",
            expected=f"[...,T,Z,Y,X,spin,colour] = [..., {list(links.shape[:4])}, spin, {links.shape[-1]}]",
            found=list(psi.shape),
        )
    count(iterations, "gaussian_smear iterations", 1)
    lattice, colours = links.shape[:4], psi.shape[-1]
    columns = psi.reshape(-1, *psi.shape[-6:]).permute(1, 2, 3, 4, 6, 0, 5)
    shape = columns.shape
    columns = columns.reshape(*lattice, colours, -1)
    for _ in range(iterations):
        columns = columns + (width * width / (4.0 * iterations)) * _laplacian(columns, links)
    return columns.reshape(shape).permute(5, 0, 1, 2, 3, 6, 4).reshape(psi.shape)


def point_columns(
    lattice: tuple[int, int, int, int],
    position: tuple[int, int, int, int],
    nc: int = 3,
    dtype: torch.dtype = torch.complex128,
) -> Tensor:
    """The 4 Nc point sources at position (t,z,y,x): [4 Nc,T,Z,Y,X,4,Nc], column Nc*spin + colour is 1 there and 0 elsewhere."""
    columns = torch.zeros(4, nc, *lattice, 4, nc, dtype=dtype)
    t, z, y, x = position
    columns[:, :, t, z, y, x] = torch.eye(4 * nc, dtype=dtype).reshape(4, nc, 4, nc)
    return columns.reshape(4 * nc, *lattice, 4, nc)
