"""Closed loops of gauge links: plaquette, 1x2 rectangle, R x T Wilson loops.

Owns: their definitions and normalisation (1 on a cold field). Refuses to know: couplings (see gauge_action.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from lqcd_aot.observables.links import PLANES, links_of, shift
from lqcd_runtime.errors import UsageError


def plaquette_tensor(field: Any) -> Tensor:
    """Re tr P_{mu nu}(x) of the six planes TZ, TY, TX, ZY, ZX, YX: real [T,Z,Y,X,6], Nc on a cold field.

    P_{mu nu}(x) = U_mu(x) U_nu(x+mu) U_mu(x+nu)^dag U_nu(x)^dag. Errors: UsageError for a wrong shape.
    """
    links = links_of(field)
    planes = []
    for mu, nu in PLANES:
        u_mu, u_nu = links[..., mu, :, :], links[..., nu, :, :]
        corner = u_mu @ shift(u_nu, mu)
        other = u_nu @ shift(u_mu, nu)
        # Re tr(A B^dag) is an inner product: the third matrix product is not needed.
        planes.append((corner * other.conj()).real.sum((-2, -1)))
    return torch.stack(planes, dim=-1)


def plaquette_planes(field: Any) -> Tensor:
    """Average plaquette of each plane (TZ, TY, TX, ZY, ZX, YX), normalised to 1: float64 [6]."""
    links = links_of(field)
    return plaquette_tensor(links).double().mean((0, 1, 2, 3)) / links.shape[-1]


def plaquette(field: Any) -> float:
    """Average over sites and the six planes of Re tr P / Nc: 1.0 on a cold field, near 0 on a hot one."""
    return float(plaquette_planes(field).mean())


def rectangle_tensor(field: Any) -> Tensor:
    """Re tr of the 1x2 rectangles based at x: real [T,Z,Y,X,12].

    For each plane (mu, nu) of the six: first the one of two steps in mu, then the one of two steps in nu.
    """
    links = links_of(field)
    loops = []
    for mu, nu in PLANES:
        for long, short in ((mu, nu), (nu, mu)):
            loops.append(_rectangular_loop(links, long, short, 2, 1))
    return torch.stack(loops, dim=-1)


def rectangle(field: Any) -> float:
    """Average of Re tr R / Nc over sites and the twelve 1x2 rectangles: 1.0 on a cold field."""
    links = links_of(field)
    return float(rectangle_tensor(links).double().mean()) / int(links.shape[-1])


def _line(links: Tensor, mu: int, length: int) -> Tensor:
    """U_mu(x) U_mu(x+mu) ... of `length` links: a matrix field."""
    u_mu = links[..., mu, :, :]
    product = u_mu
    for step in range(1, length):
        product = product @ shift(u_mu, mu, step)
    return product


def _rectangular_loop(links: Tensor, mu: int, nu: int, length_mu: int, length_nu: int) -> Tensor:
    """Re tr of the length_mu x length_nu loop in the plane (mu, nu) based at x: real [T,Z,Y,X]."""
    line_mu, line_nu = _line(links, mu, length_mu), _line(links, nu, length_nu)
    corner = line_mu @ shift(line_nu, mu, length_mu)
    other = line_nu @ shift(line_mu, nu, length_nu)
    return (corner * other.conj()).real.sum((-2, -1))


def wilson_loops(field: Any, spatial: int | Iterable[int], temporal: int | Iterable[int]) -> Tensor:
    """W(R, T): average of Re tr / Nc of the on-axis R x T loops with one side along T.

    spatial: R or several R; temporal: T or several T (lattice units). Averaged over sites and the three spatial directions.
    Returns float64 [number of R, number of T]; W -> exp(-V(R) T) at large T. Errors: UsageError for a length below 1.
    """
    links = links_of(field)
    rs = [spatial] if isinstance(spatial, int) else [int(r) for r in spatial]
    ts = [temporal] if isinstance(temporal, int) else [int(t) for t in temporal]
    if not rs or not ts or min(rs) < 1 or min(ts) < 1:
        raise UsageError("wilson_loops: a side is not a length", expected="integers >= 1", found=f"R={rs}, T={ts}")
    table = torch.empty(len(rs), len(ts), dtype=torch.float64)
    for i, r in enumerate(rs):
        for j, t in enumerate(ts):
            loops = [_rectangular_loop(links, k, 0, r, t).double().mean() for k in (1, 2, 3)]
            table[i, j] = torch.stack(loops).mean() / links.shape[-1]
    return table
