"""Thermalised pure-gauge configurations: heatbath with overrelaxation for the Wilson gauge action, any SU(N).

Owns: the Markov chain on a checkerboard. Refuses to know: fermions, files, measurements (call `sweep` and observe in between).
Source: N. Cabibbo, E. Marinari, Phys. Lett. B 119 (1982) 387 [SU(2) subgroups]; A. Kennedy, B. Pendleton, Phys. Lett. B 156
(1985) 393 and M. Creutz, Phys. Rev. D 21 (1980) 2308 [SU(2) heatbath]; S. Adler, Phys. Rev. D 23 (1981) 2901 [overrelaxation].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lqcd_aot.core.su_n import deviation, project_su_n
from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import parity

if TYPE_CHECKING:
    from lqcd_aot.core import GaugeField, LatticeGeometry

Quaternion = tuple[Tensor, Tensor, Tensor, Tensor]
# Below this coupling the proposal of Creutz is accepted more often than that of Kennedy and Pendleton.
CREUTZ_BELOW = 1.7
# Rounding takes links off SU(N) by some 1e-16 a sweep.
SWEEPS_BETWEEN_PROJECTIONS = 16


class Heatbath:
    """A Markov chain with weight exp( (beta/Nc) sum_P Re tr P ).

    links: starting field [T,Z,Y,X,4,Nc,Nc]; arithmetic is complex128. Sites of one parity and one direction do not meet in any
    plaquette, so they are updated at once; this needs even extents (2 included: the two staples of a plane then share links
    but each stays linear in the link that is updated).
    Errors: UsageError for an odd extent, links outside of SU(N), or a beta that is negative or not finite.
    """

    def __init__(self, links: Tensor, beta: float, seed: int = 0) -> None:
        extents = tuple(links.shape[:4])
        if any(n % 2 for n in extents):
            raise UsageError(
                f"heatbath: cannot colour a lattice of extents {extents}", expected="even extents", found=str(extents)
            )
        if not (math.isfinite(beta) and beta >= 0.0):
            raise UsageError("heatbath: beta has no weight", expected="a finite number >= 0", found=beta)
        if not max(deviation(links)) <= 1e-5:  # also true for NaN
            raise UsageError("heatbath: start is not in SU(N)", expected="links to 1e-5 in the group", hint=".unitarize()")
        self.extents, self.nc, self.beta = extents, int(links.shape[-1]), float(beta)
        flat = links.to(torch.complex128).reshape(-1, 4, self.nc, self.nc)
        self._links = [flat[:, mu].clone() for mu in range(4)]
        site = torch.arange(flat.shape[0]).reshape(extents)
        self._ahead = [site.roll(-1, mu).reshape(-1) for mu in range(4)]
        self._behind = [site.roll(1, mu).reshape(-1) for mu in range(4)]
        odd = torch.from_numpy(parity(extents)).reshape(-1)
        self._sites = [torch.nonzero(odd == p).reshape(-1) for p in (0, 1)]
        self._random = torch.Generator().manual_seed(seed)
        self._sweeps = 0

    @property
    def links(self) -> Tensor:
        """The present field: complex128 [T,Z,Y,X,4,Nc,Nc], in SU(N) to rounding (a copy)."""
        return project_su_n(torch.stack(self._links, dim=1)).reshape(*self.extents, 4, self.nc, self.nc)

    def sweep(self, overrelaxation: int = 1) -> None:
        """One heatbath update of every link, then `overrelaxation` updates that keep the action."""
        self._update(heat=True)
        for _ in range(overrelaxation):
            self._update(heat=False)
        self._sweeps += 1
        if self._sweeps % SWEEPS_BETWEEN_PROJECTIONS == 0:
            self._links = [project_su_n(link) for link in self._links]

    def _update(self, *, heat: bool) -> None:
        for mu in range(4):
            for sites in self._sites:
                link = self._links[mu][sites]
                weight = link @ self._staples(mu, sites).mH
                self._links[mu][sites] = self._subgroups(link, weight, heat=heat)

    def _staples(self, mu: int, sites: Tensor) -> Tensor:
        """Sum of the six staples from x to x+mu at `sites`: [len(sites),Nc,Nc]."""
        total: Tensor | None = None
        corner = self._ahead[mu][sites]
        for nu in range(4):
            if nu == mu:
                continue
            u_mu, u_nu = self._links[mu], self._links[nu]
            back = self._behind[nu][sites]
            upper = u_nu[sites] @ u_mu[self._ahead[nu][sites]] @ u_nu[corner].mH
            lower = u_nu[back].mH @ u_mu[back] @ u_nu[self._behind[nu][corner]]
            total = upper + lower if total is None else total + upper + lower
        assert total is not None
        return total

    def _subgroups(self, link: Tensor, weight: Tensor, *, heat: bool) -> Tensor:
        """The link after one update in each SU(2) subgroup; weight = U C^dag, multiplied from the left as the link is."""
        for i in range(self.nc - 1):
            for j in range(i + 1, self.nc):
                v, size = _su2_part(weight, i, j)
                if heat:
                    new = _su2_heatbath((2.0 * self.beta / self.nc) * size, self._random)
                    g = _times_dagger(new, v)
                else:
                    g = _times_dagger((v[0], -v[1], -v[2], -v[3]), v)
                link, weight = _rotate(link, g, i, j), _rotate(weight, g, i, j)
        return link


def _su2_part(weight: Tensor, i: int, j: int) -> tuple[Quaternion, Tensor]:
    """Unit quaternion v and length k with Re tr(g w) = k Re tr(g v) for every g in SU(2), w the block (i, j) of `weight`.

    v = v0 + i (v1 s1 + v2 s2 + v3 s3). Where k is 0 any v serves; the identity is taken.
    """
    a, b, c, d = weight[:, i, i], weight[:, i, j], weight[:, j, i], weight[:, j, j]
    parts = torch.stack((a.real + d.real, b.imag + c.imag, b.real - c.real, a.imag - d.imag)) * 0.5
    size = parts.square().sum(0).sqrt()
    none = size == 0.0
    unit = parts / torch.where(none, torch.ones_like(size), size)
    return (torch.where(none, torch.ones_like(size), unit[0]), unit[1], unit[2], unit[3]), size


def _su2_heatbath(coupling: Tensor, random: torch.Generator) -> Quaternion:
    """Quaternions h with density proportional to exp(coupling h0) on the unit sphere in four dimensions.

    h0 has density exp(coupling h0) sqrt(1 - h0^2). Kennedy-Pendleton proposes 1 - h0 from a Gamma(3/2) law, Creutz proposes h0
    from exp(coupling h0) on [-1, 1]; both are exact after rejection, and which one is used depends on the coupling only.
    """
    h0 = torch.empty_like(coupling)
    waiting = torch.arange(coupling.numel())
    while waiting.numel():
        alpha = coupling[waiting].clamp_min(1e-30)
        r = torch.rand(4, waiting.numel(), generator=random, dtype=torch.float64).clamp_min(1e-300)
        # 1 - h0 by both proposals.
        gamma = -(r[0].log() + torch.cos(2.0 * math.pi * r[1]).square() * r[2].log()) / alpha
        creutz = -torch.log1p(r[0] * torch.expm1(-2.0 * alpha)) / alpha
        small = alpha < CREUTZ_BELOW
        gap = torch.where(small, creutz, gamma)
        chance = torch.where(small, gap * (2.0 - gap), 1.0 - 0.5 * gap)
        accepted = r[3].square() <= chance
        h0[waiting[accepted]] = 1.0 - gap[accepted]
        waiting = waiting[~accepted]
    r = torch.rand(2, coupling.numel(), generator=random, dtype=torch.float64)
    length = (1.0 - h0.square()).clamp_min(0.0).sqrt()
    cosine = 2.0 * r[0] - 1.0
    sine, angle = (1.0 - cosine.square()).clamp_min(0.0).sqrt(), 2.0 * math.pi * r[1]
    return h0, length * sine * angle.cos(), length * sine * angle.sin(), length * cosine


def _times_dagger(a: Quaternion, b: Quaternion) -> Quaternion:
    """a b^dag, for a = a0 + i a.s with (i s1)(i s2) = -i s3: a0 b0 + a.b, b0 a - a0 b + a x b."""
    return (
        a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3],
        b[0] * a[1] - a[0] * b[1] + (a[2] * b[3] - a[3] * b[2]),
        b[0] * a[2] - a[0] * b[2] + (a[3] * b[1] - a[1] * b[3]),
        b[0] * a[3] - a[0] * b[3] + (a[1] * b[2] - a[2] * b[1]),
    )


def _rotate(matrices: Tensor, g: Quaternion, i: int, j: int) -> Tensor:
    """g times the rows i and j of each matrix."""
    diagonal, off = torch.complex(g[0], g[3])[:, None], torch.complex(g[2], g[1])[:, None]
    row_i, row_j = matrices[:, i], matrices[:, j]
    rotated = matrices.clone()
    rotated[:, i] = diagonal * row_i + off * row_j
    rotated[:, j] = diagonal.conj() * row_j - off.conj() * row_i
    return rotated


def heatbath(
    geom: LatticeGeometry,
    beta: float,
    sweeps: int,
    *,
    seed: int = 0,
    overrelaxation: int = 1,
    start: str | GaugeField = "cold",
    dtype: torch.dtype = torch.complex128,
    observer: Callable[[int], None] | None = None,
) -> GaugeField:
    """A pure-gauge configuration after `sweeps` heatbath sweeps, each followed by `overrelaxation` overrelaxation sweeps.

    beta = 2 Nc / g^2; start: "cold", "hot" (Haar, from `seed`) or a GaugeField; the chain is reproducible by `seed`.
    observer: called with the number of sweeps done, after each.
    100 sweeps thermalise a small lattice at beta near 6. Errors: UsageError for another start, odd extents, a bad beta.
    """
    from lqcd_aot.core import GaugeField

    if min(sweeps, overrelaxation) < 0:
        raise UsageError("heatbath: sweeps are not counts", expected=">= 0", found=f"{sweeps} and {overrelaxation}")
    if start == "cold":
        links = GaugeField.cold(geom, dtype=torch.complex128).tensor
    elif start == "hot":
        links = GaugeField.random(geom, seed=seed, dtype=torch.complex128).tensor
    elif isinstance(start, GaugeField) and start.geom == geom:
        links = start.tensor
    else:
        raise UsageError("heatbath: start is not usable", expected='"cold", "hot" or a GaugeField on geom', found=repr(start))
    chain = Heatbath(links, beta, seed)
    for done in range(1, sweeps + 1):
        chain.sweep(overrelaxation)
        if observer is not None:
            observer(done)
    return GaugeField(chain.links.to(dtype), geom)
