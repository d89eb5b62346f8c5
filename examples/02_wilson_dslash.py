"""The Wilson operator: application, adjoint, gamma5-hermiticity, and the normal operator.

    python examples/02_wilson_dslash.py
"""

from __future__ import annotations

from lqcd_aot.core import ColorSpinorField, GaugeField, LatticeGeometry
from lqcd_aot.dirac import WilsonDirac, apply_gamma5


def main() -> None:
    geom = LatticeGeometry(T=4, Z=4, Y=4, X=4)
    U = GaugeField.random(geom, seed=7)
    psi = ColorSpinorField.gaussian(geom, seed=3).tensor
    chi = ColorSpinorField.gaussian(geom, seed=5).tensor
    D = WilsonDirac(mass=0.1, t_boundary=-1)

    left = complex((chi.conj() * D(psi, U.tensor)).sum())
    right = complex((D.dagger(chi, U.tensor).conj() * psi).sum())
    print(f"<chi|D psi>    = {left:.6f}")
    print(f"<D^dag chi|psi> = {right:.6f}   relative difference {abs(left - right) / abs(left):.1e}")

    by_gamma5 = apply_gamma5(D(apply_gamma5(psi), U.tensor))
    difference = float((D.dagger(psi, U.tensor) - by_gamma5).norm() / psi.norm())
    print(f"gamma5-hermiticity: |D^dag psi - g5 D g5 psi| / |psi| = {difference:.1e}")

    expectation = complex((psi.conj() * D.normal(psi, U.tensor)).sum())
    print(f"<psi|D^dag D psi> = {expectation.real:.6f} (imaginary part {expectation.imag:.1e})")


if __name__ == "__main__":
    main()
