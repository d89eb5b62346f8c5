"""Gauge observables on links [2,4,3,3,T,Z,Y,X]: sums over the Y,X plane on the device, the rest by the host in double precision.

Owns plaquettes, Polyakov loops (a product tree along the axis) and the clover field strength, all planes at once.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lqcd_aot.program.hlo.modules.parts import conjugate, cut, shift, times_matrix, total
from lqcd_runtime.conventions import PLANES

PLANE_AXES = (-2, -1)  # Y, X


def _pair(links: Tensor) -> tuple[Tensor, Tensor]:
    """(U_mu, U_nu) of the six planes: [2,6,3,3,sites] each."""
    u, v = ([cut(links, 1, plane[i], plane[i] + 1) for plane in PLANES] for i in (0, 1))
    return torch.cat(u, 1), torch.cat(v, 1)


def _moved(x: Tensor, which: int, step: int) -> Tensor:
    """Every plane's matrices shifted along its first (which = 0) or second axis."""
    parts = [shift(cut(x, 1, n, n + 1), plane[which], step) for n, plane in enumerate(PLANES)]
    return torch.cat(parts, 1)


def _real_trace(a: Tensor, b: Tensor) -> Tensor:
    """Re tr(A B^dag): [N,sites]. A path of 18 numbers, added pair by pair."""
    product = a * b
    return total([product.select(0, part).select(1, i).select(1, j) for part in (0, 1) for i in range(3) for j in range(3)])


class Plaquettes(nn.Module):
    """deficit: the sums of 1 - Re tr P / 3, exact near a cold field; else of Re tr P / 3. [6,T,Z]."""

    def __init__(self, deficit: bool) -> None:
        super().__init__()
        self.deficit = deficit

    def forward(self, **fields: Tensor) -> tuple[Tensor]:
        u, v = _pair(fields["links"])
        one_way = times_matrix(u, _moved(v, 0, 1))
        other = times_matrix(v, _moved(u, 1, 1))
        if self.deficit:
            # Both products are unitary: |A - B|^2 / 2 = 3 - Re tr A B^dag, without the cancellation of 1 - P.
            difference = one_way - other
            return (_real_trace(difference, difference).sum(PLANE_AXES) / 6.0,)
        return (_real_trace(one_way, other).sum(PLANE_AXES) / 3.0,)


class PolyakovLoops(nn.Module):
    """Sums over the last remaining axis of tr[prod_s U_mu(s)] / 3, for mu = T, Z, Y, X: [2,...] each. extents: T, Z, Y, X."""

    def __init__(self, extents: tuple[int, ...]) -> None:
        super().__init__()
        self.extents = extents

    def forward(self, **fields: Tensor) -> tuple[Tensor, ...]:
        out = []
        for mu, extent in enumerate(self.extents):
            product, axis = cut(fields["links"], 1, mu, mu + 1), mu - 4
            while extent > 1:
                even = extent - extent % 2
                pairs = times_matrix(cut(product, axis, 0, even, 2), cut(product, axis, 1, even, 2))
                rest = [cut(product, axis, even)] if extent % 2 else []
                product, extent = torch.cat([pairs, *rest], axis), (extent + 1) // 2
            trace = total([product.select(2, a).select(2, a) for a in range(3)]).select(1, 0)
            out.append(trace.select(axis, 0).sum((-1,)) / 3.0)
        return tuple(out)


class FieldStrength(nn.Module):
    """energy: E = -sum_{mu<nu} tr F^2; else q = -1/(4 pi^2) tr(F_TZ F_YX - F_TY F_ZX + F_TX F_ZY). [T,Z].

    F = (Q - Q^dag)/8 without trace, Q the four leaves based at x.
    """

    def __init__(self, energy: bool) -> None:
        super().__init__()
        self.energy = energy

    def forward(self, **fields: Tensor) -> tuple[Tensor]:
        f = self.planes(fields["links"])
        # tr F is imaginary: tr F_a F_b without the traces is -(F_a . F_b) + tau_a tau_b / 3, tau = Im tr F.
        tau = total([f.select(0, 1).select(1, a).select(1, a) for a in range(3)])
        if self.energy:
            density = (_real_trace(f, f) - tau * tau / 3.0).sum((0,))
            return (density.sum(PLANE_AXES),)
        first, second = [cut(x, axis, 0, 3) for x, axis in ((f, 1), (tau, 0))], self.partners(f, tau)
        dots = _real_trace(first[0], second[0]) - first[1] * second[1] / 3.0
        charge = dots.select(0, 0) - dots.select(0, 1) + dots.select(0, 2)
        return (charge.sum(PLANE_AXES) / (4.0 * math.pi**2),)

    def partners(self, f: Tensor, tau: Tensor) -> list[Tensor]:
        """Planes YX, ZX, ZY of f and tau: the duals of TZ, TY, TX."""
        return [torch.cat([cut(x, axis, n, n + 1) for n in (5, 4, 3)], axis) for x, axis in ((f, 1), (tau, 0))]

    def planes(self, links: Tensor) -> Tensor:
        """F of the six planes, trace kept: [2,6,3,3,sites]."""
        u, v = _pair(links)
        v_mu, u_nu = _moved(v, 0, 1), _moved(u, 1, 1)
        side = times_matrix(times_matrix(v_mu, u_nu, adjoint_b=True), v, adjoint_b=True)
        corner = times_matrix(times_matrix(v, u, adjoint_a=True), v_mu)
        at_x = times_matrix(u, side)
        at_mu = _moved(times_matrix(side, u), 0, -1)
        at_both = _moved(_moved(times_matrix(u_nu, corner, adjoint_a=True), 0, -1), 1, -1)
        at_nu = _moved(times_matrix(corner, u_nu, adjoint_b=True), 1, -1)
        leaves = total([at_x, at_mu, at_both, at_nu])
        return (leaves - conjugate(leaves.permute(0, 1, 3, 2, 4, 5, 6, 7))) / 8.0
