"""`ColorSpinorField`: a quark spinor field psi[T,Z,Y,X,spin,colour] in the DeGrand-Rossi basis.

Owns the quark sources and the linear algebra of one field. Knows nothing of operators or solvers.
"""

from __future__ import annotations

import torch

from lqcd_aot.blas import inner, norm, norm2
from lqcd_aot.core.checks import require_complex_dtype, require_same, require_shape
from lqcd_aot.core.gauge_field import Device
from lqcd_aot.core.lattice import LatticeGeometry
from lqcd_aot.core.su_n import fresh_seed
from lqcd_runtime import noise as counter_noise
from lqcd_runtime.errors import UsageError

NOISE_KINDS = ("z2", "z4", "gaussian")


class ColorSpinorField:
    """A spinor `tensor` [T,Z,Y,X,4,Nc], complex64 or complex128, on the lattice `geom`. Held, not copied.

    Errors: UsageError (a ValueError) for a wrong shape or dtype.
    """

    def __init__(self, tensor: torch.Tensor, geom: LatticeGeometry) -> None:
        require_shape(tensor, geom.spinor_shape, "spinor")
        require_complex_dtype(tensor.dtype, "spinor")
        self._tensor, self._geom = tensor, geom

    # ---- quark sources ---------------------------------------------------------------------------------------------

    @classmethod
    def zeros(cls, geom: LatticeGeometry, dtype: torch.dtype = torch.complex64, device: Device = None) -> ColorSpinorField:
        """The zero field."""
        require_complex_dtype(dtype, "spinor")
        return cls(torch.zeros(geom.spinor_shape, dtype=dtype, device=device), geom)

    @classmethod
    def gaussian(
        cls,
        geom: LatticeGeometry,
        dtype: torch.dtype = torch.complex64,
        device: Device = None,
        seed: int | None = None,
    ) -> ColorSpinorField:
        """Independent complex normal components, then scaled to |psi| = 1. The same seed gives the same field in every dtype."""
        psi = cls.noise(geom, "gaussian", seed=seed, dtype=torch.complex128).tensor
        require_complex_dtype(dtype, "spinor")
        return cls((psi / psi.norm()).to(dtype=dtype, device=device), geom)

    @classmethod
    def noise(
        cls,
        geom: LatticeGeometry,
        kind: str = "z4",
        *,
        seed: int | None = None,
        dtype: torch.dtype = torch.complex64,
        device: Device = None,
    ) -> ColorSpinorField:
        """Noise with <eta_i^* eta_j> = delta_ij: z2 in {1,-1}, z4 in {1,i,-1,-i}, gaussian with unit variance. Not normalised.

        The numbers are a pure function of (seed, kind, component), the same on every machine. Source: lqcd_runtime.noise.
        """
        require_complex_dtype(dtype, "spinor")
        if kind not in NOISE_KINDS:
            raise UsageError(f"noise {kind!r}: is not known", expected=", ".join(NOISE_KINDS), found=kind)
        key, count = fresh_seed() if seed is None else int(seed), 4 * geom.nc * geom.volume
        if kind == "gaussian":
            normal = torch.from_numpy(counter_noise.gaussian(key, 0, 2 * count).reshape(*geom.spinor_shape, 2))
            field = torch.view_as_complex(normal) / 2**0.5
        else:
            roots = counter_noise.z2 if kind == "z2" else counter_noise.z4
            field = torch.from_numpy(roots(key, 0, count).reshape(geom.spinor_shape))
        return cls(field.to(dtype=dtype, device=device), geom)

    @classmethod
    def point_source(
        cls,
        geom: LatticeGeometry,
        t: int,
        z: int,
        y: int,
        x: int,
        spin: int = 0,
        color: int = 0,
        dtype: torch.dtype = torch.complex64,
        device: Device = None,
    ) -> ColorSpinorField:
        """1 at one site, spin and colour; 0 elsewhere. Errors: UsageError for an index outside of the lattice."""
        psi = cls.zeros(geom, dtype, device)
        _require_index((t, z, y, x, spin, color), geom.spinor_shape)
        psi.tensor[t, z, y, x, spin, color] = 1
        return psi

    @classmethod
    def wall(
        cls,
        geom: LatticeGeometry,
        t: int,
        spin: int = 0,
        color: int = 0,
        dtype: torch.dtype = torch.complex64,
        device: Device = None,
    ) -> ColorSpinorField:
        """1 on every site of time slice t in one spin and colour; 0 elsewhere. Not gauge covariant: fix the gauge first."""
        psi = cls.zeros(geom, dtype, device)
        _require_index((t, 0, 0, 0, spin, color), geom.spinor_shape)
        psi.tensor[t, :, :, :, spin, color] = 1
        return psi

    # ---- attributes ------------------------------------------------------------------------------------------------

    @property
    def tensor(self) -> torch.Tensor:
        """The components [T,Z,Y,X,4,Nc]."""
        return self._tensor

    @property
    def geom(self) -> LatticeGeometry:
        return self._geom

    @property
    def dtype(self) -> torch.dtype:
        return self._tensor.dtype

    @property
    def device(self) -> torch.device:
        return self._tensor.device

    def to(self, device: Device = None, dtype: torch.dtype | None = None) -> ColorSpinorField:
        """A copy on another device or in another complex dtype."""
        return ColorSpinorField(self._tensor.to(device=device or self.device, dtype=dtype or self.dtype), self._geom)

    def gauge_transform(self, g: torch.Tensor) -> ColorSpinorField:
        """psi(x) -> g(x) psi(x) with g [T,Z,Y,X,Nc,Nc]."""
        require_shape(g, (*self._geom.shape, self._geom.nc, self._geom.nc), "gauge transformation")
        require_same(g, self._tensor, "gauge transformation and spinor")
        return ColorSpinorField((g.unsqueeze(-3) @ self._tensor.unsqueeze(-1)).squeeze(-1), self._geom)

    # ---- linear algebra --------------------------------------------------------------------------------------------

    def inner(self, other: ColorSpinorField) -> torch.Tensor:
        """<self|other> = sum conj(self) other: a complex scalar tensor."""
        self._require_fits(other)
        return inner(self._tensor, other._tensor)

    def norm2(self) -> torch.Tensor:
        """<self|self>: a real scalar tensor."""
        return norm2(self._tensor)

    def norm(self) -> torch.Tensor:
        """sqrt <self|self>: a real scalar tensor."""
        return norm(self._tensor)

    def __add__(self, other: ColorSpinorField) -> ColorSpinorField:
        self._require_fits(other)
        return ColorSpinorField(self._tensor + other._tensor, self._geom)

    def __sub__(self, other: ColorSpinorField) -> ColorSpinorField:
        self._require_fits(other)
        return ColorSpinorField(self._tensor - other._tensor, self._geom)

    def __neg__(self) -> ColorSpinorField:
        return ColorSpinorField(-self._tensor, self._geom)

    def __mul__(self, scalar: complex) -> ColorSpinorField:
        return ColorSpinorField(self._tensor * scalar, self._geom)

    __rmul__ = __mul__

    def _require_fits(self, other: ColorSpinorField) -> None:
        if not isinstance(other, ColorSpinorField):
            raise UsageError("spinor: meets what is no spinor", expected="a ColorSpinorField", found=type(other).__name__)
        require_shape(other._tensor, self._geom.spinor_shape, "second spinor")
        require_same(self._tensor, other._tensor, "spinors")

    def __repr__(self) -> str:
        return f"ColorSpinorField({self._geom!r}, dtype={self.dtype}, device={self.device})"


def _require_index(index: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Negative indices are refused: -1 as 'the last time slice' has hidden too many typing errors."""
    for name, i, n in zip(("t", "z", "y", "x", "spin", "color"), index, shape, strict=True):
        if not 0 <= i < n:
            raise UsageError(f"quark source: {name}={i} is outside of the lattice", expected=f"0 <= {name} < {n}", found=i)
