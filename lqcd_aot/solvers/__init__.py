"""The torch face of lqcd_runtime.solvers: solver objects with `.solve(A, b, x0)`, in the manner of lqcd-neuron.

The algorithms live in lqcd_runtime.solvers, where one text serves numpy and torch; nothing is iterated here.
face.py   Solver and its kinds: ConjugateGradient, BiCGStab, GCR, MultiShiftCG, MixedPrecision
dirac.py  invert: M x = b for an operator module and its links
lanczos.py  lowest eigenpairs of a Hermitian operator
"""

from lqcd_aot.solvers.dirac import invert
from lqcd_aot.solvers.face import GCR, BiCGStab, ConjugateGradient, MixedPrecision, MultiShiftCG, Solver
from lqcd_aot.solvers.lanczos import EigenInfo, Lanczos
from lqcd_runtime.solvers.result import ColumnInfo, Reason, SolveInfo

SolverInfo = SolveInfo

__all__ = [
    "GCR",
    "BiCGStab",
    "ColumnInfo",
    "ConjugateGradient",
    "EigenInfo",
    "Lanczos",
    "MixedPrecision",
    "MultiShiftCG",
    "Reason",
    "SolveInfo",
    "Solver",
    "SolverInfo",
    "invert",
]
