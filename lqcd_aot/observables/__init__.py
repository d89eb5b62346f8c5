"""Gauge observables, Wilson flow, link smearing and hadron correlators: the torch functions that give them their meaning.

links.py        link tensors: shifts, staples, colour trace
algebra.py      force of the Wilson action, exponential
loops.py        plaquette, rectangle, Wilson loops
gauge_action.py Wilson and Symanzik actions
polyakov.py     Polyakov loops
clover.py       field strength, topological charge, energy density
flow.py         Wilson flow, E(t), Q(t), t0, w0
ape.py stout.py hyp.py      smearing of gauge links
quark_smearing.py           Gaussian smearing of quark fields, point columns
propagators.py  layout of propagators, sink smearing, projection to momentum and time
mesons.py       two-point functions for the sixteen gamma structures, effective mass
baryons.py      the proton
judge.py        one call per operator word of the runtime: what the witnesses are judged by
Gauge functions accept a GaugeField or a tensor [T,Z,Y,X,4,Nc,Nc], and never see the boundary signs of fermions.
"""

from lqcd_aot.observables.ape import ape_smear
from lqcd_aot.observables.baryons import proton_correlator, proton_density
from lqcd_aot.observables.clover import (
    energy_density,
    energy_density_tensor,
    field_strength,
    topological_charge,
    topological_charge_density,
)
from lqcd_aot.observables.flow import (
    flow_history,
    flow_scales,
    wilson_flow,
    wilson_flow_adaptive,
    wilson_flow_step,
)
from lqcd_aot.observables.gauge_action import symanzik_action, wilson_action
from lqcd_aot.observables.hyp import hyp_smear
from lqcd_aot.observables.loops import (
    plaquette,
    plaquette_planes,
    plaquette_tensor,
    rectangle,
    rectangle_tensor,
    wilson_loops,
)
from lqcd_aot.observables.mesons import effective_mass, gamma_product, meson_correlator, meson_correlators
from lqcd_aot.observables.polyakov import polyakov_loop, polyakov_loop_spatially_resolved
from lqcd_aot.observables.propagators import columns_of, propagator_from_columns, smear_sink
from lqcd_aot.observables.quark_smearing import gaussian_smear, point_columns
from lqcd_aot.observables.stout import stout_smear

__all__ = [
    "ape_smear",
    "columns_of",
    "effective_mass",
    "energy_density",
    "energy_density_tensor",
    "field_strength",
    "flow_history",
    "flow_scales",
    "gamma_product",
    "gaussian_smear",
    "hyp_smear",
    "meson_correlator",
    "meson_correlators",
    "plaquette",
    "plaquette_planes",
    "plaquette_tensor",
    "point_columns",
    "polyakov_loop",
    "polyakov_loop_spatially_resolved",
    "propagator_from_columns",
    "proton_correlator",
    "proton_density",
    "rectangle",
    "rectangle_tensor",
    "smear_sink",
    "stout_smear",
    "symanzik_action",
    "topological_charge",
    "topological_charge_density",
    "wilson_action",
    "wilson_flow",
    "wilson_flow_adaptive",
    "wilson_flow_step",
    "wilson_loops",
]
