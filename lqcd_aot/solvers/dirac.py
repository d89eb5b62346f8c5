"""`invert`: M x = b for a Dirac operator module and its links, accepted by the true residual |b - M x| / |b| always.

Owns the normal equations and the two precisions for torch modules; lqcd_runtime.solve is its counterpart for
compiled operators, and both use the algorithms of lqcd_runtime.solvers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from lqcd_aot.core.checks import require_finite, require_pair
from lqcd_aot.dirac.wilson import LatticeOperator
from lqcd_runtime import solvers as algorithms
from lqcd_runtime.errors import UsageError
from lqcd_runtime.solvers import space
from lqcd_runtime.solvers.result import SolveInfo

METHODS = ("cg", "bicgstab", "gcr")
# A correction needs no more than single precision has to give, and a shorter inner solve wastes less.
INNER_TOLERANCE = 1e-4
Observer = Callable[[int, dict[int, float]], None]


def invert(
    operator: LatticeOperator,
    U: torch.Tensor,
    b: torch.Tensor,
    *,
    method: str = "cg",
    tol: float = 1e-8,
    maxiter: int = 1000,
    x0: torch.Tensor | None = None,
    mixed: bool = False,
    observer: Observer | None = None,
) -> tuple[torch.Tensor, SolveInfo]:
    """(x, info) with M x = b: b [..., T,Z,Y,X,4,Nc], every leading index an independent right-hand side.

    method: cg (on M^dag M x = M^dag b), bicgstab or gcr (on M); mixed: corrections in complex64 under residuals in complex128.
    Errors: UsageError for an unknown method, links that do not fit or are not finite, `mixed` without complex128;
    SolveError for a senseless tol or maxiter.
    """
    if method not in METHODS:
        raise UsageError(f"solver {method!r}: is not known", expected=", ".join(METHODS), found=method)
    require_pair(b, U, operator.nc, operator.dtype)
    require_finite(U, "links")
    if mixed and b.dtype != torch.complex128:
        raise UsageError("mixed precision: needs an outer complex128", expected=torch.complex128, found=b.dtype)
    stack = b.detach().reshape(-1, *b.shape[-6:])
    start = None if x0 is None else x0.detach().reshape(stack.shape)
    with torch.no_grad():
        if mixed:
            x, info = _mixed(operator, U, stack, method, tol, maxiter, start, observer)
        else:
            x, info = _direct(operator, U, stack, method, tol, maxiter, start, observer)
    return x.reshape(b.shape), info


def _direct(
    operator: LatticeOperator, U: torch.Tensor, b: Any, method: str, tol: float, maxiter: int, x0: Any, observer: Observer | None
) -> tuple[Any, SolveInfo]:
    prepared = operator.prepare_links(U)

    def matrix(v: torch.Tensor, dagger: bool = False) -> torch.Tensor:
        return operator.act(v, U, dagger, prepared)

    if method != "cg":
        algorithm = algorithms.bicgstab if method == "bicgstab" else algorithms.gcr
        return algorithm(matrix, b, x0=x0, tol=tol, max_iterations=maxiter, observer=observer)
    sizes = [s if s > 0 else 1.0 for s in space.norms(b)]

    def acceptance(x: Any, columns: list[int]) -> list[float]:
        residual = space.norms(space.take(b, columns) - matrix(x))
        return [r / sizes[c] for r, c in zip(residual, columns, strict=True)]

    return algorithms.cg(
        lambda v: matrix(matrix(v), True),
        space.contiguous(matrix(b, True)),
        x0=x0,
        tol=tol,
        max_iterations=maxiter,
        acceptance=acceptance,
        observer=observer,
    )


def _mixed(
    operator: LatticeOperator, U: torch.Tensor, b: Any, method: str, tol: float, maxiter: int, x0: Any, observer: Observer | None
) -> tuple[Any, SolveInfo]:
    low, prepared, spent = U.to(torch.complex64), operator.prepare_links(U), 0

    def correction(r: Any) -> tuple[Any, SolveInfo]:
        nonlocal spent
        inner_tol = max(INNER_TOLERANCE, 0.1 * tol)
        x, info = _direct(operator, low, r, method, inner_tol, max(0, maxiter - spent), None, observer)
        spent += info.iterations
        return x, info

    return algorithms.defect_correction(lambda v: operator.act(v, U, False, prepared), correction, b, x0=x0, tol=tol)
