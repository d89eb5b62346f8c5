"""Spec -> the torch module that is lowered for it. Specs that share a `structure` share the exported graph."""

from __future__ import annotations

from torch import nn

from lqcd_aot.program.hlo.modules.cg import CgIteration
from lqcd_aot.program.hlo.modules.checkerboard import SchurDirac
from lqcd_aot.program.hlo.modules.dirac import ComponentDirac
from lqcd_aot.program.hlo.modules.fused import BlockBuilder, FusedWilson
from lqcd_aot.program.hlo.modules.loops import FieldStrength, Plaquettes, PolyakovLoops
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.split_binding import family_and_form

Structure = tuple[object, ...]


def structure(spec: Spec) -> Structure:
    """What the text of a program depends on, beside the extents: operator, fused or not, slab or not."""
    length = spec.lattice if spec.operator == "polyakov_loop" else None
    return spec.operator, spec.fused, spec.shards > 1, length


def module_for(spec: Spec) -> nn.Module:
    """The module of a spec; its forward takes, by name, the parameters of the spec's binding and the constants."""
    slab = spec.shards > 1
    if spec.kind == "chunk":
        inside = Spec(OPERATORS[spec.operator]["solves"], spec.lattice, spec.dtype, batch=spec.batch, fused=spec.fused)
        return CgIteration(module_for(inside), spec.fused)
    if spec.kind == "dirac":
        family, form = family_and_form(spec.operator)
        if spec.fused:
            return FusedWilson(form, slab)
        return SchurDirac(family, form) if family.endswith("_schur") else ComponentDirac(family, form, slab)
    if spec.kind == "builder":
        return BlockBuilder(slab)
    if spec.operator == "polyakov_loop":
        return PolyakovLoops(spec.lattice)
    if spec.operator in ("plaquette", "wilson_action"):
        return Plaquettes(deficit=spec.operator == "wilson_action")
    return FieldStrength(energy=spec.operator == "energy_density")
