"""One right-hand side of a solve inside an artifact: what is known of it, how far it should go, how it ends.

Owns the estimate of |b - M x| from the recursion of the normal equations, stagnation, the verdicts. Knows no arrays.

The recursion of conjugate gradients on M^dag M sees rr = |M^dag s|^2, s = b - M x. Every iteration lowers |s|^2 by exactly
alpha rr, so with |s|^2 = c rr near the end, the falls since iteration j add up to c (rr_j - rr_now): sums over the last
iterations give c, and c the rr at which |s| is small enough.
Source: Z. Strakos, P. Tichy, ETNA 13 (2002) 56 (the same sum as an estimate of the error).
"""

from __future__ import annotations

import math

from lqcd_runtime.compiled_solver import BELOW_STOP, BREAKDOWN, NOT_FINITE, RUNNING
from lqcd_runtime.solvers.result import ColumnInfo, Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Rounds in a row that do not halve the true residual, and breakdowns in a row without progress, before a column is given up.
_STRIKES, _BREAKDOWNS = 3, 8
# Iterations without a recursive residual 1% below the best one (or half of all so far, if more), as in the ledger.
_PLATEAU = 500
_DIVERGED = 1e8
# The estimate of c is an average over fluctuations; a round that ends slightly too late is cheaper than one more.
_CAUTION = 1.2
_BROKEN_CG = "p^dag A p is not positive: the operator is singular or not positive definite"


class Column:
    """size: |b|; length: |b - M x| after the last round; active: still to be solved; status: of the artifact."""

    def __init__(self, size: float, method: str) -> None:
        self.info, self._method = ColumnInfo(), method
        self.size, self.length, self.status = size, size, RUNNING
        self.active = 0.0 < size < math.inf
        self._judged, self._strikes, self._broken = math.inf, 0, 0
        self._first = self._unit = 1.0  # |r| of the recursion at the start of the solve; |b - M x| at the start of the round
        self._ratio: float | None = None  # c, as the last round ended
        self._worse: float | None = None  # |b - M x| of a correction that was not taken
        self._best, self._since, self._stalled = math.inf, 0, False
        if size == 0.0:
            self.info.reason, self.info.final_residual, self.info.recursive_residual = Reason.CONVERGED, 0.0, 0.0
            self.info.residual_history = [0.0]
        elif not self.active:
            self.info.reason, self.info.note = Reason.NOT_FINITE, "the right-hand side holds NaN or infinity"

    def mode(self) -> int:
        """What `begin` is told (abi.hpp)."""
        if self._method == "bicgstab":
            return self._broken
        return 0 if not self.info.residual_history else 1

    def parted(self, rr: float) -> bool:
        """Whether a recomputed squared residual is not what the recursion ended with."""
        # Products overflow to infinity, powers raise.
        return not rr * self.length * self.length <= 4.0 * self._rr[-1] * self._unit * self._unit

    def start(self, rr: float, depth: float) -> None:
        """A round begins: rr of the recursion for the scaled residual; depth: |s| to reach, from 1."""
        self._falls: list[float] = []
        self._rr, self._depth, self._unit, self.status = [rr], depth, self.length, RUNNING
        if not self.info.residual_history:
            self._first = math.sqrt(rr) * self._unit or 1.0
            self.info.residual_history.append(1.0)
            self.info.recursive_residual = 1.0

    def check(self, limit: int) -> None:
        """Stop a column that cannot go on."""
        spent = self.info.iterations
        self._stalled = spent - self._since > max(_PLATEAU, spent // 2)
        if spent >= limit or self._stalled or self.info.recursive_residual > _DIVERGED:
            self.status = BELOW_STOP

    def stop(self) -> float:
        """The rr at which |s| should be small enough; 0 while nothing can be said."""
        if self._method == "bicgstab":  # its recursion sees |s|^2 itself
            return self._depth**2
        ratio = self._estimate() or self._ratio
        return 0.0 if ratio is None else self._depth**2 / (_CAUTION * ratio)

    def _estimate(self) -> float | None:
        """c from the last quarter of this round's iterations; None where there are few or rr does not fall."""
        window = max(8, len(self._falls) // 4)
        if len(self._falls) < (4 if self._ratio is None else 8):
            return None
        now, fallen, total, above = self._rr[-1], 0.0, 0.0, 0.0
        for fall, rr in zip(reversed(self._falls[-window:]), reversed(self._rr[:-1][-window:]), strict=True):
            fallen += fall
            total += fallen
            above += rr - now
        return total / above if total > 0.0 and above > 0.0 else None

    def record(self, history: Any, status: int) -> None:
        """history: [iterations, 2] of this call."""
        for rr, further in history:
            self._rr.append(float(rr))
            self._falls.append(float(further))
            value = math.sqrt(rr) * self._unit / self._first if rr >= 0.0 else math.nan
            self.info.iterations += 1
            self.info.residual_history.append(value)
            self.info.recursive_residual = value
            if value < 0.99 * self._best:
                self._best, self._since = value, self.info.iterations
        self.status = status

    def accept(self, length: float) -> bool:
        """Take the true |b - M x| after a round; False where it is worse than before."""
        if not length < self.length and math.isfinite(self.length):
            self._worse = length
            return False
        if self._rr[-1] > 0.0:
            share = length / self._unit
            self._ratio = share * share / self._rr[-1]
        self.length, self._worse = length, None
        return True

    def judge(self, tol: float, limit: int) -> None:
        """Decide whether the column is finished."""
        info, value = self.info, self.length / self.size
        info.final_residual = value
        verdict = self._verdict(value, tol, limit)
        if verdict is not None:
            self.active = False
            info.reason, info.note = verdict
        self._judged = min(value, self._judged)

    def _verdict(self, value: float, tol: float, limit: int) -> tuple[Reason, str] | None:
        info = self.info
        if value <= tol:
            return Reason.CONVERGED, ""
        if not math.isfinite(value) or self.status == NOT_FINITE or (self._worse is not None and not math.isfinite(self._worse)):
            return Reason.NOT_FINITE, f"NaN or infinity appeared until iteration {info.iterations}"
        if info.recursive_residual > _DIVERGED:
            return Reason.BREAKDOWN, f"the residual grew to {info.recursive_residual:.3g} times the right-hand side"
        if self.status == BREAKDOWN and self._method == "cg":
            return Reason.BREAKDOWN, _BROKEN_CG
        if info.iterations >= limit:
            return Reason.MAX_ITERATIONS, ""
        if self.status == BREAKDOWN:
            self._broken = self._broken + 1 if value > 0.98 * self._judged else 1
            if self._broken >= _BREAKDOWNS:
                return Reason.BREAKDOWN, f"{_BREAKDOWNS} restarts in a row did not lower the residual"
            return None
        if self._stalled:
            return Reason.STAGNATED, f"no recursive residual below {self._best:.3g} since iteration {self._since}"
        self._strikes = self._strikes + 1 if value > 0.5 * self._judged else 0
        if self._strikes >= _STRIKES:
            return Reason.STAGNATED, f"the true residual stays at {value:.3g} although the recursion falls"
        return None
