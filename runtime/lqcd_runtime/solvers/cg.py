"""Conjugate gradient: A x = b for a Hermitian positive definite A, every column with its own scalars."""

from __future__ import annotations

import math

from lqcd_runtime.solvers import space
from lqcd_runtime.solvers.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.solvers.ledger import Acceptance, Observer, Operator
    from lqcd_runtime.solvers.result import SolveInfo


def cg(
    apply: Operator,
    b: Any,
    *,
    x0: Any = None,
    tol: float = 1e-10,
    max_iterations: int = 10_000,
    acceptance: Acceptance | None = None,
    observer: Observer | None = None,
) -> tuple[Any, SolveInfo]:
    """Solve A x = b until the true residual |b - A x| <= tol |b| of every column.

    apply: v -> A v on [columns, ...], numpy or torch, any number of columns; b, x0: [columns, ...], not written to;
    acceptance replaces the criterion (see ledger.Acceptance); observer is called before every iteration. Returns (x,
    SolveInfo). A column ends with BREAKDOWN where p^dag A p <= 0: A is singular or not positive definite.
    Errors: SolveError for a senseless tol or max_iterations.
    Source: M. Hestenes, E. Stiefel, J. Res. NBS 49 (1952) 409.
    """
    run = Ledger(apply, b, x0=x0, tol=tol, max_iterations=max_iterations, acceptance=acceptance, observer=observer)
    p = space.copy(run.r)
    rr = space.norm2(run.r)
    while run.active:
        keep, restart = run.settle([math.sqrt(v) for v in rr])
        if len(keep) < len(rr):
            p, rr = space.take(p, keep), [rr[k] for k in keep]
        if not run.active:
            break
        if restart:
            fresh = space.norm2(run.r)
            for k in restart:
                p[k], rr[k] = run.r[k], fresh[k]
        q = run.multiply(p)
        alpha = []
        for k, value in enumerate(space.inner(p, q)):
            if value.real <= 0.0:
                run.broken(k, f"p^dag A p = {value.real:.3g} is not positive: the operator is singular or not positive definite")
            alpha.append(0.0 if value.real <= 0.0 else rr[k] / value.real)
        space.axpy(run.x, alpha, p)
        space.axpy(run.r, [-a for a in alpha], q)
        new = space.norm2(run.r)
        space.xpay(p, [n / o if o > 0.0 else 0.0 for n, o in zip(new, rr, strict=True)], run.r)
        rr = new
        run.tick()
    return run.result()
