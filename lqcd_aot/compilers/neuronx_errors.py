"""Error codes of neuronx-cc: the class of a failure and what a user can do about it.

Owns the table of documented codes (NCC_E...: the program or its options; NCC_I...: the compiler itself) and the classification.
A code of the first kind is a verdict on this program by this compiler, and sticks; everything else may be tried again.
Source: error-code pages of the Neuron SDK; exit status 70 without a code under many parallel compiles is aws-neuron-sdk#1369.
"""

from __future__ import annotations

import re

from lqcd_aot.compilers.failure import classify
from lqcd_aot.compilers.process import Ended

_CODE = re.compile(r"\b(NCC_[A-Z]{4}\d{3})\b|\[(NCC_[A-Z]{3,5}\d{2,4}|[A-Z]{3,4}\d{3})\]")
_SEGMENTATION = (-11, 139)
EXIT_ERROR = 70

_SMALLER = "cut the lattice into more slabs (a larger `shards`) or take fewer right-hand sides (a smaller `batch`)"
_INTERNAL = "an internal error of the compiler: build again; if it stays, take another compiler release, `fused` or `shards`"
_CRASHED = "the compiler crashed: build again; if it stays, take another compiler release"
_INTEGERS = "our programs hold no such integers: report this with `lqcd-aot doctor` and the log"
_PROGRAM = "this program should never hold that: report it with `lqcd-aot doctor` and the log"
ADVICE = {
    "NCC_EARG001": "the target does not have that logical-core configuration",
    "NCC_EBVF030": f"too many instructions: {_SMALLER}",
    "NCC_EVRF007": f"too many instructions: {_SMALLER}",
    "NCC_EXTP004": f"too many instructions: {_SMALLER}",
    "NCC_EOOM001": f"needs more device memory than there is: {_SMALLER}",
    "NCC_EOOM002": f"needs more device memory than there is: {_SMALLER}",
    "NCC_EVRF009": f"needs more device memory than there is: {_SMALLER}",
    "NCC_EXSP001": f"needs more device memory than there is: {_SMALLER}",
    "NCC_EHCA005": _PROGRAM,
    "NCC_EVRF015": _PROGRAM,
    "NCC_EMOD025": _PROGRAM,
    "NCC_ESFH002": _INTEGERS,
    "NCC_ESPP004": "the target cannot compute in this dtype: float32 and bfloat16 are what these programs use",
    "NCC_EUOC002": "the compiler lacks an operator of this program: take a newer compiler",
    "NCC_EVRF001": "the compiler lacks an operator of this program: take a newer compiler",
    "NCC_EVRF004": _PROGRAM,
    "NCC_EVRF022": _INTEGERS,
    "NCC_EVRF031": _PROGRAM,
    "NCC_EVRF056": _PROGRAM,
    "NCC_EVRF035": _INTEGERS,
    "NCC_EVRF060": _INTEGERS,
    "NCC_EVRF061": _INTEGERS,
    "NCC_EVRF062": _INTEGERS,
    "NCC_EVRF063": _INTEGERS,
    "NCC_EVRF064": "the compiler's verifier refuses the HLO: report it with `lqcd-aot doctor` and the log",
}


def code_of(log: str) -> str | None:
    """The first error code in a log ("NCC_EVRF007", of older compilers "XTP002"), or None."""
    found = _CODE.search(log)
    return next(group for group in found.groups() if group) if found else None


def classify_neuronx(ended: Ended) -> str | None:
    """The class of failure, or None for success."""
    general = classify(ended)
    if general in (None, "interrupted", "timeout", "resource"):
        return general
    code = code_of(ended.log)
    if code is not None:
        return "deterministic" if code.startswith("NCC_E") else "unknown"
    if ended.returncode == EXIT_ERROR:
        return "resource"  # said nothing: seen where too many compiles ran at once, so it is tried again alone
    return "unknown" if ended.returncode in _SEGMENTATION else general


def advice(ended: Ended) -> str | None:
    """What to do about a failure, by its code; None where the code says nothing."""
    code = code_of(ended.log)
    if code is None:
        return _CRASHED if ended.returncode in _SEGMENTATION else None
    if code in ADVICE:
        return f"{code}: {ADVICE[code]}"
    return f"{code}: see its page in AWS's list of compiler error codes" if code.startswith("NCC_E") else f"{code}: {_INTERNAL}"
