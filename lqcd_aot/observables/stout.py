"""Stout smearing of gauge links.

Owns: the smearing step. Refuses to know: what the smeared links are used for; boundary signs belong to fermions.
"""

from __future__ import annotations

from typing import Any

from lqcd_aot.observables.algebra import expm, wilson_force
from lqcd_aot.observables.links import DIRECTIONS, count, links_of, wrap


def stout_smear(field: Any, rho: float, steps: int = 1, *, directions: tuple[int, ...] = DIRECTIONS) -> Any:
    """U' = exp( P[ rho C U^dag ] ) U, `steps` times; C is the sum of the staples, P the traceless anti-Hermitian part.

    directions: links that are smeared, with staples inside these directions only; (1, 2, 3) leaves T links alone.
    Returns the form it was given (GaugeField or tensor). Analytic, gauge covariant, stays in SU(N).
    Source: C. Morningstar, M. Peardon, Phys. Rev. D 69 (2004) 054501, with isotropic rho.
    """
    links = links_of(field)
    for _ in range(count(steps, "stout_smear steps")):
        links = expm(float(rho) * wilson_force(links, tuple(directions))) @ links
    return wrap(field, links)
