"""Operators on separate real and imaginary parts, for targets without complex numbers.

A complex vector v is the real vector (Re v, Im v) of twice the colours, a link U the real matrix [[Re U,-Im U],[Im U,Re U]]; this
map keeps products, and turns adjoints into transposes. So one operator text serves both forms, with as many multiplications.
"""

from __future__ import annotations

import torch
from torch import nn

from lqcd_aot.core.checks import require_same
from lqcd_aot.dirac.clover_schur import CloverSchur
from lqcd_aot.dirac.wilson import LatticeOperator
from lqcd_runtime.errors import UsageError

FORMS = ("forward", "dagger", "normal")


class SplitForm(nn.Module):
    """A module (psi_re, psi_im, U_re, U_im) -> (re, im) that applies `operator` with real arithmetic only.

    psi_* [..., T,Z,Y,X,4,Nc] and U_* [T,Z,Y,X,4,Nc,Nc] share one real dtype (bfloat16 and float16 too). form: forward, dagger or
    normal. Errors: UsageError for complex or unfitting parts, or an operator whose diagonal must be inverted (CloverSchur).
    """

    def __init__(self, operator: LatticeOperator, form: str = "forward") -> None:
        super().__init__()
        if form not in FORMS:
            raise UsageError(f"form {form!r}: is not known", expected=", ".join(FORMS), found=form)
        if isinstance(operator, CloverSchur):
            raise UsageError(
                "CloverSchur: has no split form, its blocks are inverted in complex arithmetic",
                hint="WilsonSchur or CloverWilsonDirac",
            )
        self.operator, self.form = operator, form

    def forward(
        self, psi_re: torch.Tensor, psi_im: torch.Tensor, U_re: torch.Tensor, U_im: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(Re, Im) of the operator applied to psi_re + i psi_im."""
        _require_parts(psi_re, psi_im, U_re, U_im)
        psi, links = torch.cat([psi_re, psi_im], dim=-1), real_links(U_re, U_im)
        result = self.operator.act_in_form(psi, links, self.form)
        nc = psi_re.shape[-1]
        return result[..., :nc], result[..., nc:]


def real_links(re: torch.Tensor, im: torch.Tensor) -> torch.Tensor:
    """[[Re,-Im],[Im,Re]]: real tensor [..., 2Nc, 2Nc]."""
    return torch.cat([torch.cat([re, -im], dim=-1), torch.cat([im, re], dim=-1)], dim=-2)


def _require_parts(psi_re: torch.Tensor, psi_im: torch.Tensor, u_re: torch.Tensor, u_im: torch.Tensor) -> None:
    for name, a, b in (("spinor parts", psi_re, psi_im), ("link parts", u_re, u_im), ("spinor and links", psi_re, u_re)):
        require_same(a, b, name)
    if not psi_re.is_floating_point():
        raise UsageError("split form: takes real tensors", expected="a real floating dtype", found=psi_re.dtype)
    site = tuple(u_re.shape[:4])
    fits = psi_re.shape == psi_im.shape and u_re.shape == u_im.shape and len(u_re.shape) == 7
    if (
        not fits
        or tuple(psi_re.shape[-6:]) != (*site, 4, u_re.shape[-1])
        or u_re.shape[-1] != u_re.shape[-2]
        or u_re.shape[4] != 4
    ):
        raise UsageError(
            "split form: the parts do not fit each other",
            expected="psi_* [...,T,Z,Y,X,4,Nc], U_* [T,Z,Y,X,4,Nc,Nc]",
            found=f"{list(psi_re.shape)}, {list(psi_im.shape)}, {list(u_re.shape)}, {list(u_im.shape)}",
        )
