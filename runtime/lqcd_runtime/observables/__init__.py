"""Measurements: gauge observables by compiled artifacts, propagators by solves, correlators by contraction.

    observe.py      observe(bundle, gauge, *names)
    propagator.py   Propagator, propagator(D, source)
    correlators.py  pion and meson correlators, effective masses

Nothing is imported here: each is loaded by the door on first use.
"""
