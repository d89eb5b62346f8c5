"""What the tests of the ctypes engine run: small programs for the double of libnrt, engines and artifacts over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lqcd_runtime.engines.neff_artifact import NeffArtifact
from lqcd_runtime.engines.neuron import NeuronEngine
from lqcd_runtime.engines.nrt import Session
from lqcd_runtime.signature import Spec
from tests.doubles.libnrt import Double, binding_of, cores, double_neff, neff_entry

SPEC = Spec("wilson_hop", "4x4x4x4", "float32")
N = 64
AXPY = binding_of([("psi", [N], "input"), ("links", [N], "resident"), ("diagonal", [], "scalar")], [("out", [N], "output")])
AXPY_OPS = ("axpy diagonal psi links out",)
NUMBERED_OPS = ("axpy input2 input0 input1 output0",)
CG = binding_of(
    [("x", [N], "state"), ("links", [N], "resident"), ("stop", [], "scalar")], [("x", [N], "state"), ("steps", [], "output")]
)
CG_OPS = ("axpy stop x links x", "identity stop steps")
# Whole numbers, so that the answer is exact however the double multiplies and adds.
PSI, LINKS = np.arange(N, dtype=np.float32), np.arange(N, dtype=np.float32)[::-1].copy()


def numbered(_: str, number: int, usage: int) -> str:
    return f"{('input', 'output')[usage]}{number}"


def engine_of(double: Double, **machine: Any) -> NeuronEngine:
    return NeuronEngine(Session(double.library), cores(**machine))


def artifact_of(engine: Any, binding: dict[str, Any] = AXPY, ops: tuple[str, ...] = AXPY_OPS, **options: Any) -> NeffArtifact:
    code = double_neff(binding, ops, **options)
    return NeffArtifact(engine, code, neff_entry(SPEC, code, binding))


def inputs_of(a: float = 3.0) -> dict[str, np.ndarray]:
    return {"psi": PSI, "diagonal": np.asarray(a, np.float32)}


def assert_clean(double: Double, engine: NeuronEngine) -> None:
    engine.close()
    assert double.report() == ""
    assert double.alive() == 0
