"""Lattice extents and site numbering: parsing, checking, parity, slabs. Axis order is T, Z, Y, X everywhere."""

from __future__ import annotations

from lqcd_runtime.errors import UsageError
from lqcd_runtime.scalars import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

Extents = tuple[int, int, int, int]


def parse_extents(value: str | Sequence[int]) -> Extents:
    """Extents from "TxZxYxX" or four integers >= 2, in the order T, Z, Y, X.

    Errors: UsageError naming what was found. Source: conventions.AXES.
    """
    try:
        numbers = [_digits(p) for p in value.lower().split("x")] if isinstance(value, str) else value
        parts = tuple([whole(n, "extent") for n in numbers])
    except (TypeError, UsageError):
        parts = ()
    if len(parts) != 4 or min(parts) < 2:
        raise UsageError(
            f"lattice {value!r}: is not four extents",
            expected="TxZxYxX with every extent >= 2, e.g. 16x8x8x8",
            found=repr(value),
        )
    return parts


def _digits(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def format_extents(extents: Sequence[int]) -> str:
    """(8,4,4,4) -> "8x4x4x4"."""
    return "x".join(str(int(n)) for n in extents)


def volume(extents: Sequence[int]) -> int:
    """Number of sites."""
    v = 1
    for n in extents:
        v *= int(n)
    return v


def parity(extents: Sequence[int]) -> NDArray[np.int8]:
    """(t+z+y+x) mod 2 of every site: int8 [T,Z,Y,X], 0 on even sites."""
    import numpy as np

    t, z, y, x = np.ogrid[tuple(slice(int(n)) for n in extents)]
    return ((t + z + y + x) & 1).astype(np.int8)
