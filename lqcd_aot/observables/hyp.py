"""Hypercubic (HYP) smearing of gauge links, with projection back to SU(N).

Owns: the three nested levels. Refuses to know: what the smeared links are used for.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lqcd_aot.core.su_n import project_su_n
from lqcd_aot.observables.links import DIRECTIONS, count, links_of, staple, wrap

Levels = dict[tuple[int, ...], Tensor]


def hyp_smear(field: Any, alpha1: float = 0.75, alpha2: float = 0.6, alpha3: float = 0.3, steps: int = 1) -> Any:
    """Every link is mixed only with links of the hypercubes attached to it, `steps` times:

    level 3: W_{mu;nu rho} = Proj[(1-a3) U_mu + a3/2 sum of staples in the one direction eta not in {mu, nu, rho}]
    level 2: V_{mu;nu}     = Proj[(1-a2) U_mu + a2/4 sum over rho not in {mu, nu} of staples of W_{mu;rho nu} along W_{rho;nu mu}]
    level 1: U'_mu         = Proj[(1-a1) U_mu + a1/6 sum over nu != mu of staples of V_{mu;nu} along V_{nu;mu}]
    Proj is `core.su_n.project_su_n`. Returns the form it was given.
    Source: A. Hasenfratz, F. Knechtli, Phys. Rev. D 64 (2001) 034504, with its coefficients as defaults.
    """
    links = links_of(field)
    for _ in range(count(steps, "hyp_smear steps")):
        links = _hyp_step(links, alpha1, alpha2, alpha3)
    return wrap(field, links)


def _mix(link: Tensor, alpha: float, staples: list[Tensor]) -> Tensor:
    """Proj[(1 - alpha) link + alpha / (2 len(staples)) sum of staples]; each entry is already a sum of two."""
    total = staples[0]
    for each in staples[1:]:
        total = total + each
    return project_su_n((1.0 - alpha) * link + alpha / (2.0 * len(staples)) * total)


def _hyp_step(links: Tensor, alpha1: float, alpha2: float, alpha3: float) -> Tensor:
    u = links.unbind(4)
    third: Levels = {}
    for mu in DIRECTIONS:
        for eta in DIRECTIONS:
            if eta != mu:
                # W_{mu;nu rho} is symmetric in nu, rho and fixed by the direction eta that is left over.
                third[mu, eta] = _mix(u[mu], alpha3, [staple(u[mu], u[eta], mu, eta)])
    second: Levels = {}
    for mu in DIRECTIONS:
        for nu in DIRECTIONS:
            if nu == mu:
                continue
            left = [rho for rho in DIRECTIONS if rho not in (mu, nu)]
            staples = []
            for rho in left:
                eta = next(d for d in left if d != rho)
                staples.append(staple(third[mu, eta], third[rho, eta], mu, rho))
            second[mu, nu] = _mix(u[mu], alpha2, staples)
    first = []
    for mu in DIRECTIONS:
        around = [staple(second[mu, nu], second[nu, mu], mu, nu) for nu in DIRECTIONS if nu != mu]
        first.append(_mix(u[mu], alpha1, around))
    return torch.stack(first, dim=4)
