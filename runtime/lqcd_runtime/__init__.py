"""Loads and runs ahead-of-time compiled lattice QCD artifacts. The door: every name loaded when first used.

    import lqcd_runtime as lqcd
    bundle = lqcd.open("wilson.lqcd")                  # or a store folder
    gauge = lqcd.load_gauge("cfg.lime")
    print(lqcd.observe(bundle, gauge, "plaquette"))
    D = bundle.operator("wilson", gauge=gauge, mass=0.1, t_boundary=-1)
    prop = lqcd.propagator(D, source=lqcd.point_source((0, 0, 0, 0)))
    print(lqcd.pion_correlator(prop))

    formats      manifest, bundle_layout, bundle_writer, bundle_file, bundle_verify, store_reader, digest, conventions
    choice       signature (what can be asked), target (what this machine runs), select, bundle (the facade), operator_choice
    running      engines/, arrays, inputs, packed, operator, composed, gauge_calls, compiled_solver, solver_choice, memory_use
    trust        witness, witness_bound, replay, self_check
    physics      fields, noise, geometry, sources, gauge_io/, solvers/, observables/

Importing this package loads a fraction of the standard library and nothing else; numpy comes with the first field.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lqcd_runtime.bundle import open_bundle as open
    from lqcd_runtime.gauge_io import load_gauge, write_gauge
    from lqcd_runtime.hardware import devices
    from lqcd_runtime.memory_use import memory
    from lqcd_runtime.observables.correlators import pion_correlator
    from lqcd_runtime.observables.observe import observe
    from lqcd_runtime.observables.propagator import propagator
    from lqcd_runtime.self_check import selfcheck
    from lqcd_runtime.solvers import solve
    from lqcd_runtime.sources import noise_source, point_source, wall_source

# name: (module, attribute). No module of the package has the name of a function here: importing it would hide the function.
_DOOR = {
    "load_gauge": ("gauge_io", "load_gauge"),
    "memory": ("memory_use", "memory"),
    "noise_source": ("sources", "noise_source"),
    "observe": ("observables.observe", "observe"),
    "open": ("bundle", "open_bundle"),
    "pion_correlator": ("observables.correlators", "pion_correlator"),
    "point_source": ("sources", "point_source"),
    "propagator": ("observables.propagator", "propagator"),
    "selfcheck": ("self_check", "selfcheck"),
    "devices": ("hardware", "devices"),
    "solve": ("solvers", "solve"),
    "wall_source": ("sources", "wall_source"),
    "write_gauge": ("gauge_io", "write_gauge"),
}

__all__ = [
    "devices", "load_gauge", "memory", "noise_source", "observe", "open", "pion_correlator", "point_source", "propagator",
    "selfcheck", "solve", "wall_source", "write_gauge",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _DOOR:
        raise AttributeError(f"module lqcd_runtime has no attribute {name!r}")
    module, attribute = _DOOR[name]
    value = getattr(__import__(f"lqcd_runtime.{module}", fromlist=[attribute]), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
