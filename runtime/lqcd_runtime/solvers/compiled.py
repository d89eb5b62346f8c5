"""Solves whose iterations run inside a solver artifact: the loop around them, judged by the true residual in D's precision.

    r = b - D x;  artifact: correction from r, some iterations at a time;  x += correction;  again until |r| <= tol |b|

Owns how far the artifact goes before the true residual is looked at, when a column is finished, and the reasons. One loop serves
all precisions: an artifact in D's precision mostly needs one round, one in single precision under a double-precision D two or
three (reliable updates: the artifact keeps its search directions from round to round). Between calls of a few iterations an
interrupt is noticed and the observer is told. Knows no packed field.
Source: R. Strzodka, D. Goeddeke, FCCM 2006; G. Sleijpen, H. van der Vorst, Computing 56 (1996) 141.
"""

from __future__ import annotations

import math
import time

import numpy as np

from lqcd_runtime.arrays import COMPLEX
from lqcd_runtime.compiled_solver import RUNNING
from lqcd_runtime.geometry import volume
from lqcd_runtime.scalars import limits
from lqcd_runtime.solvers import space
from lqcd_runtime.solvers.compiled_column import Column
from lqcd_runtime.solvers.result import ColumnInfo, SolveInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.compiled_solver import CompiledSolver
    from lqcd_runtime.operator import DiracOperator
    from lqcd_runtime.solvers.ledger import Observer

# Iterations per call; fewer where columns x sites would make a call last long. A fixed rule: results do not depend on clocks.
_CHUNK, _FIRST_CHUNK, _CHUNK_WORK = 16, 4, 1 << 22
# How far a round may fall in the artifact's precision before its recursion and the truth part. Single precision: two rounds reach
# the usual 1e-10 with something to spare.
_DEEPEST = {
    "float32": 8e-6, "float64": 1e-12, "float16": 2e-2, "bfloat16": 0.15, "float32_12": 8e-6, "float64_12": 1e-12
}  # fmt: skip


def solve_compiled(
    D: DiracOperator, engine: CompiledSolver, b: NDArray[Any], *,
    tol: float, max_iterations: int, x0: Any, observer: Observer | None,
) -> tuple[NDArray[Any], SolveInfo]:  # fmt: skip
    """Solve M x = b for complex128 columns [n,T,Z,Y,X,4,3] of moderate size: (x in D's dtype, SolveInfo).

    residual_history is that of the recursion (cg: of the normal equations), relative to what the solve starts from.
    Errors: SolveError for a tolerance or limit that cannot mean anything.
    """
    tol, max_iterations = limits(tol, max_iterations)
    started, applications = time.perf_counter(), 0
    x = np.empty(b.shape, COMPLEX[str(D.dtype)])
    infos: list[ColumnInfo] = []
    with engine.alone():
        arrays = _Arrays((engine.batch, *b.shape[1:]))
        for start in range(0, len(b), engine.batch):
            part = slice(start, start + engine.batch)
            guess = None if x0 is None else x0[part]
            group = _Group(D, engine, _padded(b[part], engine.batch), guess, arrays, tol, max_iterations, observer, start)
            group.run()
            count = len(b[part])
            x[part] = arrays.x[:count]
            infos += [column.info for column in group.columns[:count]]
            applications += group.applications
    return x, SolveInfo(infos, applications=applications, seconds=time.perf_counter() - started)


