"""What callers hand in -> C-ordered numpy arrays of the artifact's dtype, without a copy where memory layout permits.

Owns the checks of shape and dtype of spinors and links. Torch tensors and other array types are recognised by duck typing
(`__array__`, DLPack); nothing is imported for them. Precision is never changed for a spinor: that would be a silent choice.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

COMPLEX: dict[str, np.dtype[np.complex64] | np.dtype[np.complex128]] = {
    "float32": np.dtype(np.complex64),
    "float64": np.dtype(np.complex128),
}


def as_numpy(value: Any, what: str) -> NDArray[Any]:
    """An array over the caller's memory where possible. Errors: UsageError for what is no array in host memory."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (list, tuple)) or not (hasattr(value, "__array__") or hasattr(value, "__dlpack__")):
        raise UsageError(
            f"{what}: is no array", expected="numpy array, CPU tensor or DLPack", found=type(value).__name__,
            hint="numpy.asarray(..., dtype=complex)" if isinstance(value, (list, tuple)) else None,
        )  # fmt: skip
    try:
        if hasattr(value, "detach"):
            # A lazily conjugated tensor has no numpy view; resolving is a copy only where it is lazy.
            value = value.detach().resolve_conj()
        return np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
    except (TypeError, RuntimeError, BufferError, AttributeError) as err:
        raise UsageError(
            f"{what}: is no array in host memory",
            expected="numpy array, CPU tensor or DLPack",
            found=f"{type(value).__name__}: {err}",
        ) from err


def spinors(psi: Any, lattice: tuple[int, ...], dtype: str, what: str = "spinor") -> tuple[NDArray[Any], bool]:
    """(complex<dtype> [columns,T,Z,Y,X,4,3] in C order, whether the caller's array had the leading axis).

    Errors: UsageError for another shape or dtype.
    """
    array = as_numpy(psi, what)
    shape = (*lattice, 4, 3)
    if array.shape[-6:] != shape or array.ndim not in (6, 7):
        raise UsageError(
            f"{what}: has the wrong shape", expected=f"{list(shape)} or [columns, {str(list(shape))[1:]}", found=list(array.shape)
        )
    if array.dtype != COMPLEX[dtype]:
        raise UsageError(
            f"{what}: has the wrong dtype",
            expected=COMPLEX[dtype],
            found=array.dtype,
            hint=f".astype(numpy.{COMPLEX[dtype]}), or an operator with another dtype=",
        )
    columned = array.ndim == 7
    return np.ascontiguousarray(array if columned else array[None]), columned


def links_of(gauge: Any, dtype: str, lattice: tuple[int, ...] | None = None) -> NDArray[Any]:
    """complex<dtype> links [T,Z,Y,X,4,3,3] in C order from a Gauge or an array, rounded to `dtype` where it is wider.

    Errors: UsageError for another shape, for real numbers, or where the extents differ from `lattice`.
    """
    array = as_numpy(getattr(gauge, "links", gauge), "gauge field")
    if array.ndim != 7 or array.shape[4:] != (4, 3, 3) or array.dtype.kind != "c":
        raise UsageError(
            "gauge field: has the wrong shape or dtype",
            expected="complex [T,Z,Y,X,4,3,3]",
            found=f"{array.dtype} {list(array.shape)}",
        )
    if lattice is not None and array.shape[:4] != tuple(lattice):
        raise UsageError("gauge field: has other extents", expected=list(lattice), found=list(array.shape[:4]))
    links: NDArray[Any] = np.ascontiguousarray(array, COMPLEX[dtype])
    return links


def address(array: NDArray[Any]) -> int:
    """Where a C-ordered array begins."""
    return int(array.__array_interface__["data"][0])
