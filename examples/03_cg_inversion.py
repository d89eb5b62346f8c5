"""A quark propagator column by conjugate gradients, with the true residual, for Wilson and clover fermions.

    python examples/03_cg_inversion.py
"""

from __future__ import annotations

import torch

from lqcd_aot.core import ColorSpinorField, GaugeField, LatticeGeometry
from lqcd_aot.dirac import CloverWilsonDirac, WilsonDirac
from lqcd_aot.solvers import BiCGStab, ConjugateGradient


def main() -> None:
    geom = LatticeGeometry(T=8, Z=4, Y=4, X=4)
    U = GaugeField.random(geom, seed=1, dtype=torch.complex128)
    b = ColorSpinorField.point_source(geom, t=0, z=0, y=0, x=0, dtype=torch.complex128)

    D = WilsonDirac(mass=0.1)
    solver = ConjugateGradient(tol=1e-8, maxiter=1000, verbose=True)
    x, info = solver.solve(lambda v: D.normal(v, U.tensor), D.dagger(b.tensor, U.tensor))
    print(f"CG on D^dag D : {info.iterations} iterations, |r|/|b| = {info.final_residual:.2e}")
    residual = float((D(x, U.tensor) - b.tensor).norm() / b.tensor.norm())
    print(f"of D x = b     : |b - D x|/|b| = {residual:.2e}")

    x, info = BiCGStab(tol=1e-8, maxiter=1000).solve(lambda v: D(v, U.tensor), b.tensor)
    print(f"BiCGStab on D : {info.iterations} iterations, |r|/|b| = {info.final_residual:.2e}")

    C = CloverWilsonDirac(mass=0.1, csw=1.0)
    x, info = ConjugateGradient(tol=1e-8).solve(lambda v: C.normal(v, U.tensor), C.dagger(b.tensor, U.tensor))
    print(f"CG, clover     : {info.iterations} iterations, |r|/|b| = {info.final_residual:.2e}")


if __name__ == "__main__":
    main()
