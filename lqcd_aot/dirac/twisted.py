"""Twisted mass: M_tm = M + i mu g5, for one flavour of the degenerate doublet (the other has -mu)."""

from __future__ import annotations

from typing import Any

import torch

from lqcd_aot.core.shift import times
from lqcd_aot.dirac.gamma import apply_gamma5
from lqcd_aot.dirac.options import finite
from lqcd_aot.dirac.wilson import WilsonDirac


class TwistedMassDirac(WilsonDirac):
    """M + i mu g5 with M of WilsonDirac; its adjoint is M^dag - i mu g5, and g5 M_tm(mu) g5 = M_tm(-mu)^dag.

    mass (or kappa=) and mu are real; the other keywords are those of WilsonDirac.
    """

    def __init__(self, mass: float | None = None, mu: float = 0.0, **options: Any) -> None:
        super().__init__(mass, **options)
        self.mu = finite(mu, "mu")

    def act(self, psi: torch.Tensor, links: torch.Tensor, dagger: bool, prepared: Any) -> torch.Tensor:
        twist = apply_gamma5(psi)
        # `times` wants the colour axis next to last; one column makes it so.
        twist = times(twist.unsqueeze(-1), -1j * self.mu if dagger else 1j * self.mu).squeeze(-1)
        return super().act(psi, links, dagger, prepared) + twist

    def extra_repr(self) -> str:
        return f"mu={self.mu}, {super().extra_repr()}"
