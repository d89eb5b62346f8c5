"""QUDA-like parameter classes and enums. Every attribute acts, or is refused with the reason when the object is made.

    gauge = GaugeParam(lattice_size=(8, 4, 4, 4), precision=Precision.FLOAT64)
    U = gauge.prepare(GaugeField.load("cfg.lime"))
    x, info = InvertParam(mass=0.1, tol=1e-10, precision=Precision.FLOAT64).solve(U, b, gauge)

Owns the mapping from these words to fields, operators and solvers. Values that name something this project does not have
(staggered quarks, half precision outside of an accelerator) exist, so that code written for lqcd-neuron imports, and are refused.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torch

from lqcd_aot.core import ColorSpinorField, GaugeField, LatticeGeometry
from lqcd_aot.dirac import CloverWilsonDirac, TwistedMassDirac, WilsonDirac
from lqcd_aot.dirac.options import finite, resolve_anisotropy, resolve_mass, resolve_phases
from lqcd_aot.neuron.param import NeuronCompileParam as NeuronCompileParam
from lqcd_aot.solvers import EigenInfo, Lanczos, SolveInfo, invert
from lqcd_runtime.errors import UsageError


class Precision(Enum):
    """Arithmetic of links, spinors and operators. The 16-bit ones have no complex type in torch and are refused here."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"

    @property
    def dtype(self) -> torch.dtype:
        """complex64 or complex128. Errors: UsageError for the 16-bit precisions."""
        if self not in (Precision.FLOAT32, Precision.FLOAT64):
            raise UsageError(
                f"precision {self.value}: has no complex arithmetic here", expected="FLOAT32 or FLOAT64", found=self.value
            )
        return torch.complex64 if self is Precision.FLOAT32 else torch.complex128


class DslashType(Enum):
    """Discretisation of the quarks."""

    WILSON = auto()
    CLOVER_WILSON = auto()
    TWISTED_MASS = auto()
    STAGGERED = auto()
    DOMAIN_WALL = auto()


class InverterType(Enum):
    """CG works on the normal equations, the others on M itself."""

    CG = "cg"
    BICGSTAB = "bicgstab"
    GCR = "gcr"


class TBoundary(Enum):
    """Sign of the fermions across the last time slice."""

    PERIODIC = 1
    ANTI_PERIODIC = -1


class LinkType(Enum):
    """SU3: links must be in SU(Nc). GENERAL: any matrices."""

    SU3 = auto()
    GENERAL = auto()


class ResidualType(Enum):
    """Meaning of `tol`: of |b - M x| / |b|, or of |b - M x|."""

    L2_RELATIVE = auto()
    L2_ABSOLUTE = auto()


def _refuse(what: str, reason: str, expected: str) -> None:
    raise UsageError(f"{what}: {reason}", expected=expected)


@dataclass(frozen=True)
class GaugeParam:
    """What a gauge field is, and how fermions see it.

    lattice_size (T,Z,Y,X) and nc: shape; precision: dtype; link_type: whether SU(Nc) is demanded; t_boundary: of the fermions;
    anisotropy: xi0 = a_s/a_t, spatial hops over xi0 (nu = 1); tadpole_coeff: only 1 (it belongs to staggered quarks).
    """

    lattice_size: tuple[int, int, int, int] = (4, 4, 4, 4)
    nc: int = 3
    precision: Precision = Precision.FLOAT32
    link_type: LinkType = LinkType.SU3
    t_boundary: TBoundary = TBoundary.ANTI_PERIODIC
    anisotropy: float = 1.0
    tadpole_coeff: float = 1.0

    def __post_init__(self) -> None:
        _ = self.geometry, self.precision.dtype
        resolve_phases(TBoundary(self.t_boundary).value)
        resolve_anisotropy(self.anisotropy)
        LinkType(self.link_type)
        if self.tadpole_coeff != 1.0:
            _refuse("tadpole_coeff", "acts on staggered quarks only, which this project does not have", "1.0")

    @property
    def geometry(self) -> LatticeGeometry:
        """The lattice."""
        return LatticeGeometry(*self.lattice_size, nc=self.nc)

    @property
    def volume(self) -> int:
        """Number of sites."""
        return self.geometry.volume

    def prepare(self, U: GaugeField) -> GaugeField:
        """U in this precision. Errors: UsageError where its shape is another, or its links leave SU(Nc) under LinkType.SU3."""
        if U.geom != self.geometry:
            raise UsageError("gauge field: has another lattice", expected=self.geometry, found=U.geom)
        if self.link_type is LinkType.SU3:
            U.require_group()
        return U.to(dtype=self.precision.dtype)

    def operator_options(self) -> dict[str, Any]:
        """Keywords of every operator class: nc, dtype, t_boundary, anisotropy."""
        return {
            "nc": self.nc,
            "dtype": self.precision.dtype,
            "t_boundary": TBoundary(self.t_boundary).value,
            "anisotropy": None if self.anisotropy == 1.0 else self.anisotropy,
        }


