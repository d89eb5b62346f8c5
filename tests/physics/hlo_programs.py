"""HLO programs run through XLA's CPU client from complex numpy arrays, and how far they may be from complex128.

Bound of a component: K u S (lqcd_runtime.witness_bound derives K and S) with u = 2^-24, and for bfloat16 K_b 2^-8 S more, where
K_b counts the roundings to bfloat16 on a path, which are few because sums stay in float32: psi 1, result 1, and per application
each link 1 (two hops: 2), the inverse 1, the half spinors of a fused dot 1 (the blocks hold bfloat16 numbers times 1/2, exactly).
A fused row has 48 terms that are not zero, added in an order that is XLA's business: 48 + product, link, psi, projection, and the
diagonal's two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from lqcd_aot.program import program_for
from lqcd_runtime import split_layout
from lqcd_runtime.engines.sim import SimProgram
from lqcd_runtime.geometry import parity
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.split_binding import family_and_form
from lqcd_runtime.witness_bound import UNIT, dirac

FUSED_PATH = 54
PHASES = (-1.0 + 0j, complex(np.exp(0.3j)), 1.0 + 0j, 1j)


@cache
def simulated(spec: Spec) -> SimProgram:
    """The compiled program of a spec."""
    program = program_for(spec, "sim")
    return SimProgram(program.hlo, program.binding)


def blocks(spec: Spec, folded: Any) -> list[Any]:
    """The results of the block builder, slab by slab."""
    builder = Spec("wilson_blocks", spec.lattice, spec.dtype, shards=spec.shards)
    return [simulated(builder).run(split_layout.pack_links(builder, folded, slab))["blocks"] for slab in range(builder.shards)]


def residents(
    spec: Spec, links: Any, inputs: dict[str, float], phases: Sequence[complex], scales: Sequence[float]
) -> list[dict[str, Any]]:
    """The resident parameters of every slab."""
    if spec.fused:
        made = blocks(spec, split_layout.fold(links, phases, scales))
        return [split_layout.pack_blocks(spec, made, slab) for slab in range(spec.shards)]
    return [split_layout.resident(spec, links, inputs, phases=phases, scales=scales, slab=slab) for slab in range(spec.shards)]


def apply(
    spec: Spec, psi: Any, links: Any, inputs: dict[str, float], *,
    phases: Sequence[complex] = PHASES, scales: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
) -> Any:  # fmt: skip
    """A Dirac program on psi [B,T,Z,Y,X,4,3], slab by slab. inputs: diagonal, csw, mu."""
    out = np.full_like(psi, np.nan)
    held = residents(spec, links, inputs, phases, scales)
    for slab in range(spec.shards):
        given = {"psi": split_layout.pack_spinor(spec, psi, slab), **split_layout.scalars(spec, inputs), **held[slab]}
        split_layout.unpack_spinor(spec, simulated(spec).run(given)["out"], out, slab)
    return out


def even_part(psi: Any) -> Any:
    """psi [B,T,Z,Y,X,4,3] with zero on odd sites."""
    out = psi.copy()
    out[:, parity(psi.shape[1:5]) == 1] = 0.0
    return out


def bound(spec: Spec, inputs: dict[str, float]) -> float:
    """Largest |component of the program - complex128| that rounding can explain."""
    operator = OPERATORS[spec.operator].get("solves", spec.operator)
    path, scale = dirac(operator, inputs)
    applications = 2 if operator.endswith("_normal") else 1
    if spec.fused:
        path = FUSED_PATH * applications
    if spec.dtype == "float32":
        return (path * UNIT["float32"]) * scale
    family = family_and_form(operator)[0]
    each = (2 if family.endswith("_schur") else 1) + (family == "clover_schur") + spec.fused
    return (path * UNIT["float32"] + (2 + applications * each) * UNIT["bfloat16"]) * scale
