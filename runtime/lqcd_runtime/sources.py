"""Quark sources: what stands on the right-hand side of M x = b. Point, wall and noise.

Owns `QuarkSource`, which becomes arrays only when it meets a lattice (`source.on(lattice)`). Column 3 * spin + colour
holds that component, so twelve columns make a propagator.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime import noise
from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import format_extents, parse_extents, volume
from lqcd_runtime.scalars import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lqcd_runtime.geometry import Extents

NOISE = {"z2": noise.z2, "z4": noise.z4}


class QuarkSource:
    """One or twelve right-hand sides, not yet bound to a lattice.

    label: readable, unique; columns: 1 or 12; time: the time slice it lives on, None for all of them; components: the
    (spin, colour) of every column, or None where a column fills all twelve.
    """

    __slots__ = ("_fill", "components", "label", "position", "time")

    def __init__(
        self,
        label: str,
        fill: Callable[[NDArray[np.complex128], Extents], None],
        components: tuple[tuple[int, int], ...] | None,
        time: int | None,
        position: Extents | None = None,
    ) -> None:
        self.label, self._fill, self.components, self.time, self.position = label, fill, components, time, position

    @property
    def columns(self) -> int:
        return 1 if self.components is None else len(self.components)

    def on(self, lattice: str | Sequence[int]) -> NDArray[np.complex128]:
        """The right-hand sides on a lattice: complex128 [columns,T,Z,Y,X,4,3]. Errors: UsageError where it lies outside."""
        extents = parse_extents(lattice)
        if self.time is not None and self.time >= extents[0]:
            raise UsageError(
                f"quark source {self.label}: lies outside the lattice", expected=f"time slices 0..{extents[0] - 1}",
                found=self.time,
            )  # fmt: skip
        out = np.zeros((self.columns, *extents, 4, 3), np.complex128)
        self._fill(out, extents)
        return out

    def __repr__(self) -> str:
        return f"QuarkSource({self.label})"


def point_source(position: Sequence[int], spin: int | None = None, colour: int | None = None) -> QuarkSource:
    """delta(x, position): 12 columns, or those of one spin, one colour, or a single column where both are named.

    position: (t, z, y, x). Errors: UsageError for what is no position, spin 0..3 or colour 0..2.
    """
    if not hasattr(position, "__len__") or len(position) != 4:
        raise UsageError("point source: has no position", expected="(t, z, y, x), each >= 0", found=repr(position))
    t, z, y, x = (whole(n, f"point source at {position!r}: a coordinate") for n in position)
    site = (t, z, y, x)
    parts = _components(spin, colour)

    def fill(out: NDArray[np.complex128], extents: Extents) -> None:
        if any(n >= extent for n, extent in zip(site, extents, strict=True)):
            raise UsageError(
                "point source: lies outside the lattice", expected=f"below {format_extents(extents)} (t,z,y,x)", found=site
            )  # fmt: skip
        for column, (s, c) in enumerate(parts):
            out[(column, *site, s, c)] = 1.0

    return QuarkSource(_label("point" + str(site).replace(" ", ""), spin, colour), fill, parts, site[0], site)


def wall_source(t: int, spin: int | None = None, colour: int | None = None) -> QuarkSource:
    """1 on every site of time slice t: columns as for `point_source`. Errors: UsageError."""
    time = _time(t)
    parts = _components(spin, colour)

    def fill(out: NDArray[np.complex128], extents: Extents) -> None:
        for column, (s, c) in enumerate(parts):
            out[column, time, ..., s, c] = 1.0

    return QuarkSource(_label(f"wall(t={time})", spin, colour), fill, parts, time)


def noise_source(kind: str = "z2", seed: int = 0, t: int | None = None, *, stream: int = 0, dilute: bool = False) -> QuarkSource:
    """Unit-modulus noise on all sites, or on time slice t only.

    kind: "z2" (+-1) or "z4" (1, i, -1, -i); stream: the number of the noise vector. One column with noise in all twelve
    components; with `dilute`, twelve columns that carry one number per site each in its component (spin-colour
    dilution: a propagator for the one-end trick). The number of a component is that of (seed, stream, global site
    index, component): the same however a lattice is cut, and on a time slice the same as in the full volume. Errors:
    UsageError for an unknown kind, a seed outside [0, 2^64), a stream outside [0, 2^32).
    """
    if kind not in NOISE:
        raise UsageError(f"noise {kind!r}: is not known", expected=", ".join(NOISE))
    draw, time = NOISE[kind], None if t is None else _time(t)
    seed, stream = whole(seed, "noise: its seed"), whole(stream, "noise: its stream")
    draw(seed, stream, 0)
    parts = _components(None, None) if dilute else None
    width = 1 if dilute else 12

    def fill(out: NDArray[np.complex128], extents: Extents) -> None:
        slice_sites = volume(extents) // extents[0]
        first, count = (0, extents[0]) if time is None else (time, 1)
        numbers = draw(seed, stream, count * slice_sites * width, first * slice_sites * width)
        shaped = numbers.reshape((count, *extents[1:], *(() if dilute else (4, 3))))
        for column, (s, c) in enumerate(parts or ()):
            out[column, first : first + count, ..., s, c] = shaped
        if parts is None:
            out[0, first : first + count] = shaped

    where = "all" if time is None else f"t={time}"
    return QuarkSource(f"{kind}({where},seed={seed},stream={stream}{',diluted' if dilute else ''})", fill, parts, time)


def _time(t: int) -> int:
    return whole(t, "quark source: its time slice")


def _components(spin: int | None, colour: int | None) -> tuple[tuple[int, int], ...]:
    """The (spin, colour) of every column. Errors: UsageError."""
    named = [n for n in (spin, colour) if n is not None]
    if spin not in (None, 0, 1, 2, 3) or colour not in (None, 0, 1, 2) or any(isinstance(n, bool) for n in named):
        raise UsageError(
            "quark source: no such component", expected="spin 0..3, colour 0..2", found=f"spin={spin}, colour={colour}"
        )  # fmt: skip
    spins = range(4) if spin is None else (spin,)
    colours = range(3) if colour is None else (colour,)
    return tuple((s, c) for s in spins for c in colours)


def _label(word: str, spin: int | None, colour: int | None) -> str:
    return word + ("" if spin is None else f" spin {spin}") + ("" if colour is None else f" colour {colour}")
