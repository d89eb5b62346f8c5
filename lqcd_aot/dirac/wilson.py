"""Wilson fermions: `WilsonDslash` (the hop) and `WilsonDirac` (M, M^dag, M^dag M) as torch modules.

They are the meaning of the operator words wilson_hop, wilson, wilson_dagger, wilson_normal: artifacts are judged by them. Every
module takes (psi, U): tensors [..., T,Z,Y,X,4,Nc] and [T,Z,Y,X,4,Nc,Nc], or the field classes; the result is of psi's kind.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import nn

from lqcd_aot.core.checks import require_pair
from lqcd_aot.core.gauge_field import GaugeField
from lqcd_aot.core.spinor_field import ColorSpinorField
from lqcd_aot.dirac.options import Anisotropy, resolve_anisotropy, resolve_mass, resolve_phases
from lqcd_aot.dirac.stencil import hop

Spinor = TypeVar("Spinor", torch.Tensor, ColorSpinorField)
Links = torch.Tensor | GaugeField


def link_tensor(U: Links) -> torch.Tensor:
    """The tensor of a GaugeField, or the tensor itself."""
    return U.tensor if isinstance(U, GaugeField) else U


class LatticeOperator(nn.Module):
    """What all operators share: checked arguments, boundary phases and anisotropy, and the way from M and M^dag to M^dag M.

    nc, dtype: where given, fields with other colours or of another dtype are refused; None accepts any.
    A subclass says what it prepares from the links (`prepare_links`) and how it acts (`act`), on tensors whose shapes have been
    checked; complex, or real in the split representation (dirac/split.py).
    """

    def __init__(
        self,
        nc: int | None = None,
        dtype: torch.dtype | None = None,
        *,
        t_boundary: int = 1,
        phases: Sequence[complex] | None = None,
        anisotropy: Anisotropy = None,
    ) -> None:
        super().__init__()
        self.nc, self.dtype = nc, dtype
        self.phases = resolve_phases(t_boundary, phases)
        self.scales, self.diagonal_constant = resolve_anisotropy(anisotropy)
        self._kept: tuple[weakref.ref[torch.Tensor], int, Any] | None = None

    def forward(self, psi: Spinor, U: Links) -> Spinor:
        """M psi: shape, dtype and kind of psi. Errors: UsageError for fields that do not fit each other or the operator."""
        return self._checked(psi, U, "forward")

    def dagger(self, psi: Spinor, U: Links) -> Spinor:
        """M^dag psi; otherwise as `forward`."""
        return self._checked(psi, U, "dagger")

    def normal(self, psi: Spinor, U: Links) -> Spinor:
        """M^dag M psi; otherwise as `forward`."""
        return self._checked(psi, U, "normal")

    def set_gauge(self, U: Links) -> None:
        """Prepare what depends on these links alone (clover term, inverse blocks) once, for many calls with this very tensor.

        Any other tensor, or this one changed in place (torch's version counter tells), is prepared afresh in each call. Do not
        write to the links through numpy memory afterwards: torch cannot see that.
        """
        links = link_tensor(U)
        self._kept = (weakref.ref(links), links._version, self.prepare_links(links))

    def _checked(self, psi: Spinor, U: Links, form: str) -> Spinor:
        links = link_tensor(U)
        if isinstance(psi, ColorSpinorField):
            require_pair(psi.tensor, links, self.nc, self.dtype)
            return ColorSpinorField(self.act_in_form(psi.tensor, links, form), psi.geom)
        require_pair(psi, links, self.nc, self.dtype)
        return self.act_in_form(psi, links, form)

    def act_in_form(self, psi: torch.Tensor, links: torch.Tensor, form: str) -> torch.Tensor:
        """M, M^dag or M^dag M on tensors; form: forward, dagger, normal."""
        prepared = self._prepared(links)
        if form == "normal":
            psi = self.act(psi, links, False, prepared)
        return self.act(psi, links, form != "forward", prepared)

    def _prepared(self, links: torch.Tensor) -> Any:
        if self._kept is not None:
            owner, version, kept = self._kept
            if owner() is links and links._version == version:
                return kept
        return self.prepare_links(links)

    def prepare_links(self, links: torch.Tensor) -> Any:
        """What `act` needs beside the links themselves; nothing for the Wilson operators."""
        return None

    def _hop(self, psi: torch.Tensor, links: torch.Tensor, dagger: bool) -> torch.Tensor:
        return hop(psi, links, self.phases, self.scales, dagger)

    def act(self, psi: torch.Tensor, links: torch.Tensor, dagger: bool, prepared: Any) -> torch.Tensor:
        """The operator, or its adjoint, on tensors whose shapes have been checked."""
        return self._hop(psi, links, dagger)

    def extra_repr(self) -> str:
        return f"phases={self.phases}, scales={self.scales}"


class WilsonDslash(LatticeOperator):
    """The hop: -1/2 sum_mu s_mu [(1-g_mu) U_mu(x) psi(x+mu) + (1+g_mu) U_mu(x-mu)^dag psi(x-mu)].

    1320 floating point operations per site for Nc = 3. `dagger` is the adjoint, the hop with g -> -g.
    """


class WilsonDirac(LatticeOperator):
    """M = (4+m) + hop; with anisotropy the diagonal is m + 1 + 3 nu/xi0.

    mass or kappa = 1/(8+2m): exactly one. t_boundary, phases, anisotropy: see dirac/options.py.
    """

    def __init__(
        self,
        mass: float | None = None,
        nc: int | None = None,
        dtype: torch.dtype | None = None,
        *,
        kappa: float | None = None,
        t_boundary: int = 1,
        phases: Sequence[complex] | None = None,
        anisotropy: Anisotropy = None,
    ) -> None:
        super().__init__(nc, dtype, t_boundary=t_boundary, phases=phases, anisotropy=anisotropy)
        self.mass = resolve_mass(mass, kappa)

    @property
    def kappa(self) -> float:
        """1/(8+2m)."""
        return 1 / (8 + 2 * self.mass)

    @property
    def diagonal(self) -> float:
        """4+m, or m + 1 + 3 nu/xi0."""
        return self.mass + self.diagonal_constant

    def act(self, psi: torch.Tensor, links: torch.Tensor, dagger: bool, prepared: Any) -> torch.Tensor:
        return torch.add(self._hop(psi, links, dagger), psi, alpha=self.diagonal)

    def extra_repr(self) -> str:
        return f"mass={self.mass}, {super().extra_repr()}"
