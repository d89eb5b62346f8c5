"""Solver objects for torch tensors. Owns the calling convention and the printed lines; the algorithms are lqcd_runtime.solvers.

    x, info = ConjugateGradient(tol=1e-8).solve(lambda v: D.normal(v, U), b)

`A` maps a tensor to a tensor of the same shape. Without `columns` the whole of b is one vector; with `columns=True` axis 0 of b
counts independent right-hand sides, each with its own scalars, and A is applied to stacks [k, ...] of those still iterating.
`info`: converged, iterations, final_residual (true: |b - A x|/|b| recomputed), residual_history, reason, prose, columns.
Not converging is a value, not an exception. Arguments are never written to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from lqcd_aot.core.checks import require_complex_dtype, require_same
from lqcd_aot.core.spinor_field import ColorSpinorField
from lqcd_runtime import solvers as algorithms
from lqcd_runtime.errors import UsageError
from lqcd_runtime.solvers.result import SolveInfo

Operator = Callable[[torch.Tensor], torch.Tensor]
Vector = torch.Tensor | ColorSpinorField


class Solver:
    """What all solvers share.

    tol: bound on the true relative residual; maxiter: iteration limit; verbose: print a line every `print_every` iterations
    and a summary (nothing is printed otherwise).
    """

    name = "solver"

    def __init__(self, tol: float = 1e-8, maxiter: int = 1000, verbose: bool = False, print_every: int = 50) -> None:
        if print_every < 1:
            raise UsageError("print_every: must be positive", expected=">= 1", found=print_every)
        self.tol, self.maxiter, self.verbose, self.print_every = tol, maxiter, verbose, print_every

    def solve(self, A: Operator, b: Vector, x0: Vector | None = None, *, columns: bool = False) -> tuple[Any, SolveInfo]:
        """(x, info) with A x = b; x is of b's kind. Errors: UsageError for b or x0 of a wrong shape, dtype or device."""
        stack, start = _stacked(b, columns, "right-hand side"), None
        if x0 is not None:
            start = _stacked(x0, columns, "start vector")
            if start.shape != stack.shape:
                raise UsageError("start vector: has the wrong shape", expected=list(stack.shape), found=list(start.shape))
            require_same(stack, start, "right-hand side and start vector")
        with torch.no_grad():
            x, info = self._run(_on_stacks(A, columns), stack, start)
        self._say(f"{self.name}: {info.prose}")
        return _unstacked(x, b, columns), info

    def _run(self, apply: Operator, b: torch.Tensor, x0: torch.Tensor | None) -> tuple[torch.Tensor, SolveInfo]:
        """The algorithm on [columns, ...] stacks."""
        algorithm = getattr(algorithms, self.name)
        x, info = algorithm(
            apply, b, x0=x0, tol=self.tol, max_iterations=self.maxiter, observer=self._observer(), **self._options()
        )
        return x, info

    def _options(self) -> dict[str, Any]:
        return {}

    def _observer(self) -> Callable[[int, dict[int, float]], None] | None:
        if not self.verbose:
            return None

        def observe(iteration: int, residuals: dict[int, float]) -> None:
            if iteration % self.print_every == 0 and residuals:
                self._say(f"{self.name}: iteration {iteration:5d}  |r|/|b| = {max(residuals.values()):.3e}")

        return observe

    def _say(self, line: str) -> None:
        if self.verbose:
            sys.stdout.write(line + "\n")


class ConjugateGradient(Solver):
    """CG for a Hermitian positive definite A, for example M^dag M. Breaks down, and says so, where A is not positive."""

    name = "cg"


class BiCGStab(Solver):
    """Stabilised bi-conjugate gradient for a general A; restarts where the textbook recursion divides by zero."""

    name = "bicgstab"


class GCR(Solver):
    """Generalised conjugate residual for a general A, restarted after `basis` directions."""

    name = "gcr"

    def __init__(
        self, tol: float = 1e-8, maxiter: int = 1000, verbose: bool = False, print_every: int = 50, *, basis: int = 16
    ) -> None:
        super().__init__(tol, maxiter, verbose, print_every)
        if basis < 1:
            raise UsageError("basis: must be positive", expected=">= 1", found=basis)
        self.basis = basis

    def _options(self) -> dict[str, Any]:
        return {"basis": self.basis}


