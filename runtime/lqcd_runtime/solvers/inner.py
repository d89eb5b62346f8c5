"""Whether an inner operator is the outer one in another precision: same operator, inputs, gauge field and lattice.

Defect correction with another operator converges slowly or not at all and never says why, so it is refused before it starts.
Operators that do not tell what they are (a caller's own class) are judged by their lattice. Knows no algorithm.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.arrays import links_of
from lqcd_runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.solvers.dirac import Corrector, DiracLike

# Two spellings of one number, mass and kappa say, differ by some roundings of double precision.
_SAME = 1e-12


def check_inner(D: DiracLike, inner: DiracLike | Corrector) -> None:
    """Errors: UsageError where `inner` is known to be another operator than D."""
    if tuple(inner.lattice) != tuple(D.lattice):
        raise UsageError("inner operator: lives on another lattice", expected=tuple(D.lattice), found=tuple(inner.lattice))
    # A solver chunk carries the M^dag that it uses.
    chunk = hasattr(inner, "correct")
    its: Any = getattr(inner, "dagger", inner) if chunk else inner
    ours, theirs = getattr(D, "spec", None), getattr(its, "spec", None)
    if ours is None or theirs is None:
        return
    wanted = f"{ours.operator}_dagger" if chunk else ours.operator
    if theirs.operator != wanted:
        raise UsageError("inner operator: is another operator", expected=wanted, found=theirs.operator)
    mine, other = dict(D.inputs), dict(its.inputs)  # type: ignore[attr-defined]
    differing = [name for name in mine if not np.allclose(mine[name], other.get(name, np.nan), rtol=_SAME, atol=_SAME)]
    if differing:
        expected, found = (", ".join(f"{name}={values.get(name)}" for name in differing) for values in (mine, other))
        raise UsageError("inner operator: has other inputs", expected=expected, found=found)
    if not _same_links(D, its):
        raise UsageError("inner operator: was made over another gauge field", hint="bundle.operator(..., gauge=D.gauge)")


def _same_links(D: Any, inner: Any) -> bool:
    """By identity, else by value in single precision: the links of the inner operator may have been rounded by the caller."""
    if D.gauge is inner.gauge:
        return True
    return bool(np.array_equal(links_of(D.gauge, "float32"), links_of(inner.gauge, "float32")))
