"""Quark propagators: twelve solves from one quark source, kept together with how each of them ended.

Owns the layout [T,Z,Y,X, spin_sink, colour_sink, spin_source, colour_source]. Knows no artifact: any operator that
`solve` accepts will do.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.errors import UsageError
from lqcd_runtime.solvers.dirac import solve
from lqcd_runtime.sources import QuarkSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.solvers.dirac import DiracLike
    from lqcd_runtime.solvers.ledger import Observer
    from lqcd_runtime.solvers.result import ColumnInfo, SolveInfo


class Propagator:
    """S = M^-1 source for all twelve components of the source.

    data: complex [T,Z,Y,X,4,3,4,3] = [T,Z,Y,X, spin_sink, colour_sink, spin_source, colour_source]; time: the source's
    time slice or None; label: of the source; info: SolveInfo of the twelve columns (3 * spin + colour); inputs: those
    of the operator (mass ...). Errors: UsageError for another shape.
    """

    def __init__(
        self,
        data: NDArray[Any],
        *,
        time: int | None = 0,
        label: str = "",
        info: SolveInfo | None = None,
        inputs: dict[str, Any] | None = None,
    ) -> None:
        if data.ndim != 8 or data.shape[4:] != (4, 3, 4, 3):
            raise UsageError("propagator: has the wrong shape", expected="[T,Z,Y,X,4,3,4,3]", found=list(data.shape))
        self.data, self.time, self.label, self.info, self.inputs = data, time, label, info, dict(inputs or {})

    @property
    def lattice(self) -> tuple[int, ...]:
        return self.data.shape[:4]

    @property
    def converged(self) -> bool:
        """Whether every column reached its tolerance (False where the solves are not known)."""
        return self.info is not None and self.info.converged

    @property
    def columns(self) -> list[ColumnInfo]:
        """How each of the twelve solves ended."""
        return [] if self.info is None else self.info.columns

    @property
    def by_spin(self) -> NDArray[Any]:
        """A view [T,Z,Y,X, spin_sink, spin_source, colour_sink, colour_source], the order of Chroma's files and of the SDK."""
        return self.data.transpose(0, 1, 2, 3, 4, 6, 5, 7)

    def __repr__(self) -> str:
        return f"Propagator({'x'.join(map(str, self.lattice))}, {self.label or 'source unknown'}, {self.info})"


def propagator(
    D: DiracLike,
    source: QuarkSource | Any,
    *,
    tol: float = 1e-10,
    method: str = "cg",
    max_iterations: int = 10_000,
    x0: Any = None,
    precision: str | None = None,
    even_odd: bool | None = None,
    compiled: bool | None = None,
    inner: DiracLike | None = None,
    storage: str | None = None,
    time: int | None = None,
    observer: Observer | None = None,
) -> Propagator:
    """Solve M S = source for twelve columns at once, each to the true residual tol.

    D: DiracOperator of any batch; source: a QuarkSource of twelve columns, or complex [12,T,Z,Y,X,4,3] with column 3 *
    spin + colour (then `time` says its time slice); other arguments as `solve`. An unconverged column is a value: see
    `Propagator.converged`, `.columns`. Errors: UsageError for a source that has not twelve columns, and those of
    `solve`.
    """
    if isinstance(source, QuarkSource):
        columns, label, when = source.on(D.lattice), source.label, source.time
    else:
        columns, label, when = np.asarray(source), "array", time
    if columns.ndim != 7 or len(columns) != 12:
        raise UsageError(
            "propagator: the quark source does not have twelve columns", expected="[12,T,Z,Y,X,4,3]", found=list(columns.shape),
            hint="leave spin and colour out, or dilute=True for noise",
        )  # fmt: skip
    x, info = solve(
        D, columns, tol=tol, method=method, max_iterations=max_iterations, x0=x0, precision=precision, even_odd=even_odd,
        compiled=compiled, inner=inner, storage=storage, observer=observer,
    )  # fmt: skip
    data = np.ascontiguousarray(np.moveaxis(x, 0, -1)).reshape((*x.shape[1:], 4, 3))
    return Propagator(data, time=when, label=label, info=info, inputs=getattr(D, "inputs", {}))
