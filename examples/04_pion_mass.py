"""Pion and rho correlators and the pion's effective mass on one gauge configuration.

    python examples/04_pion_mass.py                       # a small heatbath configuration, beta 6.0, 8x4x4x4
    python examples/04_pion_mass.py cfg.lime --mass 0.0   # your own: NERSC, SciDAC/ILDG, MILC ... found by content

One configuration gives no error bar; average correlators over an ensemble before believing a mass.
"""

from __future__ import annotations

import argparse

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.dirac import WilsonDirac
from lqcd_aot.observables import (
    effective_mass,
    meson_correlators,
    plaquette,
    point_columns,
    propagator_from_columns,
)
from lqcd_aot.solvers import ConjugateGradient


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configuration", nargs="?", help="gauge configuration file")
    parser.add_argument("--mass", type=float, default=-0.4, help="bare quark mass (default -0.4)")
    parser.add_argument("--tol", type=float, default=1e-8, help="relative residual (default 1e-8)")
    arguments = parser.parse_args()

    if arguments.configuration:
        U = GaugeField.load(arguments.configuration)
    else:
        U = GaugeField.heatbath(LatticeGeometry(T=8, Z=4, Y=4, X=4), 6.0, 60, seed=1)
    print(f"lattice {'x'.join(map(str, U.geom.shape))} (TxZxYxX), plaquette {plaquette(U):.8f}")

    D = WilsonDirac(mass=arguments.mass, t_boundary=-1)
    sources = point_columns(U.geom.shape, (0, 0, 0, 0))
    solver = ConjugateGradient(tol=arguments.tol, maxiter=5000)
    x, info = solver.solve(lambda v: D.normal(v, U.tensor), D.dagger(sources, U.tensor), columns=True)
    print(f"12 columns at m = {arguments.mass}: {info.prose}")

    correlators = meson_correlators(propagator_from_columns(x)).real
    pion, rho = correlators[15], correlators[[1, 2, 4]].mean(0)
    masses = effective_mass(pion)
    print("  t   pion            rho             a m_pi(t)")
    for t in range(len(pion)):
        mass = f"{float(masses[t]):.6f}" if t < len(masses) else ""
        print(f"{t:3d}   {float(pion[t]):.8e}  {float(rho[t]):+.8e}  {mass}")


if __name__ == "__main__":
    main()
