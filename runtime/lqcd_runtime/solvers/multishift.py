"""Multi-shift conjugate gradient: (A + sigma_i) x_i = b for all shifts at the operator applications of the smallest one."""

from __future__ import annotations

import math
import time

from lqcd_runtime.errors import SolveError
from lqcd_runtime.solvers import space
from lqcd_runtime.solvers.cg import cg
from lqcd_runtime.solvers.result import SolveInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from lqcd_runtime.solvers.ledger import Observer, Operator


class _Shift:
    """One shifted system, for all columns: x, p, and the ratios zeta = (shifted residual) / (base residual), now and before."""

    def __init__(self, offset: float, r: Any) -> None:
        self.offset = offset
        self.x = space.zeros_like(r)
        self.p = space.copy(r)
        self.zeta = [1.0] * r.shape[0]
        self.zeta_before = [1.0] * r.shape[0]
        self.done = [False] * r.shape[0]
        self.iterations = [0] * r.shape[0]

    def step(self, alpha: list[float], alpha_before: list[float], beta_before: list[float]) -> list[float]:
        """x += alpha^sigma p; returns the next zeta of every column."""
        following, steps = [], []
        for k, a in enumerate(alpha):
            now, old = self.zeta[k], self.zeta_before[k]
            below = a * beta_before[k] * (old - now) + old * alpha_before[k] * (1.0 + self.offset * a)
            zeta = now * old * alpha_before[k] / below if below != 0.0 and not self.done[k] else 0.0
            following.append(zeta)
            steps.append(a * zeta / now if now != 0.0 and not self.done[k] else 0.0)
        space.axpy(self.x, steps, self.p)
        return following

    def turn(self, following: list[float], beta: list[float], r: Any) -> None:
        """p = zeta r + beta^sigma p."""
        ratios = [(z / n) if n != 0.0 else 0.0 for z, n in zip(following, self.zeta, strict=True)]
        space.scale(self.p, [b * q * q for b, q in zip(beta, ratios, strict=True)])
        space.axpy(self.p, following, r)
        self.zeta_before, self.zeta = self.zeta, following


def multishift_cg(
    apply: Operator,
    b: Any,
    shifts: Sequence[float],
    *,
    tol: float = 1e-10,
    max_iterations: int = 10_000,
    observer: Observer | None = None,
) -> tuple[Any, list[SolveInfo]]:
    """Solve (A + sigma_i) x_i = b for Hermitian positive definite A + sigma_i, each to the true residual tol |b|.

    b: [columns, ...]; returns ([x of every shift], [SolveInfo of every shift]) in the order of `shifts`, which need not be
    sorted. A system whose true residual misses the tolerance after the common recursion is finished by plain CG from where
    it stands. The applications of the common recursion are counted in the info of the smallest shift, its seconds in all.
    Errors: SolveError for an empty or non-finite list of shifts, a senseless tol or max_iterations.
    Source: B. Jegerlehner, hep-lat/9612014.
    """
    if not shifts or not all(math.isfinite(s) for s in shifts):
        raise SolveError("multi-shift: the shifts are not usable", expected="one or more finite numbers", found=list(shifts))
    started = time.perf_counter()
    sizes = [s if math.isfinite(s) and s > 0.0 else 0.0 for s in space.norms(b)]
    rows = [c for c, s in enumerate(sizes) if s > 0.0]
    smallest = min(shifts)
    found = [_Shift(s - smallest, space.take(b, [])) for s in shifts]
    if rows:
        scaled = space.divided(space.take(b, rows), [sizes[c] for c in rows])
        found = _recursion(_shifted(apply, smallest), scaled, [s - smallest for s in shifts], tol, max_iterations, observer)
    seconds = time.perf_counter() - started
    solutions, infos = [], []
    for sigma, shift in zip(shifts, found, strict=True):
        start = space.zeros_like(b)
        for k, column in enumerate(rows):
            start[column] = shift.x[k] * sizes[column]
        spent = max(shift.iterations, default=0)
        x, info = cg(_shifted(apply, sigma), b, x0=start, tol=tol, max_iterations=max(0, max_iterations - spent))
        for k, column in enumerate(rows):
            info.columns[column].iterations += shift.iterations[k]
        info.applications += spent * len(rows) if sigma == smallest else 0
        info.seconds += seconds
        solutions.append(x)
        infos.append(info)
    return solutions, infos


def _shifted(apply: Operator, sigma: float) -> Operator:
    """v -> A v + sigma v."""

    def shifted(v: Any) -> Any:
        out = space.copy(apply(v))
        space.axpy(out, [sigma] * v.shape[0], v)
        return out

    return shifted


def _recursion(
    apply: Operator, b: Any, offsets: list[float], tol: float, max_iterations: int, observer: Observer | None
) -> list[_Shift]:
    """The common recursion on right-hand sides of norm 1, until every shift of every column has converged recursively."""
    shifts = [_Shift(d, b) for d in offsets]
    r, p = space.copy(b), space.copy(b)
    rr = space.norm2(r)
    columns = len(rr)
    alpha_before, beta_before = [1.0] * columns, [0.0] * columns
    for iteration in range(max_iterations):
        if observer is not None:
            observer(iteration, dict(enumerate(math.sqrt(v) for v in rr)))
        q = apply(p)
        pq = [v.real for v in space.inner(p, q)]
        # A column that is finished or broken takes no step; what it misses shows in its true residual.
        alpha = [v / w if w > 0.0 and math.isfinite(w) else 0.0 for v, w in zip(rr, pq, strict=True)]
        following = [s.step(alpha, alpha_before, beta_before) for s in shifts]
        space.axpy(r, [-a for a in alpha], q)
        new = space.norm2(r)
        beta = [n / o if a != 0.0 and o > 0.0 else 0.0 for n, o, a in zip(new, rr, alpha, strict=True)]
        space.xpay(p, beta, r)
        for shift, zeta in zip(shifts, following, strict=True):
            shift.turn(zeta, beta, r)
        rr, alpha_before, beta_before = new, [a or 1.0 for a in alpha], beta
        for shift in shifts:
            for k in range(columns):
                if not shift.done[k]:
                    shift.iterations[k] = iteration + 1
                    shift.done[k] = alpha[k] == 0.0 or not abs(shift.zeta[k]) * math.sqrt(rr[k]) > tol
        if all(all(s.done) for s in shifts):
            break
        _retire(p, r, rr, [all(s.done[k] for s in shifts) for k in range(columns)])
    return shifts


def _retire(p: Any, r: Any, rr: list[float], finished: list[bool]) -> None:
    """Zero the vectors of finished columns, so that nothing of theirs can overflow."""
    for k, done in enumerate(finished):
        if done:
            p[k], r[k], rr[k] = 0, 0, 0.0
