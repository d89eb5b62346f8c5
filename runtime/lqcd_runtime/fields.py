"""Lattice fields of the runtime: the gauge field with its checks, and seeded random fields.

Owns `Gauge`, the numpy checks of a gauge field (finite, unitary, plaquette, link trace) that every loaded file must
pass, and the random fields that witnesses are made of. Measuring is not done here: `observe` runs compiled artifacts.
Knows no file format.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime import noise
from lqcd_runtime.conventions import AXES, PLANES
from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import parse_extents, volume

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.geometry import Extents

LINKS_STREAM = 0
SPINOR_STREAM = 1

# Largest accepted element of |U U^dag - 1|. Rounding of float32 gives 1e-7 and published files (float64 ones that were
# converted from float32 included) reach 1e-6; a wrong byte order or a flipped bit that matters to physics is far above.
UNITARITY_BOUND = 1e-5
# What the links of a float64 file that was float64 all its life keep between two reunitarisations.
UNITARITY_EXPECTED = {"float32": UNITARITY_BOUND, "float64": 1e-9}
# Links that are judged together: 9 complex doubles each, well inside a second-level cache.
_BLOCK = 2048


class Gauge:
    """An SU(3) gauge field in memory.

    links: complex128 [T,Z,Y,X,mu,3,3], mu in the order T, Z, Y, X; precision: "float32" or "float64", of the file or
    array it came from (values of a float32 file are promoted exactly, never reunitarised); source: path of the file or
    None; format: its format or "memory"; warnings: sentences a user should see; header: what the file states of itself.
    Errors: UsageError for another shape or dtype. Unitarity is not required here; see `check`.
    """

    def __init__(
        self,
        links: Any,
        *,
        precision: str | None = None,
        source: str | None = None,
        format: str = "memory",
        warnings: Sequence[str] = (),
        header: dict[str, str] | None = None,
    ) -> None:
        array = np.asarray(links)
        if array.ndim != 7 or array.shape[4:] != (4, 3, 3) or array.dtype.kind != "c":
            raise UsageError(
                "gauge field: has the wrong shape or dtype",
                expected="complex [T,Z,Y,X,4,3,3]",
                found=f"{array.dtype} {list(array.shape)}",
            )
        self.lattice: Extents = parse_extents(array.shape[:4])
        self.precision = precision or ("float32" if array.dtype == np.complex64 else "float64")
        self.links: NDArray[np.complex128] = np.ascontiguousarray(array, np.complex128)
        self.source = source
        self.format = format
        self.warnings = list(warnings)
        self.header = dict(header or {})
        self._plaquette: float | None = None
        self._digest: str | None = None

    @property
    def plaquette(self) -> float:
        """Mean of Re tr P / 3 over the six planes and all sites, by numpy: the check made at load, not a measurement."""
        if self._plaquette is None:
            self._plaquette = float(np.mean(plaquette_planes(self.links)))
        return self._plaquette

    @property
    def link_trace(self) -> float:
        """Mean of Re tr U / 3 over all links."""
        return link_trace(self.links)

    @property
    def digest(self) -> str:
        """SHA-256 over extents and little-endian complex128 bytes of the links: identity of the values, not of the file."""
        if self._digest is None:
            from lqcd_runtime.digest import sha256_hex

            head = b"lqcd-aot/gauge/v1\0" + ("x".join(map(str, self.lattice)) + "\0").encode("ascii")
            self._digest = sha256_hex(head + self.links.astype("<c16", copy=False).tobytes())
        return self._digest

    def check(self) -> list[str]:
        """What is physically wrong with the links, one sentence each; empty where they are finite and in SU(3)."""
        return check_links(self.links)

    def __repr__(self) -> str:
        return f"Gauge({'x'.join(map(str, self.lattice))}, {self.precision}, {self.format}, plaquette {self.plaquette:.9f})"


def unitarity_deviation(links: NDArray[Any]) -> NDArray[np.float64]:
    """Largest element of |U U^dag - 1| of every link: float64 [T,Z,Y,X,4]; NaN or infinity where a link is not finite.

    The matrix is Hermitian: its diagonal and the three elements above it say all. Links go through in blocks that stay in the
    caches, element by element: matrix products of 3x3 would cost a call each.
    """
    flat = links.reshape(-1, 3, 3)
    worst = np.empty(len(flat))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(flat), _BLOCK):
            u = np.ascontiguousarray(flat[start : start + _BLOCK].transpose(1, 2, 0))
            re, im = u.real.copy(), u.imag.copy()
            most = worst[start : start + _BLOCK]
            most[:] = 0.0
            for i in range(3):
                np.maximum(most, np.square((re[i] * re[i] + im[i] * im[i]).sum(axis=0) - 1.0), out=most)
                for k in range(i):
                    along = (re[i] * re[k] + im[i] * im[k]).sum(axis=0)
                    across = (im[i] * re[k] - re[i] * im[k]).sum(axis=0)
                    np.maximum(most, along * along + across * across, out=most)
        return np.sqrt(worst).reshape(links.shape[:5])


def check_links(links: NDArray[Any]) -> list[str]:
    """Sentences on non-finite, non-unitary or det != 1 links: complex [T,Z,Y,X,4,3,3] -> list, empty when all is well."""
    return survey_links(links)[0]


def survey_links(links: NDArray[Any]) -> tuple[list[str], float]:
    """(`check_links`, the largest |U U^dag - 1|) in one pass over the links."""
    deviation = unitarity_deviation(links)
    worst = float(deviation.max())
    bad = ~(deviation <= UNITARITY_BOUND)
    if not np.isfinite(worst):
        finite = np.isfinite(links.view(links.real.dtype)).reshape((*links.shape[:5], -1)).all(axis=-1)
        if not finite.all():
            return [f"{int((~finite).sum())} of {finite.size} links hold NaN or infinity, the first at {_place(~finite)}"], worst
        worst = float(np.nanmax(deviation)) if np.isfinite(deviation).any() else float("inf")
    if bad.any():
        return [
            f"{int(bad.sum())} of {bad.size} links are not unitary, the first at {_place(bad)}: "
            f"max |U U^dag - 1| = {worst:.3g}, bound {UNITARITY_BOUND:.0e}"
        ], worst
    off = ~(np.abs(determinant(links) - 1.0) <= 3 * UNITARITY_BOUND)
    if off.any():
        return [f"{int(off.sum())} of {off.size} links do not have determinant 1, the first at {_place(off)}"], worst
    return [], worst


def _place(mask: NDArray[np.bool_]) -> str:
    t, z, y, x, mu = (int(i) for i in np.argwhere(mask)[0])
    return f"(t,z,y,x)=({t},{z},{y},{x}) direction {AXES[mu]}"


def determinant(u: NDArray[Any]) -> NDArray[Any]:
    """det of [..., 3, 3] by the rule of Sarrus (LAPACK's pivoting would be slower and no more exact for unitary matrices)."""
    minors = [u[..., 1, i] * u[..., 2, j] - u[..., 1, j] * u[..., 2, i] for i, j in ((1, 2), (2, 0), (0, 1))]
    det: NDArray[Any] = u[..., 0, 0] * minors[0] + u[..., 0, 1] * minors[1] + u[..., 0, 2] * minors[2]
    return det


def plaquette_planes(links: NDArray[Any]) -> NDArray[np.float64]:
    """Lattice mean of Re tr P / 3 for the planes TZ, TY, TX, ZY, ZX, YX: float64 [6].

    P_{mu nu}(x) = U_mu(x) U_nu(x+mu) U_mu(x+nu)^dag U_nu(x)^dag, periodic. Source: conventions.PLANES.
    """
    out = np.empty(6)
    for k, (mu, nu) in enumerate(PLANES):
        u_mu, u_nu = links[..., mu, :, :], links[..., nu, :, :]
        upper = u_mu @ np.roll(u_nu, -1, mu)
        lower = u_nu @ np.roll(u_mu, -1, nu)
        out[k] = float(np.mean(np.sum((upper * lower.conj()).real, axis=(-1, -2)))) / 3
    return out


def link_trace(links: NDArray[Any]) -> float:
    """Mean of Re tr U / 3 over all links."""
    return float(np.mean(np.trace(links, axis1=-2, axis2=-1).real)) / 3


def random_links(lattice: str | Sequence[int], seed: int) -> NDArray[np.complex128]:
    """A seeded random SU(3) field: complex128 [T,Z,Y,X,4,3,3], the same bits on every machine.

    Two rows of uniform numbers, orthonormalised by Gram-Schmidt (twice, so that nearly parallel rows do not spoil
    unitarity); the third row is the conjugate of their cross product, so det = 1. NOT Haar: made for witnesses and
    tests, not for physics. Only real additions, products, quotients and square roots of IEEE double are used, each
    rounded alone.
    """
    extents = parse_extents(lattice)
    n = volume(extents) * 4
    raw = noise.uniform(seed, LINKS_STREAM, n * 12).reshape(n, 2, 3, 2)
    re, im = np.empty((3, 3, n)), np.empty((3, 3, n))
    for row in range(2):
        for k in range(3):
            re[row, k], im[row, k] = raw[:, row, k, 0], raw[:, row, k, 1]
    _normalise(re[0], im[0])
    for _ in range(2):
        dot_re = sum(re[0, k] * re[1, k] + im[0, k] * im[1, k] for k in range(3))
        dot_im = sum(re[0, k] * im[1, k] - im[0, k] * re[1, k] for k in range(3))
        for k in range(3):
            shift_re = dot_re * re[0, k] - dot_im * im[0, k]
            shift_im = dot_re * im[0, k] + dot_im * re[0, k]
            re[1, k] -= shift_re
            im[1, k] -= shift_im
        _normalise(re[1], im[1])
    for k, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
        re[2, k] = (re[0, i] * re[1, j] - im[0, i] * im[1, j]) - (re[0, j] * re[1, i] - im[0, j] * im[1, i])
        im[2, k] = -((re[0, i] * im[1, j] + im[0, i] * re[1, j]) - (re[0, j] * im[1, i] + im[0, j] * re[1, i]))
    links = np.empty((n, 3, 3), np.complex128)
    links.real, links.imag = re.transpose(2, 0, 1), im.transpose(2, 0, 1)
    return links.reshape((*extents, 4, 3, 3))


def _normalise(re: NDArray[np.float64], im: NDArray[np.float64]) -> None:
    """Scale rows [3, n] to length 1 in place."""
    length = np.sqrt(sum(re[k] * re[k] + im[k] * im[k] for k in range(3)))
    for k in range(3):
        re[k] /= length
        im[k] /= length


def random_spinor(lattice: str | Sequence[int], seed: int, column: int = 0) -> NDArray[np.complex128]:
    """A seeded spinor with real and imaginary parts uniform in [-1, 1): complex128 [T,Z,Y,X,4,3], one stream per column."""
    extents = parse_extents(lattice)
    raw = noise.uniform(seed, SPINOR_STREAM + column, volume(extents) * 24)
    return raw.view(np.complex128).reshape((*extents, 4, 3))
