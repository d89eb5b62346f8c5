"""One call per operator word of the runtime's table: the numbers that witnesses of observables and gauge maps are judged by.

Owns: the translation from `lqcd_runtime.signature.OPERATORS` to the functions of this package, always in complex128. Refuses to
know: how an artifact computes the same numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lqcd_aot.observables.clover import energy_density, topological_charge
from lqcd_aot.observables.flow import wilson_flow_step
from lqcd_aot.observables.gauge_action import wilson_action
from lqcd_aot.observables.links import links_of
from lqcd_aot.observables.loops import plaquette_planes
from lqcd_aot.observables.polyakov import polyakov_loop
from lqcd_aot.observables.stout import stout_smear
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import OPERATORS, kind_of


def _prepare(operator: str, kind: str, field: Any, inputs: dict[str, float]) -> Tensor:
    """Complex128 links after checking that operator is of `kind` and that the inputs are exactly those it takes."""
    if kind_of(operator) != kind:
        raise UsageError(f"operator {operator!r}: is not of kind {kind}", found=kind_of(operator))
    takes = OPERATORS[operator]["inputs"]
    if set(inputs) != set(takes):
        raise UsageError(f"operator {operator!r}: was given other inputs", expected=list(takes), found=sorted(inputs))
    links = torch.as_tensor(field) if hasattr(field, "__array_interface__") else links_of(field)
    return links_of(links).to(torch.complex128)


def observe(operator: str, field: Any, **inputs: float) -> list[float]:
    """The results of an observable in the order of OPERATORS[operator]["results"], from complex128 links.

    field: GaugeField, tensor or numpy array [T,Z,Y,X,4,Nc,Nc]; inputs: those of OPERATORS[operator]["inputs"].
    Errors: UsageError for an operator that is not an observable, or for missing or surplus inputs.
    """
    links = _prepare(operator, "observable", field, inputs)
    if operator == "plaquette":
        return [float(value) for value in plaquette_planes(links)]
    if operator == "polyakov_loop":
        loops = [complex(polyakov_loop(links, mu)) for mu in range(4)]
        return [part for loop in loops for part in (loop.real, loop.imag)]
    if operator == "wilson_action":
        return [wilson_action(links, inputs["beta"])]
    if operator == "topological_charge":
        return [topological_charge(links)]
    if operator == "energy_density":
        return [energy_density(links)]
    raise UsageError(f"operator {operator!r}: has no judge", expected="an observable of this package")


def gauge_map(operator: str, field: Any, **inputs: float) -> Tensor:
    """The links a gauge map returns: complex128 [T,Z,Y,X,4,Nc,Nc]. Arguments and errors as `observe`."""
    links = _prepare(operator, "gauge_map", field, inputs)
    if operator == "wilson_flow_step":
        mapped = wilson_flow_step(links, inputs["epsilon"])
    elif operator == "stout_smear":
        mapped = stout_smear(links, inputs["rho"])
    else:
        raise UsageError(f"operator {operator!r}: has no judge", expected="a gauge map of this package")
    return links_of(mapped)