@dataclass(frozen=True)
class CloverParam:
    """csw; precision of the field strength, before it is rounded to the operator's (None: the same); compute_clover: True."""

    csw: float = 1.0
    precision: Precision | None = None
    compute_clover: bool = True

    def __post_init__(self) -> None:
        finite(self.csw, "csw")
        if self.precision is not None:
            _ = self.precision.dtype
        if not self.compute_clover:
            _refuse("compute_clover=False", "a clover term from elsewhere cannot be given", "True")


@dataclass(frozen=True)
class InvertParam:
    """A quark propagator solve.

    dslash_type, inv_type: operator and algorithm; mass or kappa = 1/(8+2m): see `bare_mass`;
    clover: with CLOVER_WILSON only; mu: with TWISTED_MASS only; tol, maxiter, residual_type: acceptance by the true residual;
    precision: of the operator; precision_sloppy: FLOAT32 under FLOAT64 solves by defect correction;
    verbosity: 0 silent, 1 a summary, 2 a line every 50 iterations too.
    """

    dslash_type: DslashType = DslashType.WILSON
    inv_type: InverterType = InverterType.CG
    mass: float | None = None
    kappa: float | None = None
    clover: CloverParam | None = None
    mu: float = 0.0
    tol: float = 1e-8
    maxiter: int = 1000
    precision: Precision = Precision.FLOAT32
    precision_sloppy: Precision | None = None
    verbosity: int = 0
    residual_type: ResidualType = ResidualType.L2_RELATIVE

    def __post_init__(self) -> None:
        _ = self.bare_mass
        if self.dslash_type in (DslashType.STAGGERED, DslashType.DOMAIN_WALL):
            _refuse(f"dslash_type {self.dslash_type.name}", "does not exist here", "WILSON, CLOVER_WILSON or TWISTED_MASS")
        if self.clover is not None and self.dslash_type is not DslashType.CLOVER_WILSON:
            _refuse("clover", f"has no meaning for {self.dslash_type.name}", "None, or dslash_type CLOVER_WILSON")
        if finite(self.mu, "mu") != 0 and self.dslash_type is not DslashType.TWISTED_MASS:
            _refuse("mu", f"has no meaning for {self.dslash_type.name}", "0.0, or dslash_type TWISTED_MASS")
        InverterType(self.inv_type), ResidualType(self.residual_type)
        if finite(self.tol, "tol") <= 0 or (self.tol >= 1 and self.residual_type is ResidualType.L2_RELATIVE):
            _refuse(f"tol {self.tol}", "is out of range", "0 < tol < 1 (relative), 0 < tol (absolute)")
        if self.maxiter < 1:
            _refuse(f"maxiter {self.maxiter}", "allows no iteration", ">= 1")
        if self.verbosity not in (0, 1, 2):
            _refuse(f"verbosity {self.verbosity}", "is not known", "0, 1 or 2")
        _ = self.precision.dtype, self.mixed

    @property
    def bare_mass(self) -> float:
        """From mass, or kappa, or both where they agree; 0.1 where neither is given. Errors: UsageError where they disagree."""
        if self.kappa is None:
            return resolve_mass(0.1 if self.mass is None else self.mass, None)
        mass = resolve_mass(None, self.kappa)
        if self.mass is not None and abs(mass - finite(self.mass, "mass")) > 1e-12:
            raise UsageError("mass and kappa: disagree", expected=f"mass = 1/(2 kappa) - 4 = {mass}", found=self.mass)
        return mass

    @property
    def mixed(self) -> bool:
        """Whether inner solves are of lower precision. Errors: UsageError for an impossible pair of precisions."""
        sloppy = self.precision if self.precision_sloppy is None else self.precision_sloppy
        if sloppy.dtype == torch.complex128 and self.precision is Precision.FLOAT32:
            _refuse("precision_sloppy float64", "is not below precision float32", "the same or a lower precision")
        return sloppy is not self.precision

    def make_operator(self, gauge: GaugeParam) -> WilsonDirac:
        """The operator module. With mixed precision it takes both precisions, else this one only."""
        if gauge.precision is not self.precision:
            raise UsageError("precision: differs between gauge field and solve", expected=self.precision, found=gauge.precision)
        options = gauge.operator_options()
        if self.mixed:
            options["dtype"] = None
        if self.dslash_type is DslashType.CLOVER_WILSON:
            clover = self.clover or CloverParam()
            clover_dtype = None if clover.precision is None else clover.precision.dtype
            return CloverWilsonDirac(self.bare_mass, clover.csw, clover_dtype=clover_dtype, **options)
        if self.dslash_type is DslashType.TWISTED_MASS:
            return TwistedMassDirac(self.bare_mass, self.mu, **options)
        return WilsonDirac(self.bare_mass, **options)

    def solve(self, U: GaugeField, b: ColorSpinorField, gauge: GaugeParam) -> tuple[ColorSpinorField, SolveInfo]:
        """(x, info) with M x = b, b taken to `precision`. Errors: UsageError as GaugeParam.prepare."""
        links, source = gauge.prepare(U), b.to(dtype=self.precision.dtype)
        size = float(source.norm())
        tol = self.tol
        if self.residual_type is ResidualType.L2_ABSOLUTE and size > 0:
            # An absolute bound above |b| is met by less than half a digit; the solvers want a relative one below 1.
            tol = min(self.tol / size, 0.5)
        x, info = invert(
            self.make_operator(gauge),
            links.tensor,
            source.tensor,
            method=InverterType(self.inv_type).value,
            tol=tol,
            maxiter=self.maxiter,
            mixed=self.mixed,
            observer=_observe if self.verbosity == 2 else None,
        )
        if self.verbosity:
            sys.stdout.write(f"{self.inv_type.value}: {info.prose}\n")
        return ColorSpinorField(x, source.geom), info


