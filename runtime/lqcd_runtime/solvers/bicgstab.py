"""Stabilised bi-conjugate gradient: A x = b for a general A, with restarts where the textbook recursion divides by
zero.

The textbook breaks down *exactly* in iteration 2 on a point source of the Wilson operator, because (1 - g)(1 + g) = 0
makes the shadow residual orthogonal to the residual. Here a column that breaks down keeps its minimal-residual half
step, takes a new shadow residual and continues; it is given up only where repeated restarts gain nothing.
"""

from __future__ import annotations

import math

from lqcd_runtime.solvers import space
from lqcd_runtime.solvers.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.solvers.ledger import Acceptance, Observer, Operator
    from lqcd_runtime.solvers.result import SolveInfo

# Restarts in a row, each without the residual falling by 1%, before a column is given up.
_RESTARTS = 8


class _Recursion:
    """The vectors and scalars of the active columns: p, v, the shadow residual, rho = (shadow, r); and restart counts."""

    def __init__(self, run: Ledger) -> None:
        self.run = run
        self.p = space.copy(run.r)
        self.shadow = space.copy(run.r)
        self.rr = space.norm2(run.r)
        self.rho: list[complex] = [complex(v) for v in self.rr]
        self.restarts = [0] * len(self.rr)
        self.best = [math.inf] * len(self.rr)
        self.tiny = 4 * space.epsilon(run.r)

    def keep(self, keep: list[int]) -> None:
        """Forget all columns but these."""
        if len(keep) < len(self.rr):
            self.p, self.shadow = space.take(self.p, keep), space.take(self.shadow, keep)
            self.rr, self.rho = [self.rr[k] for k in keep], [self.rho[k] for k in keep]
            self.restarts, self.best = [self.restarts[k] for k in keep], [self.best[k] for k in keep]

    def restart(self, positions: list[int]) -> None:
        """Start these columns afresh from their residual, with the residual itself as shadow; scrambled signs after a failure."""
        for k in positions:
            residual = self.run.r[k : k + 1]
            self.p[k] = self.run.r[k]
            self.shadow[k] = space.scrambled(residual, self.restarts[k])[0] if self.restarts[k] else self.run.r[k]
            self.rr[k] = space.norm2(residual)[0]
            self.rho[k] = space.inner(self.shadow[k : k + 1], residual)[0]

    def vanishes(self, value: complex, a2: float, b2: float) -> bool:
        """Whether an inner product is rounding noise against |a| |b|, given |a|^2 and |b|^2. NaN does not vanish."""
        return abs(value) <= self.tiny * math.sqrt(a2) * math.sqrt(b2)

    def count_failure(self, k: int) -> None:
        """Note a breakdown of column k; give the column up after too many without progress."""
        if self.rr[k] < 0.98 * self.best[k]:
            self.best[k], self.restarts[k] = self.rr[k], 0
        self.restarts[k] += 1
        if self.restarts[k] >= _RESTARTS:
            self.run.broken(k, f"{_RESTARTS} restarts in a row did not lower the residual")


def bicgstab(
    apply: Operator,
    b: Any,
    *,
    x0: Any = None,
    tol: float = 1e-10,
    max_iterations: int = 10_000,
    acceptance: Acceptance | None = None,
    observer: Observer | None = None,
) -> tuple[Any, SolveInfo]:
    """Solve A x = b until the true residual |b - A x| <= tol |b| of every column; two applications an iteration.

    Arguments, result and errors: as `cg`; A need be neither Hermitian nor positive.
    Source: H. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631.
    """
    run = Ledger(apply, b, x0=x0, tol=tol, max_iterations=max_iterations, acceptance=acceptance, observer=observer)
    state = _Recursion(run)
    while run.active:
        keep, restart = run.settle([math.sqrt(v) for v in state.rr])
        state.keep(keep)
        if not run.active:
            break
        state.restart(restart)
        _iterate(run, state)
        run.tick()
    return run.result()


def _iterate(run: Ledger, state: _Recursion) -> None:
    """One iteration of all active columns."""
    v = run.multiply(state.p)
    shadow2, v2 = space.norm2(state.shadow), space.norm2(v)
    alpha: list[complex] = []
    failed = set()
    for k, value in enumerate(space.inner(state.shadow, v)):
        if state.vanishes(value, shadow2[k], v2[k]):
            failed.add(k)
        alpha.append(0j if k in failed else state.rho[k] / value)
    space.axpy(run.r, [-a for a in alpha], v)
    t = run.multiply(run.r)
    s2, t2 = space.norm2(run.r), space.norm2(t)
    omega: list[complex] = []
    for k, value in enumerate(space.inner(t, run.r)):
        # s = 0 is an exact solution, not a failure: the next settle judges it.
        if s2[k] == 0.0:
            omega.append(0j)
        elif state.vanishes(value, t2[k], s2[k]):
            failed.add(k)
            omega.append(0j)
        else:
            omega.append(value / t2[k])
    space.axpy(run.x, alpha, state.p)
    space.axpy(run.x, omega, run.r)
    space.axpy(run.r, [-o for o in omega], t)
    state.rr = space.norm2(run.r)
    beta: list[complex] = []
    for k, rho in enumerate(space.inner(state.shadow, run.r)):
        if state.rr[k] > 0.0 and state.vanishes(rho, shadow2[k], state.rr[k]):
            failed.add(k)
        usable = k not in failed and omega[k] != 0
        beta.append(rho / state.rho[k] * (alpha[k] / omega[k]) if usable else 0j)
        state.rho[k] = rho
    space.axpy(state.p, [-o for o in omega], v)
    space.xpay(state.p, beta, run.r)
    for k in sorted(failed):
        state.count_failure(k)
    state.restart(sorted(failed))
