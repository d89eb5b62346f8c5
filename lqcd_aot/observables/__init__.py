"""Gauge observables, Wilson flow, link smearing and hadron correlators: the torch functions that give them their meaning.

links.py        link tensors: shifts, staples, projection to SU(N)
loops.py        plaquette, rectangle, Wilson loops
gauge_action.py Wilson and Symanzik actions
polyakov.py     Polyakov loops
clover.py       field strength, topological charge, energy density
judge.py        one call per operator word of the runtime: what the witnesses are judged by
All accept a GaugeField or a tensor [T,Z,Y,X,4,Nc,Nc], and never see the boundary signs of fermions.
"""

from __future__ import annotations

from lqcd_aot.observables.clover import (
    energy_density,
    energy_density_tensor,
    field_strength,
    topological_charge,
    topological_charge_density,
)
from lqcd_aot.observables.gauge_action import symanzik_action, wilson_action
from lqcd_aot.observables.loops import (
    plaquette,
    plaquette_planes,
    plaquette_tensor,
    rectangle,
    rectangle_tensor,
    wilson_loops,
)
from lqcd_aot.observables.polyakov import polyakov_loop, polyakov_loop_spatially_resolved

__all__ = [
    "energy_density",
    "energy_density_tensor",
    "field_strength",
    "plaquette",
    "plaquette_planes",
    "plaquette_tensor",
    "polyakov_loop",
    "polyakov_loop_spatially_resolved",
    "rectangle",
    "rectangle_tensor",
    "symanzik_action",
    "topological_charge",
    "topological_charge_density",
    "wilson_action",
    "wilson_loops",
]
