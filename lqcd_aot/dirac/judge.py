"""From an operator word to its complex128 result: the judge of every artifact of kind dirac.

One function. The templates of the CPU target derive the same formulas independently; a witness compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from lqcd_aot.dirac.clover import CloverWilsonDirac
from lqcd_aot.dirac.clover_schur import CloverSchur
from lqcd_aot.dirac.even_odd import WilsonSchur
from lqcd_aot.dirac.options import Anisotropy
from lqcd_aot.dirac.twisted import TwistedMassDirac
from lqcd_aot.dirac.wilson import LatticeOperator, WilsonDirac, WilsonDslash
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import OPERATORS, kind_of

MODULES: dict[str, Any] = {
    "wilson_hop": lambda v, o: WilsonDslash(**o),
    "wilson": lambda v, o: WilsonDirac(v["mass"], **o),
    "clover": lambda v, o: CloverWilsonDirac(v["mass"], v["csw"], **o),
    "twisted": lambda v, o: TwistedMassDirac(v["mass"], v["mu"], **o),
    "wilson_schur": lambda v, o: WilsonSchur(v["mass"], **o),
    "clover_schur": lambda v, o: CloverSchur(v["mass"], v["csw"], **o),
}


def family_and_form(operator: str) -> tuple[str, str]:
    """ "clover_schur_dagger" -> ("clover_schur", "dagger"); form is one of forward, dagger, normal.

    Errors: UsageError for a word that is no operator of kind dirac.
    """
    if kind_of(operator) != "dirac":
        words = ", ".join(word for word, entry in OPERATORS.items() if entry["kind"] == "dirac")
        raise UsageError(f"operator {operator}: is no Dirac operator", expected=words, found=kind_of(operator))
    for form in ("dagger", "normal"):
        if operator.endswith("_" + form):
            return operator[: -len(form) - 1], form
    return operator, "forward"


def module_for(operator: str, *, mass: float = 0.0, csw: float = 0.0, mu: float = 0.0, **options: Any) -> LatticeOperator:
    """The torch module of an operator word's family; options are those of LatticeOperator."""
    module: LatticeOperator = MODULES[family_and_form(operator)[0]]({"mass": mass, "csw": csw, "mu": mu}, options)
    return module


def apply(
    operator: str,
    psi: Any,
    U: Any,
    *,
    mass: float = 0.0,
    csw: float = 0.0,
    mu: float = 0.0,
    phases: Sequence[complex] | None = None,
    anisotropy: Anisotropy = None,
) -> torch.Tensor:
    """The operator on psi [..., T,Z,Y,X,4,Nc] with links [T,Z,Y,X,4,Nc,Nc], evaluated in complex128: a new tensor like psi.

    psi, U: torch tensors or numpy arrays. Inputs an operator does not have (csw of `wilson`, say) are not read: the caller passes
    one set of scalars for all words. Errors: UsageError for an unknown word or fields that do not fit.
    """
    module = module_for(operator, mass=mass, csw=csw, mu=mu, phases=phases, anisotropy=anisotropy)
    form = family_and_form(operator)[1]
    result: torch.Tensor = getattr(module, form)(_double(psi), _double(U))
    return result


def _double(field: Any) -> torch.Tensor:
    return torch.as_tensor(field).to(torch.complex128)
