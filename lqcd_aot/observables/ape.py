"""APE smearing of gauge links, with projection back to SU(N).

Owns: the smearing step. Refuses to know: what the smeared links are used for.
"""

from __future__ import annotations

from typing import Any

import torch

from lqcd_aot.core.su_n import project_su_n
from lqcd_aot.observables.links import DIRECTIONS, count, links_of, staple_sum, wrap
from lqcd_runtime.errors import UsageError


def ape_smear(field: Any, alpha: float, steps: int = 1, *, directions: tuple[int, ...] = DIRECTIONS) -> Any:
    """U' = Proj[ (1 - alpha) U + alpha/(2 (d-1)) C ], `steps` times; C is the sum of the 2(d-1) staples, d = len(directions).

    directions: links that are smeared, with staples inside these directions only; (1, 2, 3) leaves T links alone.
    Proj is `core.su_n.project_su_n`. Returns the form it was given. Errors: UsageError for fewer than two directions.
    Source: APE collaboration, M. Albanese et al., Phys. Lett. B 192 (1987) 163.
    """
    inside = tuple(directions)
    if len(set(inside) & set(DIRECTIONS)) != len(inside) or len(inside) < 2:
        raise UsageError("ape_smear: directions span no plane", expected="two or more of 0, 1, 2, 3", found=inside)
    links = links_of(field)
    weight = alpha / (2.0 * (len(inside) - 1))
    for _ in range(count(steps, "ape_smear steps")):
        smeared = list(links.unbind(4))
        for mu in inside:
            smeared[mu] = project_su_n((1.0 - alpha) * links[..., mu, :, :] + weight * staple_sum(links, mu, inside))
        links = torch.stack(smeared, dim=4)
    return wrap(field, links)
