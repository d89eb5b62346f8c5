"""The bookkeeping every solver shares: columns, scaling, acceptance by the true residual, stagnation, freezing.

Owns what happens to a column before, between and after iterations; a solver owns only its recursion. Columns are solved
for right-hand sides scaled to norm 1, so a quark source of 1e-200 behaves as one of 1. A column whose recursive
residual reaches its target is judged by b - A x, recomputed; it converges, continues with a lower target, restarts from
the recomputed residual, or is given up with a reason. Finished columns leave the working arrays.
"""

from __future__ import annotations

import math
import time

from lqcd_runtime.scalars import limits
from lqcd_runtime.solvers import space
from lqcd_runtime.solvers.result import ColumnInfo, Reason, SolveInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Operator = Callable[[Any], Any]
    # (solution columns in the caller's units, their numbers) -> relative residuals that decide instead of |b - A x| /
    # |b|.
    Acceptance = Callable[[Any, list[int]], list[float]]
    # (iteration, {column number: recursive relative residual})
    Observer = Callable[[int, dict[int, float]], None]

# A judged column must have halved its true residual since it was last judged; after this many failures it has
# stagnated.
_STRIKES = 3
# Iterations without a recursive residual 1% below the best one, before a column is judged as it is (or half of all so
# far, if more).
_PLATEAU = 500
# Growth over the right-hand side that no converging recursion shows.
_DIVERGED = 1e8


