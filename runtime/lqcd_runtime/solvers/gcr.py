"""Generalised conjugate residual, restarted: A x = b for a general A, the residual never grows."""

from __future__ import annotations

import math

from lqcd_runtime.solvers import space
from lqcd_runtime.solvers.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.solvers.ledger import Acceptance, Observer, Operator
    from lqcd_runtime.solvers.result import SolveInfo


def gcr(
    apply: Operator,
    b: Any,
    *,
    x0: Any = None,
    tol: float = 1e-10,
    max_iterations: int = 10_000,
    basis: int = 16,
    acceptance: Acceptance | None = None,
    observer: Observer | None = None,
) -> tuple[Any, SolveInfo]:
    """Solve A x = b until the true residual |b - A x| <= tol |b| of every column; one application an iteration.

    basis: directions kept before the basis is thrown away; memory is 2 * basis vectors. Other arguments, result and
    errors: as `cg`. A column ends with BREAKDOWN where A r is (nearly) orthogonal to r even on a fresh basis: no
    direction lowers the residual. Source: S. Eisenstat, H. Elman, M. Schultz, SIAM J. Numer. Anal. 20 (1983) 345.
    """
    run = Ledger(apply, b, x0=x0, tol=tol, max_iterations=max_iterations, acceptance=acceptance, observer=observer)
    directions: list[tuple[Any, Any]] = []
    tiny = 16 * space.epsilon(run.r)
    rr = space.norm2(run.r)
    while run.active:
        keep, restart = run.settle([math.sqrt(v) for v in rr])
        if len(keep) < len(rr):
            directions = [(space.take(z, keep), space.take(q, keep)) for z, q in directions]
            rr = [rr[k] for k in keep]
        if not run.active:
            break
        if restart or len(directions) >= basis:
            # One basis serves all columns: a restart of one column restarts them all, which costs them little.
            directions = []
        z = space.copy(run.r)
        q = run.multiply(z)
        before = space.norm2(q)
        for old_z, old_q in directions:
            overlap = [-v for v in space.inner(old_q, q)]
            space.axpy(q, overlap, old_q)
            space.axpy(z, overlap, old_z)
        lengths = [math.sqrt(v) for v in space.norm2(q)]
        usable = [n > tiny * math.sqrt(o) for n, o in zip(lengths, before, strict=True)]
        inverse = [1.0 / n if good else 0.0 for n, good in zip(lengths, usable, strict=True)]
        space.scale(q, inverse)
        space.scale(z, inverse)
        step = space.inner(q, run.r)
        rr = space.norm2(run.r)
        stuck = [not abs(a) > tiny * math.sqrt(v) for a, v in zip(step, rr, strict=True)]
        for k in range(len(rr)):
            if stuck[k] and not directions:
                run.broken(k, "A r is orthogonal to r: no direction lowers the residual")
        space.axpy(run.x, step, z)
        space.axpy(run.r, [-a for a in step], q)
        rr = space.norm2(run.r)
        directions = [] if any(stuck) else [*directions, (z, q)]
        run.tick()
    return run.result()
