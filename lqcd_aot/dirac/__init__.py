"""Dirac operators as torch modules: the meaning of every operator word of kind dirac.

gamma.py           gamma matrices, sigma, spin projectors
options.py         mass or kappa, boundary phases, anisotropy
stencil.py         the hop as text, for complex tensors and for the split representation
wilson.py          WilsonDslash, WilsonDirac
field_strength.py  clover leaves and F_{mu nu}
clover.py          CloverWilsonDirac, compute_clover
twisted.py         TwistedMassDirac
even_odd.py        EvenOddWilsonDslash, WilsonSchur
clover_schur.py    CloverSchur
split.py           SplitForm: real and imaginary parts as separate real tensors
judge.py           operator word -> complex128 result
iterates.py        solver word -> iterate in complex128, with a bound on what rounding may do
"""

from lqcd_aot.dirac.clover import CloverWilsonDirac, compute_clover
from lqcd_aot.dirac.clover_schur import CloverSchur
from lqcd_aot.dirac.even_odd import EvenOddWilsonDslash, WilsonSchur
from lqcd_aot.dirac.field_strength import compute_field_strength
from lqcd_aot.dirac.gamma import apply_gamma5, degrand_rossi_gammas, gamma5, sigma_munu, spin_project_minus, spin_project_plus
from lqcd_aot.dirac.split import SplitForm
from lqcd_aot.dirac.twisted import TwistedMassDirac
from lqcd_aot.dirac.wilson import WilsonDirac, WilsonDslash

__all__ = [
    "CloverSchur",
    "CloverWilsonDirac",
    "EvenOddWilsonDslash",
    "SplitForm",
    "TwistedMassDirac",
    "WilsonDirac",
    "WilsonDslash",
    "WilsonSchur",
    "apply_gamma5",
    "compute_clover",
    "compute_field_strength",
    "degrand_rossi_gammas",
    "gamma5",
    "sigma_munu",
    "spin_project_minus",
    "spin_project_plus",
]
