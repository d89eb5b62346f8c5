"""From a torch operator module to the operator word of its artifact and the numbers the artifact takes.

Owns the table of classes. Nothing of a module reaches a key but its class: mass, csw, mu, boundary phases and anisotropy are
run-time inputs, so one artifact serves every mass. A subclass is refused: what it changed would be lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.dirac import (
    CloverSchur,
    CloverWilsonDirac,
    EvenOddWilsonDslash,
    TwistedMassDirac,
    WilsonDirac,
    WilsonDslash,
    WilsonSchur,
)
from lqcd_aot.dirac.options import ISOTROPIC
from lqcd_runtime.errors import UsageError
from lqcd_runtime.inputs import resolve

if TYPE_CHECKING:
    from lqcd_aot.dirac.wilson import LatticeOperator
    from lqcd_runtime.inputs import Inputs

# class: (operator word, attributes that are run-time inputs)
TABLE: dict[type, tuple[str, tuple[str, ...]]] = {
    WilsonDslash: ("wilson_hop", ()),
    EvenOddWilsonDslash: ("wilson_hop", ()),
    WilsonDirac: ("wilson", ("mass",)),
    CloverWilsonDirac: ("clover", ("mass", "csw")),
    TwistedMassDirac: ("twisted", ("mass", "mu")),
    WilsonSchur: ("wilson_schur", ("mass",)),
    CloverSchur: ("clover_schur", ("mass", "csw")),
}
FORMS = ("forward", "dagger", "normal")


class Meaning(NamedTuple):
    """operator: a word of OPERATORS; inputs: what the module holds now."""

    operator: str
    inputs: Inputs


def meaning(module: Any, form: str = "forward") -> Meaning:
    """Operator word and inputs of a module. form: forward, dagger or normal.

    Errors: UsageError for a class that has no artifact, an unknown form, or the hop's own adjoint, which has none either.
    """
    word, names = _entry(module)
    if form not in FORMS:
        raise UsageError(f"form {form!r}: is not known", expected=", ".join(FORMS), found=form)
    if form != "forward":
        if word == "wilson_hop":
            raise UsageError(f"{type(module).__name__}: its {form} has no artifact", expected="form forward", found=form)
        word = f"{word}_{form}"
    if getattr(module, "clover_dtype", None) is not None:
        raise UsageError(
            "clover_dtype: an artifact computes the clover term in its own dtype", expected="clover_dtype=None",
            found=module.clover_dtype, hint='NeuronCompiler(dtype="float64") on the CPU engine',
        )  # fmt: skip
    return Meaning(word, _inputs(word, module, {name: getattr(module, name) for name in names}))


def hop_of(module: Any) -> Meaning:
    """The hop inside a module: what joins even and odd sites. Errors: UsageError for a class that has no artifact."""
    _entry(module)
    return Meaning("wilson_hop", _inputs("wilson_hop", module, {}))


def _entry(module: Any) -> tuple[str, tuple[str, ...]]:
    found = TABLE.get(type(module))
    if found is None:
        raise UsageError(
            f"module {type(module).__name__}: has no operator word",
            expected=", ".join(known.__name__ for known in TABLE),
            found=f"{type(module).__module__}.{type(module).__name__}",
        )
    return found


def _inputs(word: str, module: LatticeOperator, scalars: dict[str, float]) -> Inputs:
    # The module has resolved xi0 and nu to their ratio already, and nothing else of them acts.
    anisotropy = None if tuple(module.scales) == ISOTROPIC else (1.0, module.scales[1])
    return resolve(word, phases=module.phases, anisotropy=anisotropy, **scalars)  # type: ignore[arg-type]