class MultiShiftCG(Solver):
    """(A + sigma_i) x_i = b for all `shifts` from one Krylov space; A + sigma_i Hermitian positive definite."""

    name = "multishift_cg"

    def __init__(
        self,
        shifts: Sequence[float],
        tol: float = 1e-8,
        maxiter: int = 1000,
        verbose: bool = False,
        print_every: int = 50,
    ) -> None:
        super().__init__(tol, maxiter, verbose, print_every)
        self.shifts = [float(s) for s in shifts]

    def solve_all(self, A: Operator, b: Vector, *, columns: bool = False) -> tuple[list[Any], list[SolveInfo]]:
        """([x of every shift], [info of every shift]), in the order of `shifts`."""
        stack = _stacked(b, columns, "right-hand side")
        with torch.no_grad():
            solutions, infos = algorithms.multishift_cg(
                _on_stacks(A, columns), stack, self.shifts, tol=self.tol, max_iterations=self.maxiter, observer=self._observer()
            )
        for shift, info in zip(self.shifts, infos, strict=True):
            self._say(f"{self.name}, shift {shift:g}: {info.prose}")
        return [_unstacked(x, b, columns) for x in solutions], infos

    def solve(self, A: Operator, b: Vector, x0: Vector | None = None, *, columns: bool = False) -> tuple[Any, Any]:
        """As `solve_all`. Errors: UsageError for a start vector, which the common Krylov space cannot use."""
        if x0 is not None:
            raise UsageError("multi-shift: takes no start vector", expected="x0=None", hint="ConjugateGradient for one shift")
        return self.solve_all(A, b, columns=columns)


class MixedPrecision(Solver):
    """Defect correction: residuals in b's precision with A, corrections by `inner` with `A_low` in complex64.

    inner: any Solver of this file with a loose tolerance; tol: of the true residual in b's precision; max_cycles: corrections.
    """

    name = "defect_correction"

    def __init__(self, inner: Solver, A_low: Operator, tol: float = 1e-8, max_cycles: int = 50, verbose: bool = False) -> None:
        super().__init__(tol, inner.maxiter, verbose, inner.print_every)
        if isinstance(inner, (MultiShiftCG, MixedPrecision)):
            raise UsageError(
                "mixed precision: the inner solver has no single solution", expected="CG, BiCGStab or GCR", found=inner.name
            )
        self.inner, self.A_low, self.max_cycles = inner, A_low, max_cycles
        self._in_columns = False

    def solve(self, A: Operator, b: Vector, x0: Vector | None = None, *, columns: bool = False) -> tuple[Any, SolveInfo]:
        """(x, info) with A x = b. Errors: UsageError as Solver.solve, also where b is not complex128."""
        tensor = b.tensor if isinstance(b, ColorSpinorField) else b
        if isinstance(tensor, torch.Tensor) and tensor.dtype != torch.complex128:
            raise UsageError("right-hand side: is not of the outer precision", expected=torch.complex128, found=tensor.dtype)
        self._in_columns = columns
        return super().solve(A, b, x0, columns=columns)

    def _run(self, apply: Operator, b: torch.Tensor, x0: torch.Tensor | None) -> tuple[torch.Tensor, SolveInfo]:
        low = _on_stacks(self.A_low, self._in_columns)

        def correction(r: torch.Tensor) -> tuple[torch.Tensor, SolveInfo]:
            return self.inner._run(low, r, None)

        x, info = algorithms.defect_correction(
            apply, correction, b, x0=x0, tol=self.tol, max_cycles=self.max_cycles, low="complex64"
        )
        return x, info


def _stacked(v: Vector, columns: bool, what: str) -> torch.Tensor:
    tensor = v.tensor if isinstance(v, ColorSpinorField) else v
    if not isinstance(tensor, torch.Tensor):
        raise UsageError(f"{what}: is no tensor", expected="a torch.Tensor or ColorSpinorField", found=type(v).__name__)
    require_complex_dtype(tensor.dtype, what)
    if columns and (isinstance(v, ColorSpinorField) or tensor.ndim < 2):
        raise UsageError(f"{what}: has no axis of columns", expected="[columns, ...]", found=list(tensor.shape))
    return tensor.detach() if columns else tensor.detach().unsqueeze(0)


def _on_stacks(A: Operator, columns: bool) -> Operator:
    return A if columns else lambda v: A(v[0]).unsqueeze(0)


def _unstacked(x: torch.Tensor, b: Vector, columns: bool) -> Any:
    x = x if columns else x[0]
    return ColorSpinorField(x, b.geom) if isinstance(b, ColorSpinorField) else x
