"""`LatticeGeometry`: extents of the lattice, number of colours, and the array shapes that follow.

Owns the shapes. Knows nothing of tensors, dtypes or boundary conditions.
"""

from __future__ import annotations

from dataclasses import dataclass

from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import format_extents, parse_extents


@dataclass(frozen=True)
class LatticeGeometry:
    """A four-dimensional periodic lattice, axis order T, Z, Y, X.

    T, Z, Y, X: extents, each >= 2; nc: colours, >= 2; ns: spin components, always 4.
    Errors: UsageError for extents, colours or spins outside of that.
    """

    T: int
    Z: int
    Y: int
    X: int
    nc: int = 3
    ns: int = 4

    def __post_init__(self) -> None:
        for name in ("T", "Z", "Y", "X", "nc", "ns"):
            value = getattr(self, name)
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise UsageError(f"lattice: {name} is not an integer", expected="an integer", found=repr(value))
            object.__setattr__(self, name, int(value))
        parse_extents(self.shape)
        if self.nc < 2:
            raise UsageError(f"lattice {format_extents(self.shape)}: has no SU({self.nc})", expected="nc >= 2", found=self.nc)
        if self.ns != 4:
            raise UsageError(
                f"lattice {format_extents(self.shape)}: cannot hold spinors of {self.ns} components",
                expected="ns = 4 (DeGrand-Rossi spinors)",
                found=self.ns,
            )

    @classmethod
    def of_links(cls, shape: tuple[int, ...]) -> LatticeGeometry:
        """The geometry of a link array of shape [T,Z,Y,X,4,Nc,Nc]. Errors: UsageError for any other shape."""
        shape = tuple(shape)
        if len(shape) != 7 or shape[4] != 4 or shape[5] != shape[6]:
            raise UsageError("links: have the wrong shape", expected="[T,Z,Y,X,4,Nc,Nc]", found=list(shape))
        return cls(*shape[:4], nc=shape[5])

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(T, Z, Y, X)."""
        return (self.T, self.Z, self.Y, self.X)

    @property
    def volume(self) -> int:
        """Number of sites T Z Y X."""
        return self.T * self.spatial_volume

    @property
    def spatial_volume(self) -> int:
        """Number of sites of one time slice, Z Y X."""
        return self.Z * self.Y * self.X

    @property
    def gauge_shape(self) -> tuple[int, ...]:
        """Shape of the links: (T, Z, Y, X, 4, Nc, Nc)."""
        return (*self.shape, 4, self.nc, self.nc)

    @property
    def spinor_shape(self) -> tuple[int, ...]:
        """Shape of a spinor: (T, Z, Y, X, Ns, Nc)."""
        return (*self.shape, self.ns, self.nc)

    def __repr__(self) -> str:
        return f"LatticeGeometry(T={self.T}, Z={self.Z}, Y={self.Y}, X={self.X}, nc={self.nc}, ns={self.ns})"
