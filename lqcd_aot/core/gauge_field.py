"""`GaugeField`: SU(Nc) gauge links on a lattice.

    U[T,Z,Y,X,mu,a,b], mu: 0=T 1=Z 2=Y 3=X; U_mu(x) joins x to x+mu. Periodic; boundary phases belong to the fermions.

Owns making, moving, transforming, loading and saving links. Knows nothing of file formats (lqcd_runtime.gauge_io does), nothing
of gauge observables.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from lqcd_aot.core.checks import require_complex_dtype, require_same, require_shape
from lqcd_aot.core.lattice import LatticeGeometry
from lqcd_aot.core.shift import shifted
from lqcd_aot.core.su_n import deviation, project_su_n, random_su_n
from lqcd_runtime.errors import UsageError

Device = torch.device | str | None


class GaugeField:
    """Gauge links `tensor` [T,Z,Y,X,4,Nc,Nc], complex64 or complex128, on the lattice `geom`.

    The tensor is held, not copied. Errors: UsageError (a ValueError) for a wrong shape or dtype.
    """

    def __init__(self, tensor: torch.Tensor, geom: LatticeGeometry | None = None) -> None:
        geom = geom if geom is not None else LatticeGeometry.of_links(tuple(tensor.shape))
        require_shape(tensor, geom.gauge_shape, "links")
        require_complex_dtype(tensor.dtype, "links")
        self._tensor, self._geom = tensor, geom

    # ---- making ----------------------------------------------------------------------------------------------------

    @classmethod
    def cold(cls, geom: LatticeGeometry, dtype: torch.dtype = torch.complex64, device: Device = None) -> GaugeField:
        """Every link is the identity: the free field."""
        require_complex_dtype(dtype, "links")
        return cls(torch.eye(geom.nc, dtype=dtype, device=device).expand(geom.gauge_shape).contiguous(), geom)

    @classmethod
    def random(
        cls,
        geom: LatticeGeometry,
        dtype: torch.dtype = torch.complex64,
        device: Device = None,
        seed: int | None = None,
    ) -> GaugeField:
        """Every link drawn from the Haar measure of SU(Nc), det = 1. The same seed gives the same links in every dtype."""
        require_complex_dtype(dtype, "links")
        return cls(random_su_n((*geom.shape, 4), geom.nc, seed=seed, dtype=dtype, device=device), geom)

    @classmethod
    def heatbath(cls, geom: LatticeGeometry, beta: float, sweeps: int, *, seed: int, **options: Any) -> GaugeField:
        """A field thermalised under the Wilson gauge action at `beta`. Options: see lqcd_aot.core.heatbath.heatbath."""
        from lqcd_aot.core.heatbath import heatbath

        return heatbath(geom, beta, sweeps, seed=seed, **options)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], dtype: torch.dtype = torch.complex128, device: Device = None,
        boundary: str | None = None,
    ) -> GaugeField:  # fmt: skip
        """Links from a file whose format is found by its content; checksum, plaquette and unitarity are verified.

        boundary: as lqcd_runtime.load_gauge. Errors: GaugeFileError for a file that must not be used; UsageError for an unknown
        boundary. Source: lqcd_runtime.load_gauge.
        """
        import lqcd_runtime

        require_complex_dtype(dtype, "links")
        links = torch.from_numpy(lqcd_runtime.load_gauge(os.fspath(path), boundary=boundary).links.copy())
        return cls(links.to(dtype=dtype, device=device))

    def save(self, path: str | os.PathLike[str], format: str = "ildg") -> None:
        """Write the links in one of the runtime's formats. Errors: UsageError for a format it does not write."""
        import lqcd_runtime

        lqcd_runtime.write_gauge(os.fspath(path), self._tensor.detach().cpu().resolve_conj().contiguous().numpy(), format=format)

    # ---- attributes ------------------------------------------------------------------------------------------------

    @property
    def tensor(self) -> torch.Tensor:
        """The links [T,Z,Y,X,4,Nc,Nc]."""
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

    # ---- transformations, each a new field -------------------------------------------------------------------------

    def to(self, device: Device = None, dtype: torch.dtype | None = None) -> GaugeField:
        """A copy on another device or in another complex dtype."""
        return GaugeField(self._tensor.to(device=device or self.device, dtype=dtype or self.dtype), self._geom)

    def dagger(self) -> GaugeField:
        """U^dag link by link (not shifted)."""
        return GaugeField(self._tensor.mH.resolve_conj().contiguous(), self._geom)

    def unitarize(self) -> GaugeField:
        """Every link replaced by the SU(Nc) matrix next to it. Errors: UsageError for singular or non-finite links."""
        return GaugeField(project_su_n(self._tensor), self._geom)

    def shift(self, mu: int, forward: bool = True) -> GaugeField:
        """The field V_nu(x) = U_nu(x+mu), or U_nu(x-mu) with forward=False. mu: 0=T 1=Z 2=Y 3=X."""
        return GaugeField(shifted(self._tensor, direction(mu), 1 if forward else -1), self._geom)

    def link(self, mu: int) -> torch.Tensor:
        """The links in direction mu: a view [T,Z,Y,X,Nc,Nc]."""
        return self._tensor[..., direction(mu), :, :]

    def gauge_transform(self, g: torch.Tensor) -> GaugeField:
        """U_mu(x) -> g(x) U_mu(x) g(x+mu)^dag with g [T,Z,Y,X,Nc,Nc] in SU(Nc) (not checked: any g acts by this formula)."""
        require_shape(g, (*self._geom.shape, self._geom.nc, self._geom.nc), "gauge transformation")
        require_same(g, self._tensor, "gauge transformation and links")
        links = [g @ self.link(mu) @ shifted(g, mu, 1).mH for mu in range(4)]
        return GaugeField(torch.stack(links, dim=4), self._geom)

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def norm2(self) -> float:
        """Sum of |U_ab|^2 over all links: 4 V Nc for unitary links."""
        return float(torch.view_as_real(self._tensor.resolve_conj()).to(torch.float64).square().sum())

    def deviation(self) -> tuple[float, float]:
        """(max |U U^dag - 1|, max |det U - 1|): how far the links are from SU(Nc)."""
        return deviation(self._tensor)

    def require_group(self, tolerance: float = 1e-5) -> GaugeField:
        """This field, if its links are SU(Nc) to `tolerance`. Errors: UsageError with the deviation found."""
        unitarity, determinant = self.deviation()
        if not max(unitarity, determinant) <= tolerance:  # also true for NaN
            raise UsageError(
                f"links: are not in SU({self._geom.nc})",
                expected=f"|U U^dag - 1| and |det U - 1| <= {tolerance:g}",
                found=f"{unitarity:.2e} and {determinant:.2e}",
                hint=".unitarize()",
            )
        return self

    def __repr__(self) -> str:
        return f"GaugeField({self._geom!r}, dtype={self.dtype}, device={self.device})"


def direction(mu: int) -> int:
    """mu if it is a direction. Errors: UsageError."""
    if mu not in (0, 1, 2, 3):
        raise UsageError(f"direction {mu!r}: does not exist", expected="0=T, 1=Z, 2=Y, 3=X", found=mu)
    return mu
