"""Gauge observables of a cold, a random and a thermalised gauge configuration.

    python examples/01_plaquette.py
"""

from __future__ import annotations

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.observables import energy_density, plaquette, polyakov_loop, topological_charge, wilson_action


def show(name: str, field: GaugeField, beta: float) -> None:
    """One line of observables."""
    loop = complex(polyakov_loop(field))
    print(
        f"{name:12s} plaquette {plaquette(field):+.6f}  gauge action {wilson_action(field, beta):11.3f}  "
        f"Polyakov {loop.real:+.4f}{loop.imag:+.4f}i  Q {topological_charge(field):+.4f}  E {energy_density(field):.4f}"
    )


def main() -> None:
    geom = LatticeGeometry(T=8, Z=4, Y=4, X=4)
    beta = 6.0
    show("cold", GaugeField.cold(geom), beta)
    show("random", GaugeField.random(geom, seed=0), beta)
    show("heatbath", GaugeField.heatbath(geom, beta, 60, seed=0), beta)


if __name__ == "__main__":
    main()
