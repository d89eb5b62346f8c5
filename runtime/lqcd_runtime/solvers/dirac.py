"""The door of the solvers for Dirac operators: `lqcd_runtime.solve(D, b)`.

Owns the choice of algorithm, the normal equations and mixed precision for an operator that has `apply`, `dagger` and
`normal`, and the acceptance of a solution: always |b - M x| / |b|, whatever equation was iterated. Knows no artifact
and no engine.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.arrays import as_numpy
from lqcd_runtime.errors import SolveError, UsageError
from lqcd_runtime.scalars import limits
from lqcd_runtime.signature import suggest
from lqcd_runtime.solvers import space
from lqcd_runtime.solvers.bicgstab import bicgstab
from lqcd_runtime.solvers.cg import cg
from lqcd_runtime.solvers.choice import choose
from lqcd_runtime.solvers.compiled import solve_compiled
from lqcd_runtime.solvers.gcr import gcr
from lqcd_runtime.solvers.inner import check_inner
from lqcd_runtime.solvers.mixed import defect_correction
from lqcd_runtime.solvers.result import Reason
from lqcd_runtime.sources import QuarkSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from numpy.typing import NDArray

    from lqcd_runtime.compiled_solver import CompiledSolver
    from lqcd_runtime.solvers.ledger import Observer
    from lqcd_runtime.solvers.result import SolveInfo

    class DiracLike(Protocol):
        """What a solve needs of an operator; `flops` counts one application to one right-hand side."""

        @property
        def lattice(self) -> tuple[int, int, int, int]: ...
        @property
        def dtype(self) -> str: ...
        @property
        def dagger(self) -> DiracLike: ...
        @property
        def normal(self) -> DiracLike: ...
        def apply(self, psi: Any) -> Any: ...

    class Corrector(Protocol):
        """An inner solver of its own, as neff_solver.ChunkSolver."""

        @property
        def lattice(self) -> tuple[int, int, int, int]: ...
        @property
        def dtype(self) -> str: ...
        def correct(self, r: Any, tol: float, max_iterations: int) -> tuple[Any, SolveInfo]: ...


METHODS = ("cg", "bicgstab", "gcr")
# Tolerance of the inner solves of mixed precision: single precision is exact to some 1e-6, and a shorter inner solve
# wastes less.
INNER_TOLERANCE = 1e-4


def solve(
    D: DiracLike,
    b: Any,
    *,
    tol: float = 1e-10,
    method: str = "cg",
    max_iterations: int = 10_000,
    x0: Any = None,
    precision: str | None = None,
    even_odd: bool | None = None,
    compiled: bool | None = None,
    inner: DiracLike | Corrector | None = None,
    storage: str | None = None,
    observer: Observer | None = None,
) -> tuple[NDArray[Any], SolveInfo]:
    """Solve M x = b until the true residual |b - M x| <= tol |b| of every column.

    Iterations run in a solver artifact of D's bundle where it has one for D's lattice and batch (`wilson_schur_cg` before
    `wilson_cg`), else in the host's algorithms; `info.engine` says which and why.

    D: a DiracOperator M; b: complex [T,Z,Y,X,4,3] or [columns,T,Z,Y,X,4,3], or a QuarkSource; x0: start vectors of the
    same shape; method: "cg" (on M^dag M x = M^dag b), "bicgstab" or "gcr" (on M itself). precision: "double" or "single", D's
    own by default, or "mixed": iterations in single precision under true residuals in D's double. even_odd: True demands the
    even-odd system, False the full one. compiled: True demands a solver artifact, False the host. inner: D in single
    precision, or a solver chunk of it (which no observer sees), for mixed precision by defect correction on the host. storage:
    the solver artifact that stores its links and vectors so: "float16", "bfloat16" or "float32_12" (links as two rows)
    iterating in single precision, "float64_12" in double.
    observer: told (iteration, {column: recursive residual}) before every iteration of the host, between calls of an
    artifact. Returns (x like b, in the dtype of D; SolveInfo). Not converging is a value: `info.reason`. Errors: UsageError
    for an unknown method or shapes that do not fit, SolveError for a senseless tol or max_iterations or where memory is too
    short, NoVariant for what was demanded and is not there.
    """
    if method not in METHODS:
        raise UsageError(f"solver {method!r}: is not known{suggest(method, METHODS)}", expected=", ".join(METHODS))
    tol, max_iterations = limits(tol, max_iterations)
    if inner is not None:
        check_inner(D, inner)
    columns, single = _columns(D, b, "right-hand side")
    start = None if x0 is None else _columns(D, x0, "start vector")[0]
    if start is not None and start.shape != columns.shape:
        raise UsageError("start vector: has another shape than the right-hand side", expected=columns.shape, found=start.shape)
    choice = choose(D, method, precision, even_odd, compiled, inner, len(columns), storage)
    sizes = _sizes_out_of_range(D, choice.engine, space.norms(columns))
    if all(s == 1.0 for s in sizes):
        unit, guess = columns, start
    else:
        unit, guess = space.divided(columns, sizes), None if start is None else space.divided(start, sizes)
    with np.errstate(all="ignore"):
        if choice.engine is not None:
            x, info = solve_compiled(
                D, choice.engine, unit, tol=tol, max_iterations=max_iterations, x0=guess, observer=observer  # type: ignore[arg-type]
            )  # fmt: skip
        else:
            x, info = _on_host(D, choice.inner, unit, tol, method, max_iterations, guess, observer)
        if unit is not columns:
            _scale_back(D, x, unit, sizes, tol, info)
    info.engine = choice.words
    info.flops = info.applications * float(getattr(D, "flops", 0.0))
    return (x[0] if single else x), info


def _sizes_out_of_range(D: DiracLike, engine: CompiledSolver | None, sizes: list[float]) -> list[float]:
    """What each column is divided by, so that operators of any precision see numbers near 1 whatever the size of the quark
    source; 1 where there is no need: a compiled solve scales for its artifact itself, and double precision holds what is neither
    huge nor tiny. Every column for itself: its answer does not depend on its neighbours.
    """
    least, most = (1e-100, 1e100) if engine is not None and str(D.dtype) == "float64" else (1.0, 1.0)
    return [s if np.isfinite(s) and s > 0.0 and not least <= s <= most else 1.0 for s in sizes]


def _scale_back(D: DiracLike, x: NDArray[Any], b: NDArray[Any], sizes: list[float], tol: float, info: SolveInfo) -> None:
    """x times the size of its column, in place; where its dtype loses digits at that size, the residual is judged once more.

    b: the right-hand side of unit size. What comes back from the scaled x is applied to, so a solution that became infinite,
    zero or too coarse is not called converged.
    """
    limits = np.finfo(x.dtype)
    extreme = [c for c, size in enumerate(sizes) if not np.sqrt(limits.tiny) <= size <= np.sqrt(limits.max)]
    space.scale(x, sizes)
    for c in extreme:
        column, kept = info.columns[c], (x[c].astype(np.complex128) / sizes[c]).astype(x.dtype)
        if not column.converged:
            continue
        one = b[c : c + 1]
        residual = space.norms(one - D.apply(kept[None]).astype(np.complex128))[0] / (space.norms(one)[0] or 1.0)
        if residual <= tol:
            continue
        column.reason = Reason.STAGNATED if np.isfinite(residual) else Reason.NOT_FINITE
        column.final_residual = residual
        column.note = f"a solution of size {sizes[c]:.0e} does not fit into {x.dtype}; scale the quark source or take float64"


def _on_host(
    D: DiracLike, inner: DiracLike | Corrector | None, b: Any, tol: float, method: str, max_iterations: int, x0: Any,
    observer: Observer | None,
) -> tuple[Any, SolveInfo]:  # fmt: skip
    """The host's algorithms, in D's precision or mixed."""
    dtype = _complex(D)
    unit, guess = b.astype(dtype), None if x0 is None else x0.astype(dtype)
    if inner is None:
        return _direct(D, unit, tol, method, max_iterations, guess, observer)
    return _mixed(D, inner, unit, tol, method, max_iterations, guess, observer)


def _complex(D: DiracLike | Corrector) -> str:
    return "complex64" if str(D.dtype) == "float32" else "complex128"


def _columns(D: DiracLike, b: Any, what: str) -> tuple[NDArray[Any], bool]:
    """(complex [columns,T,Z,Y,X,4,3] in double precision, whether the caller gave one column without the axis)."""
    array = as_numpy(b.on(D.lattice) if isinstance(b, QuarkSource) else b, what)
    shape = (*D.lattice, 4, 3)
    if array.shape not in (shape, array.shape[:1] + shape) or array.dtype.kind not in "cfi":
        raise UsageError(
            f"{what}: does not fit the operator", expected=f"complex {list(shape)} with or without leading columns",
            found=f"{array.dtype} {list(array.shape)}",
        )  # fmt: skip
    single = array.ndim == len(shape)
    return np.ascontiguousarray(array[None] if single else array, np.complex128), single


def _direct(
    D: DiracLike, b: Any, tol: float, method: str, max_iterations: int, x0: Any, observer: Observer | None
) -> tuple[Any, SolveInfo]:
    """One solve in the precision of D."""
    if method == "cg":
        return _normal_equations(D, b, tol, max_iterations, x0, observer)
    algorithm = bicgstab if method == "bicgstab" else gcr
    return algorithm(D.apply, b, x0=x0, tol=tol, max_iterations=max_iterations, observer=observer)


def _normal_equations(
    D: DiracLike, b: Any, tol: float, max_iterations: int, x0: Any, observer: Observer | None
) -> tuple[Any, SolveInfo]:
    """CG on M^dag M x = M^dag b, accepted by |b - M x| / |b|.

    The recursion sees |M^dag (b - M x)| only, which is smaller or larger by up to the condition number; the ledger
    lowers its target until the residual that counts is met.
    """
    sizes = [s if np.isfinite(s) and s > 0.0 else 1.0 for s in space.norms(b)]
    blank = [not np.any(column) for column in b]
    checks = 0

    def acceptance(x: Any, columns: list[int]) -> list[float]:
        nonlocal checks
        checks += len(columns)
        r = space.take(b, columns) - D.apply(x)
        return [0.0 if blank[c] else v / sizes[c] for v, c in zip(space.norms(r), columns, strict=True)]

    x, info = cg(
        D.normal.apply, space.contiguous(D.dagger.apply(b)), x0=x0, tol=tol, max_iterations=max_iterations, acceptance=acceptance,
        observer=observer,
    )  # fmt: skip
    # An application of the normal operator is two of M.
    info.applications = 2 * info.applications + checks + len(b)
    return x, info


def _mixed(
    D: DiracLike,
    inner: DiracLike | Corrector,
    b: Any,
    tol: float,
    method: str,
    max_iterations: int,
    x0: Any,
    observer: Observer | None,
) -> tuple[Any, SolveInfo]:
    """Defect correction around solves with the inner operator."""
    if max_iterations < 1:
        raise SolveError("mixed-precision solve: needs at least one iteration", found=f"max_iterations={max_iterations}")
    spent = 0

    def correction(r: Any) -> tuple[Any, SolveInfo]:
        nonlocal spent
        left = max(0, max_iterations - spent)
        loose = max(INNER_TOLERANCE, 0.1 * tol)
        if hasattr(inner, "correct"):
            x, info = inner.correct(r, loose, left)
        else:
            x, info = _direct(inner, r, loose, method, left, None, observer)
        spent += info.iterations
        return x, info

    return defect_correction(D.apply, correction, b, x0=x0, tol=tol, low=_complex(inner))