class _Arrays:
    """x and its residual, and a trial of both, for one group after the other: the first touch of fresh memory costs more than
    what is computed in it."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.x, self.trial, self.r, self.trial_r = (np.empty(shape, np.complex128) for _ in range(4))

    def take_trial(self) -> None:
        """The trial becomes x."""
        self.x, self.trial = self.trial, self.x
        self.r, self.trial_r = self.trial_r, self.r


def _padded(columns: Any, batch: int) -> NDArray[np.complex128]:
    if len(columns) == batch:
        return np.ascontiguousarray(columns, np.complex128)
    out = np.zeros((batch, *columns.shape[1:]), np.complex128)
    out[: len(columns)] = columns
    return out


def lengths(a: NDArray[Any]) -> list[float]:
    """Norms of the columns; the slower way for those whose squares leave the range."""
    squares = space.norm2(a)
    return [math.sqrt(v) if 1e-250 < v < 1e250 else space.norms(a[j : j + 1])[0] for j, v in enumerate(squares)]


class _Group:
    """One batch of columns."""

    def __init__(
        self, D: DiracOperator, engine: CompiledSolver, b: Any, x0: Any, arrays: _Arrays, tol: float, max_iterations: int,
        observer: Any, first: int,
    ) -> None:  # fmt: skip
        self.D, self.engine, self.b, self.arrays, self.tol, self.limit = D, engine, b, arrays, tol, max_iterations
        self.observer, self.first = observer, first
        self.applications = 0
        self.deepest = _DEEPEST[engine.spec.storage]
        self.columns = [Column(size, engine.method) for size in lengths(b)]
        arrays.x[...] = 0
        if x0 is not None:
            arrays.x[: len(x0)] = x0
        for column, x in zip(self.columns, arrays.x, strict=True):
            if not column.active:
                x[...] = 0 if column.size == 0 else math.nan
        if x0 is None:
            arrays.r[...] = b
        else:
            self._residual(arrays.r, arrays.x)
        for column, length in zip(self.columns, lengths(arrays.r), strict=True):
            column.length = length
            if column.active:
                column.judge(tol, max_iterations)

    def _active(self) -> list[Column]:
        return [c for c in self.columns if c.active]

    def _residual(self, out: NDArray[np.complex128], x: NDArray[np.complex128]) -> None:
        """out = b - D x, in D's precision."""
        self.applications += len(self._active())
        if out.dtype == COMPLEX[str(self.D.dtype)]:
            self.D.apply_into(out, x)
        else:
            out[...] = self.D.apply(x.astype(COMPLEX[str(self.D.dtype)]))
        np.subtract(self.b, out, out=out)

    def run(self) -> None:
        """Rounds until no column is active."""
        arrays = self.arrays
        while self._active():
            self._begin()
            self._iterate()
            self.engine.end(arrays.x, [c.length if c.active else 0.0 for c in self.columns], arrays.trial)
            self._residual(arrays.trial_r, arrays.trial)
            for j, (column, length) in enumerate(zip(self.columns, lengths(arrays.trial_r), strict=True)):
                if column.active and not column.accept(length):
                    # The better of the two is kept: a correction that made things worse is no part of an answer.
                    arrays.trial[j], arrays.trial_r[j] = arrays.x[j], arrays.r[j]
            arrays.take_trial()
            for column in self._active():
                column.judge(self.tol, self.limit)

    def _begin(self) -> None:
        """Hand the residuals over. A search direction that no longer fits its residual is dropped."""
        factors = [1.0 / c.length if c.active else 0.0 for c in self.columns]
        modes = [c.mode() if c.active else 0 for c in self.columns]
        norms = self.engine.begin(self.arrays.r, factors, modes)
        parted = [c.active and mode == 1 and c.parted(rr) for c, mode, rr in zip(self.columns, modes, norms, strict=True)]
        if self.engine.method == "cg" and any(parted):
            modes = [0 if apart else mode for apart, mode in zip(parted, modes, strict=True)]
            norms = self.engine.begin(self.arrays.r, factors, modes)
        for column, rr in zip(self.columns, norms, strict=True):
            if column.active:
                column.start(float(rr), self._depth(column))
                self.applications += self.engine.method == "cg"

    def _depth(self, column: Column) -> float:
        """How far, relative to its residual now, a column should fall in this round: all the way, or in equal steps."""
        wanted = 0.9 * self.tol * column.size / column.length
        if wanted >= self.deepest:
            return wanted
        rounds = math.ceil(math.log(wanted) / math.log(self.deepest))
        return float(wanted ** (1.0 / rounds))

    def _iterate(self) -> None:
        """Iterate until every active column is where it should be, or cannot get there."""
        size = min(_CHUNK, max(1, _CHUNK_WORK // (volume(self.engine.spec.lattice) * self.engine.batch)))
        count = min(size, _FIRST_CHUNK)
        while running := [c for c in self._active() if c.status == RUNNING]:
            for column in running:
                column.check(self.limit)
            running = [c for c in running if c.status == RUNNING]
            if not running:
                break
            count = min(count, min(self.limit - c.info.iterations for c in running))
            stop = np.array([c.stop() if c in running else math.inf for c in self.columns])
            history, done, status = self.engine.iterate(stop, count)
            for j, column in enumerate(self.columns):
                if column in running:
                    column.record(history[: done[j], :, j], int(status[j]))
                    self.applications += 2 * int(done[j])
            count = size
            if self.observer is not None:
                told = {self.first + j: c.info.recursive_residual for j, c in enumerate(self.columns) if c in running}
                self.observer(max(c.info.iterations for c in running), told)
