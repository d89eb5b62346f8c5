"""Numbers that callers pass: one reading of "a real number" and "a whole number" for every door of the runtime.

A text, a truth value, a complex number or an array is never taken for a number, and 2.7 never for 2: each of them is more often a
mistake in the call than what was meant. NumPy scalars and zero-dimensional arrays and tensors are numbers. Owns these two
readings and the limits of a solve; knows no operator.
"""

from __future__ import annotations

import math
from operator import index

from lqcd_runtime.errors import SolveError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def real(value: Any, what: str, hint: str | None = None) -> float:
    """A finite real number as a float. Errors: UsageError for anything else."""
    number = math.nan
    if _is_number(value):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{what}: is not a finite number", found=repr(value), hint=hint)
    return number


def whole(value: Any, what: str, least: int | None = 0, hint: str | None = None) -> int:
    """An integer, of at least `least` unless that is None. Errors: UsageError for anything else."""
    if type(value) is int and (least is None or value >= least):
        return value
    try:
        made = index(value) if _is_number(value) else None
    except TypeError:
        made = None
    if made is None or (least is not None and made < least):
        bound = "" if least is None else f" of at least {least}"
        raise UsageError(f"{what}: is not a whole number{bound}", found=repr(value), hint=hint)
    return made


def number(value: Any, what: str) -> complex:
    """A finite number, real or complex. Errors: UsageError for anything else."""
    kind = str(getattr(value, "dtype", ""))
    if isinstance(value, complex) or ("complex" in kind and getattr(value, "ndim", 0) == 0):
        made = complex(value)
        if math.isfinite(made.real) and math.isfinite(made.imag):
            return made
        raise UsageError(f"{what}: is not a finite number", found=repr(value))
    return complex(real(value, what))


def threads(value: Any) -> int | None:
    """A number of threads, or None for the default. Errors: UsageError."""
    return None if value is None else whole(value, "threads", 1)


def limits(tol: Any, max_iterations: Any) -> tuple[float, int]:
    """Tolerance and iteration limit of a solve. Errors: UsageError for what is no number, SolveError for one out of range."""
    if not (isinstance(tol, float) and not math.isfinite(tol)):
        tol = real(tol, "tol", hint="tol=1e-10")
    limit = whole(max_iterations, "max_iterations", None)
    if not (0.0 < tol < 1.0 and limit >= 0):
        raise SolveError(
            "solve: the tolerance or the iteration limit is out of range",
            expected="0 < tol < 1 and max_iterations >= 0",
            found=f"tol={tol}, max_iterations={max_iterations}",
        )
    return tol, limit


def _is_number(value: Any) -> bool:
    if isinstance(value, (bool, str, bytes, complex)):
        return False
    if hasattr(value, "dtype"):
        kind = str(value.dtype)
        return getattr(value, "ndim", 0) == 0 and ("float" in kind or "int" in kind)
    return True
