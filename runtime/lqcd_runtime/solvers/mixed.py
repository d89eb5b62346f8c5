"""Defect correction: solutions of high precision from solves of low precision.

Owns the outer loop: residuals b - A x in the outer precision, corrections from any inner solver, judged by the true
residual. Knows no inner algorithm.
"""

from __future__ import annotations

import math
import time

from lqcd_runtime.errors import SolveError
from lqcd_runtime.solvers import space
from lqcd_runtime.solvers.result import ColumnInfo, Reason, SolveInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lqcd_runtime.solvers.ledger import Operator

    Inner = Callable[[Any], tuple[Any, SolveInfo]]

# Corrections in a row that fail to halve the true residual before a column is given up.
_STRIKES = 2


def defect_correction(
    apply: Operator, inner: Inner, b: Any, *, x0: Any = None, tol: float = 1e-10, max_cycles: int = 50, low: str = "complex64"
) -> tuple[Any, SolveInfo]:
    """Solve A x = b by x <- x + inner(b - A x) until the true residual |b - A x| <= tol |b| of every column.

    apply: A in the precision of b; inner: rhs -> (correction, SolveInfo) for right-hand sides cast to `low` and scaled
    to norm 1; it may be loose (1e-4 is plenty) and need not converge. iterations of a column: the sum of the inner
    ones; residual_history: true residuals, one a cycle. Errors: SolveError for a senseless tol or max_cycles.
    Source: the iterative refinement of J. Wilkinson, Rounding Errors in Algebraic Processes (1963).
    """
    if not (0.0 < tol < 1.0 and max_cycles >= 1):
        raise SolveError(
            "defect correction: the tolerance or the cycle limit is out of range", found=f"tol={tol}, max_cycles={max_cycles}"
        )
    started = time.perf_counter()
    sizes = space.norms(b)
    columns = [ColumnInfo() for _ in sizes]
    x = space.zeros_like(b) if x0 is None else space.copy(x0)
    active = _admit(columns, sizes, x)
    applications, strikes = 0, dict.fromkeys(active, 0)
    for cycle in range(max_cycles + 1):
        if not active:
            break
        r = space.take(b, active) - space.contiguous(apply(space.take(x, active)))
        applications += len(active)
        lengths = space.norms(r)
        keep = []
        for k, column in enumerate(active):
            if not _finished(columns[column], lengths[k] / sizes[column], tol, strikes, column, last=cycle == max_cycles):
                keep.append(k)
        active = [active[k] for k in keep]
        if not active:
            break
        scales = [lengths[k] for k in keep]
        correction, info = inner(space.cast(space.divided(space.take(r, keep), scales), low))
        applications += info.applications
        wide = space.cast(correction, _dtype_name(b))
        for k, column in enumerate(active):
            columns[column].iterations += info.columns[k].iterations
            x[column] += wide[k] * scales[k]
    return x, SolveInfo(columns, applications=applications, seconds=time.perf_counter() - started)


def _dtype_name(a: Any) -> str:
    return str(a.dtype).rpartition(".")[2]


def _admit(columns: list[ColumnInfo], sizes: list[float], x: Any) -> list[int]:
    """Settle zero and non-finite right-hand sides; the numbers of the others."""
    active = []
    for column, size in enumerate(sizes):
        info = columns[column]
        if not math.isfinite(size):
            info.reason, info.note = Reason.NOT_FINITE, "the right-hand side holds NaN or infinity"
            x[column] = math.nan
        elif size == 0.0:
            info.reason, info.final_residual, info.recursive_residual = Reason.CONVERGED, 0.0, 0.0
            info.residual_history = [0.0]
            x[column] = 0
        else:
            active.append(column)
    return active


def _finished(info: ColumnInfo, value: float, tol: float, strikes: dict[int, int], column: int, *, last: bool) -> bool:
    """Record the true residual of a column and decide whether it is finished."""
    before = info.residual_history[-1] if info.residual_history else math.inf
    info.residual_history.append(value)
    info.final_residual = info.recursive_residual = value
    if value <= tol:
        info.reason = Reason.CONVERGED
        return True
    if not math.isfinite(value):
        info.reason, info.note = Reason.NOT_FINITE, "NaN or infinity appeared in a correction"
        return True
    strikes[column] = strikes[column] + 1 if value > 0.5 * before else 0
    if strikes[column] >= _STRIKES:
        info.reason = Reason.STAGNATED
        info.note = f"two corrections in a row did not halve the true residual {value:.3g}: the inner solve is too imprecise"
        return True
    return last