class Ledger:
    """Working state of one solve: `b`, `x`, `r` hold the columns still iterating, whose numbers are `active`.

    Errors: SolveError for a tolerance or iteration limit that cannot mean anything.
    """

    def __init__(
        self,
        apply: Operator,
        b: Any,
        *,
        x0: Any = None,
        tol: float = 1e-10,
        max_iterations: int = 10_000,
        acceptance: Acceptance | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._tol, self._max = limits(tol, max_iterations)
        self._apply, self._acceptance, self._observer = apply, acceptance, observer
        self._started = time.perf_counter()
        self.applications = 0
        self.iteration = 0
        self.columns = [ColumnInfo() for _ in range(b.shape[0])]
        self.solution = space.zeros_like(b)
        self.active: list[int] = []
        self._sizes = space.norms(b)
        for column, size in enumerate(self._sizes):
            self._admit(column, size)
        self.b = space.divided(space.take(b, self.active), [self._sizes[c] for c in self.active])
        if x0 is None or not self.active:
            self.x, self.r = space.zeros_like(self.b), space.copy(self.b)
        else:
            self.x = space.divided(space.take(x0, self.active), [self._sizes[c] for c in self.active])
            self.r = self.b - self.multiply(self.x)
        self._targets = dict.fromkeys(self.active, tol)
        self._judged = dict.fromkeys(self.active, math.inf)
        self._strikes = dict.fromkeys(self.active, 0)
        self._best = dict.fromkeys(self.active, (math.inf, 0))
        self._broken: dict[int, str] = {}

    def _admit(self, column: int, size: float) -> None:
        """Put a column to work, or settle it at once when it is zero or not finite."""
        info = self.columns[column]
        if not math.isfinite(size):
            info.reason, info.note = Reason.NOT_FINITE, "the right-hand side holds NaN or infinity"
            self.solution[column] = math.nan
        elif size > 0.0:
            self.active.append(column)
        else:
            value = 0.0
            if self._acceptance is not None:
                value = self._acceptance(self.solution[column : column + 1], [column])[0]
            info.final_residual, info.recursive_residual, info.residual_history = value, 0.0, [0.0]
            info.reason = Reason.CONVERGED if value <= self._tol else Reason.BREAKDOWN
            if not info.converged:
                info.note = "the right-hand side lies in the null space of the adjoint operator: the operator is singular"

    def multiply(self, v: Any) -> Any:
        """A v, counted, C-ordered."""
        self.applications += int(v.shape[0])
        return space.contiguous(self._apply(v))

    def broken(self, position: int, note: str) -> None:
        """The solver cannot continue the column at this position; it is judged at the next `settle`."""
        self._broken[self.active[position]] = note

    def settle(self, residuals: Sequence[float]) -> tuple[list[int], list[int]]:
        """Record the recursive residuals of the active columns; judge those that are due; drop the finished.

        Returns (positions kept, of the columns before the call; positions after the call whose `r` was replaced by the
        true residual and whose recursion must start afresh).
        """
        if self._observer is not None:
            self._observer(self.iteration, dict(zip(self.active, residuals, strict=True)))
        due = []
        for position, (column, residual) in enumerate(zip(self.active, residuals, strict=True)):
            info = self.columns[column]
            info.residual_history.append(residual)
            info.recursive_residual, info.iterations = residual, self.iteration
            if residual < 0.99 * self._best[column][0]:
                self._best[column] = (residual, self.iteration)
            if self._is_due(column, residual):
                due.append(position)
        finished, replaced = self._judge(due) if due else (set(), set())
        keep = [p for p in range(len(self.active)) if p not in finished]
        if finished:
            self.active = [self.active[p] for p in keep]
            self.b, self.x, self.r = (space.take(a, keep) for a in (self.b, self.x, self.r))
        return keep, [new for new, old in enumerate(keep) if old in replaced]

    def tick(self) -> None:
        """One iteration of every active column is done."""
        self.iteration += 1

    def _is_due(self, column: int, residual: float) -> bool:
        return (
            not math.isfinite(residual)
            or residual <= self._targets[column]
            or residual > _DIVERGED
            or self.iteration >= self._max
            or column in self._broken
            or self._stalled(column)
        )

    def _stalled(self, column: int) -> bool:
        return self.iteration - self._best[column][1] > max(_PLATEAU, self.iteration // 2)

    def _judge(self, due: list[int]) -> tuple[set[int], set[int]]:
        """True residuals of the columns at these positions: (positions finished, positions whose r was replaced)."""
        columns = [self.active[p] for p in due]
        x = space.take(self.x, due)
        true_r = space.take(self.b, due) - self.multiply(x)
        true = space.norms(true_r)
        space.scale(x, [self._sizes[c] for c in columns])
        values = true if self._acceptance is None else self._acceptance(x, columns)
        finished, replaced = set(), set()
        for k, (position, column) in enumerate(zip(due, columns, strict=True)):
            info = self.columns[column]
            info.final_residual = values[k]
            verdict = self._verdict(column, values[k])
            if verdict is not None:
                info.reason, note = verdict
                info.note = note
                self.solution[column] = x[k]
                finished.add(position)
            elif true[k] > 2.0 * info.recursive_residual:
                self.r[position] = true_r[k]
                # Looked at again two digits further down: a floor of rounding shows at once and costs few iterations.
                self._targets[column] = max(self._tol, 0.01 * true[k])
                self._best[column] = (true[k], self.iteration)
                replaced.add(position)
            else:
                step = max(0.01, min(0.5, 0.9 * self._tol / values[k]))
                self._targets[column] = info.recursive_residual * step
        return finished, replaced

    def _verdict(self, column: int, value: float) -> tuple[Reason, str] | None:
        """(reason, note) where the column is finished, None where it continues."""
        info = self.columns[column]
        if value <= self._tol:
            return Reason.CONVERGED, ""
        if not math.isfinite(value) or not math.isfinite(info.recursive_residual):
            return Reason.NOT_FINITE, f"NaN or infinity appeared in iteration {self.iteration}"
        if column in self._broken:
            return Reason.BREAKDOWN, self._broken[column]
        if info.recursive_residual > _DIVERGED:
            return Reason.BREAKDOWN, f"the residual grew to {info.recursive_residual:.3g} times the right-hand side"
        if self.iteration >= self._max:
            return Reason.MAX_ITERATIONS, ""
        if self._stalled(column):
            best, since = self._best[column]
            return Reason.STAGNATED, f"no recursive residual below {best:.3g} since iteration {since}"
        if value > 0.5 * self._judged[column]:
            self._strikes[column] += 1
            if self._strikes[column] >= _STRIKES:
                return Reason.STAGNATED, f"the true residual stays at {value:.3g} although the recursion continues to fall"
        self._judged[column] = min(value, self._judged[column])
        return None

    def result(self) -> tuple[Any, SolveInfo]:
        """(solution, info) once no column is active."""
        seconds = time.perf_counter() - self._started
        return self.solution, SolveInfo(self.columns, applications=self.applications, seconds=seconds)
