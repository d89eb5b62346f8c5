"""Loads and runs ahead-of-time compiled lattice QCD artifacts. The door: eleven names, each loaded when first used.

    import lqcd_runtime as lqcd
    bundle = lqcd.open("wilson.lqcd")                  # or a store folder
    gauge = lqcd.load_gauge("cfg.lime")
    print(lqcd.observe(bundle, gauge, "plaquette"))
    D = bundle.operator("wilson", gauge=gauge, mass=0.1, t_boundary=-1)
    prop, info = lqcd.propagator(D, lqcd.point_source((0, 0, 0, 0)))
    print(lqcd.pion_correlator(prop))

    formats      manifest, bundle_layout, bundle_writer, bundle_file, bundle_verify, store_reader, digest, conventions
    choice       signature (what can be asked), target (what this machine runs), select, bundle (the facade), operator_choice
    running      engines/, arrays, inputs, packed, operator, composed, gauge_calls
    trust        witness, witness_bound, replay, self_check
    physics      fields, noise, geometry, gauge_io/, solvers/, observables/, propagator

Importing this package loads a fraction of the standard library and nothing else; numpy comes with the first field.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lqcd_runtime.bundle import open_bundle as open
    from lqcd_runtime.gauge_io import load_gauge, write_gauge
    from lqcd_runtime.self_check import selfcheck
    from lqcd_runtime.solvers import solve

_DOOR = {
    "open": ("bundle", "open_bundle"),
    "load_gauge": ("gauge_io", "load_gauge"),
    "write_gauge": ("gauge_io", "write_gauge"),
    "selfcheck": ("self_check", "selfcheck"),
    "solve": ("solvers", "solve"),
}

__all__ = ["load_gauge", "open", "selfcheck", "solve", "write_gauge"]


def __getattr__(name: str) -> object:
    if name not in _DOOR:
        raise AttributeError(f"module lqcd_runtime has no attribute {name!r}")
    module, attribute = _DOOR[name]
    value = getattr(__import__(f"lqcd_runtime.{module}", fromlist=[attribute]), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
