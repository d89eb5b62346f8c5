"""Links whose third row two rows determine: how far a gauge field is from that, and the error that says so.

Owns the measure and its bound, the same that artifacts test while packing (two_rows.hpp). Refuses to know artifacts. Looked at
only after an artifact refused: what it costs is more than the packing.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.conventions import AXES
from lqcd_runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

# In units of the arithmetic's rounding: 3 for a matrix of SU(3) rounded once, 16 for one orthonormalised in that arithmetic, 8
# for the test itself in double; the next power of two.
BOUND = 32
ROUNDING = {np.dtype(np.complex64): 2.0**-24, np.dtype(np.complex128): 2.0**-53}


def deviation(links: NDArray[Any]) -> NDArray[np.float64]:
    """The largest of ||row 0|^2 - 1|, ||row 1|^2 - 1|, |row 0 . row 1*|, |row 2 - conj(row 0 x row 1)|, of every link.

    links: complex [T,Z,Y,X,4,3,3] -> float64 [T,Z,Y,X,4]; NaN where a link is not finite. All zero: exactly in SU(3).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        a, b, c = (links[..., row, :].astype(np.complex128) for row in range(3))
        parts = [np.abs((np.abs(row) ** 2).sum(-1) - 1) for row in (a, b)]
        parts += [np.abs((a * b.conj()).sum(-1)), np.abs(c - np.cross(a, b).conj()).max(-1)]
        largest: NDArray[np.float64] = np.max(parts, axis=0)
    return largest


def not_in_group(links: NDArray[Any], artifact: str, storage: str) -> UsageError:
    """The refusal of links, as they were packed, by an artifact that keeps two rows of each. Names the worst."""
    found, bound = deviation(links), BOUND * ROUNDING[links.dtype]
    *site, mu = (int(i) for i in np.unravel_index(np.argmax(np.where(np.isfinite(found), found, np.inf)), found.shape))
    place = ",".join(map(str, site))
    return UsageError(
        f"artifact {artifact}: keeps two rows of a link, and the third one is not what they make it",
        expected=f"unitary links with determinant 1 within {bound:.2g} ({BOUND} roundings of {links.dtype})",
        found=f"{found[(*site, mu)]:.3g} at (t,z,y,x)=({place}) direction {AXES[mu]}; {int((~(found <= bound)).sum())} of "
        f"{found.size} links are beyond the bound",
        hint=f"storage {storage.removesuffix('_12')} keeps all of a link"
        + ("; links of a float32 file are exact to float32 only: storage float32_12" if storage == "float64_12" else ""),
    )