@dataclass(frozen=True)
class EigParam:
    """The n_ev lowest eigenpairs of M^dag M by thick-restart Lanczos: n_kr basis vectors, tol on the true relative residuals,
    at most maxiter restarts. The other attributes of an operator come from InvertParam."""

    n_ev: int = 16
    n_kr: int = 64
    tol: float = 1e-6
    maxiter: int = 500

    def __post_init__(self) -> None:
        Lanczos(self.n_ev, self.n_kr, self.tol, self.maxiter)

    def solve(
        self, U: GaugeField, gauge: GaugeParam, invert: InvertParam, seed: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor, EigenInfo]:
        """(eigenvalues [n_ev], eigenvectors [n_ev,T,Z,Y,X,4,Nc], info) from a Gaussian start. Errors: as GaugeParam.prepare."""
        links, operator = gauge.prepare(U), invert.make_operator(gauge)
        operator.set_gauge(links)
        start = ColorSpinorField.gaussian(gauge.geometry, dtype=links.dtype, seed=seed)
        lanczos = Lanczos(self.n_ev, self.n_kr, self.tol, self.maxiter)
        return lanczos.solve(lambda v: operator.normal(v, links.tensor), start.tensor)


def _observe(iteration: int, residuals: dict[int, float]) -> None:
    if iteration % 50 == 0 and residuals:
        sys.stdout.write(f"iteration {iteration:5d}  |r|/|b| = {max(residuals.values()):.3e}\n")
