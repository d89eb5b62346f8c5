"""Polyakov loops: the trace of the product of links once around the lattice.

Owns: their definition and normalisation (divided by Nc). Refuses to know: fermion boundary signs, which gauge loops never see.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lqcd_aot.observables.links import colour_trace, links_of
from lqcd_runtime.errors import UsageError


def polyakov_loop_spatially_resolved(field: Any, mu: int = 0) -> Tensor:
    """L(x) = tr[prod_s U_mu(s, x)] / Nc: complex, the lattice shape without axis mu ([Z,Y,X] for mu = 0).

    Errors: UsageError for mu outside 0..3.
    """
    links = links_of(field)
    if mu not in (0, 1, 2, 3):
        raise UsageError(f"polyakov_loop: direction {mu!r} is not known", expected="0 (T), 1 (Z), 2 (Y) or 3 (X)")
    slices = links[..., mu, :, :].unbind(mu)
    product = slices[0]
    for link in slices[1:]:
        product = product @ link
    return colour_trace(product) / links.shape[-1]


def polyakov_loop(field: Any, mu: int = 0) -> Tensor:
    """Average of L(x) over the sites orthogonal to mu: a complex128 tensor without axes. 1 on a cold field."""
    return polyakov_loop_spatially_resolved(field, mu).to(torch.complex128).mean()
