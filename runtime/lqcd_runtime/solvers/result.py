"""What a solve returns beside the solution: `Reason`, `ColumnInfo`, `SolveInfo`. Knows no algorithm and no arrays."""

from __future__ import annotations

from enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Reason(StrEnum):
    """Why the iteration of a column ended. Compares equal to its word: `info.reason == "converged"`."""

    CONVERGED = "converged"
    MAX_ITERATIONS = "max_iterations"
    STAGNATED = "stagnated"
    BREAKDOWN = "breakdown"
    NOT_FINITE = "not_finite"

    @property
    def prose(self) -> str:
        """One sentence for people."""
        return _PROSE[self]


_PROSE = {
    Reason.CONVERGED: "the true residual reached the tolerance",
    Reason.MAX_ITERATIONS: "the iteration limit was reached before the true residual met the tolerance",
    Reason.STAGNATED: "the true residual stopped falling above the tolerance: the arithmetic is too short for this tolerance, "
    "or the operator is (nearly) singular",
    Reason.BREAKDOWN: "the algorithm cannot continue: an inner product that it divides by vanished or had the wrong sign, "
    "also after restarts",
    Reason.NOT_FINITE: "NaN or infinity in the right-hand side, the start vector or the operator's output",
}
# From best to worst, for the summary of several columns.
_SEVERITY = (Reason.CONVERGED, Reason.MAX_ITERATIONS, Reason.STAGNATED, Reason.BREAKDOWN, Reason.NOT_FINITE)


class ColumnInfo:
    """One right-hand side. Residuals are relative to the norm of the right-hand side.

    final_residual: true, recomputed from the returned solution; recursive_residual: what the recursion believed;
    residual_history: recursive residual before the first and after every iteration; note: a sentence on what went
    wrong, or "".
    """

    __slots__ = ("final_residual", "iterations", "note", "reason", "recursive_residual", "residual_history")

    def __init__(self) -> None:
        self.reason = Reason.MAX_ITERATIONS
        self.iterations = 0
        self.final_residual = float("nan")
        self.recursive_residual = float("nan")
        self.residual_history: list[float] = []
        self.note = ""

    @property
    def converged(self) -> bool:
        return self.reason is Reason.CONVERGED

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the history."""
        return {
            "converged": self.converged,
            "reason": self.reason.value,
            "iterations": self.iterations,
            "final_residual": self.final_residual,
            "recursive_residual": self.recursive_residual,
            "note": self.note,
        }

    def __repr__(self) -> str:
        return f"ColumnInfo({self.reason}, {self.iterations} iterations, true residual {self.final_residual:.3g})"


class SolveInfo:
    """The solve of all columns: the worst of each number, and the columns themselves in `columns`.

    converged: every column is; iterations: the largest count; final_residual: the largest true relative residual (NaN
    where a column is not finite); recursive_residual: likewise; residual_history: per iteration, the largest among the
    columns still iterating; applications: operator applications, counted per column; flops: floating-point operations
    of these (0.0 where the operator states none); seconds: wall time; engine: what iterated, the name of a solver artifact
    or "host: ..." with the reason.
    """

    engine = "host"

    def __init__(self, columns: Sequence[ColumnInfo], *, applications: int = 0, flops: float = 0.0, seconds: float = 0.0) -> None:
        self.columns = list(columns)
        self.applications = applications
        self.flops = flops
        self.seconds = seconds

    @property
    def converged(self) -> bool:
        return all(c.converged for c in self.columns)

    @property
    def reason(self) -> Reason:
        """The gravest reason among the columns."""
        return max((c.reason for c in self.columns), key=_SEVERITY.index, default=Reason.CONVERGED)

    @property
    def iterations(self) -> int:
        return max((c.iterations for c in self.columns), default=0)

    @property
    def final_residual(self) -> float:
        return _largest([c.final_residual for c in self.columns])

    @property
    def recursive_residual(self) -> float:
        return _largest([c.recursive_residual for c in self.columns])

    @property
    def residual_history(self) -> list[float]:
        histories = [c.residual_history for c in self.columns]
        longest = max((len(h) for h in histories), default=0)
        return [_largest([h[i] for h in histories if i < len(h)]) for i in range(longest)]

    @property
    def prose(self) -> str:
        """The outcome as text: one line when all is well, else one for each reason why columns did not converge."""
        if self.converged:
            return f"converged: {len(self.columns)} columns, {self.iterations} iterations, residual {self.final_residual:.3g}"
        groups: dict[tuple[Reason, str], list[int]] = {}
        for i, column in enumerate(self.columns):
            if not column.converged:
                # Notes that differ in their numbers alone say the same.
                said = "".join(c for c in column.note if c not in "0123456789.e+-")
                groups.setdefault((column.reason, said), []).append(i)
        return "\n".join(self._group(indices) for indices in groups.values())

    def _group(self, indices: list[int]) -> str:
        """One line on columns that ended alike; the note is that of the one with the largest residual."""
        columns = [self.columns[i] for i in indices]
        worst = max(columns, key=lambda c: _order(c.final_residual))
        iterations = _span([c.iterations for c in columns], "d")
        residuals = _span([c.final_residual for c in columns], ".3g")
        return (
            f"column{'s' * (len(indices) > 1)} {_runs(indices)}: {worst.reason} after {iterations} iterations at residual "
            f"{residuals}: {worst.note or worst.reason.prose}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the histories."""
        return {
            "converged": self.converged,
            "reason": self.reason.value,
            "iterations": self.iterations,
            "final_residual": self.final_residual,
            "recursive_residual": self.recursive_residual,
            "applications": self.applications,
            "flops": self.flops,
            "seconds": self.seconds,
            "engine": self.engine,
            "columns": [c.as_dict() for c in self.columns],
        }

    def __repr__(self) -> str:
        return (
            f"SolveInfo({self.reason}, {len(self.columns)} columns, {self.iterations} iterations, "
            f"true residual {self.final_residual:.3g}, {self.seconds:.3g} s)"
        )


def _order(value: float) -> tuple[bool, float]:
    """Sorts a NaN behind every number."""
    return value != value, value


def _span(values: Sequence[float], form: str) -> str:
    """ "3" or "3 to 5"; a NaN among the values is the larger end."""
    ordered = sorted(values, key=_order)
    first, last = format(ordered[0], form), format(ordered[-1], form)
    return first if first == last else f"{first} to {last}"


def _runs(indices: list[int]) -> str:
    """[0, 2, 3, 4] as "0, 2-4"."""
    runs: list[list[int]] = []
    for i in indices:
        if runs and i == runs[-1][-1] + 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _largest(values: list[float]) -> float:
    """max that does not lose a NaN."""
    if any(v != v for v in values):
        return float("nan")
    return max(values, default=0.0)
