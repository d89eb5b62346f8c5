"""The nrtpy backend against a double made from its documentation; and PyPI's placeholder, which must not be taken for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lqcd_runtime.engines import neuron as neuron_module
from lqcd_runtime.engines.neff_artifact import NeffArtifact, Resident
from lqcd_runtime.engines.nrt_status import NeuronError
from lqcd_runtime.engines.nrtpy_backend import NrtpyEngine, importable
from lqcd_runtime.errors import EngineError
from lqcd_runtime.signature import Spec
from tests.doubles import nrtpy
from tests.doubles.libnrt import binding_of, cores, double_neff, neff_entry

N = 16
SPEC = Spec("wilson_hop", "4x4x4x4", "float32")
BINDING = binding_of([("psi", [N], "input"), ("links", [N], "resident"), ("diagonal", [], "scalar")], [("out", [N], "output")])
SIZES = ({"input0": 4 * N, "input1": 4 * N, "input2": 4}, {"output0": 4 * N})
PSI = np.arange(N, dtype=np.float32)
INPUTS = {"psi": PSI, "diagonal": np.asarray(3, np.float32)}


def _axpy(code: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    a, x, y = (inputs[name].view(np.float32) for name in ("input2", "input0", "input1"))
    return {"output0": a * x + y}


def _module(sizes: tuple[dict[str, int], dict[str, int]] = SIZES) -> Any:
    return nrtpy.module(_axpy, sizes)


def _artifact(engine: Any, **options: Any) -> NeffArtifact:
    code = double_neff(BINDING, [], **options)
    return NeffArtifact(engine, code, neff_entry(SPEC, code, BINDING))


def test_data_flows_and_residents_are_written_once_per_core() -> None:
    module = _module()
    engine = NrtpyEngine(module, cores(), "2.34.10")
    artifact, resident = _artifact(engine), Resident(engine, {"links": PSI[::-1].copy()})
    for core in (0, 0, 3):
        assert np.array_equal(artifact.run(INPUTS, resident, core=core)["out"], 3 * PSI + PSI[::-1])
    # Core 0: links, psi twice, the number once; core 3: links, psi, the number.
    assert module.counts == {"load": 2, "upload": 2 * 4, "write": 4 + 3, "run": 3, "reset": 0}
    artifact.close()
    with pytest.raises(EngineError, match="was closed"):
        artifact.run(INPUTS, resident)
    engine.close()
    assert module.counts["reset"] == 1


def test_its_exceptions_carry_the_status() -> None:
    module = _module()
    engine = NrtpyEngine(module, cores(), "2.34.10")
    for what, call in (("load", "NrtpyModel.load_from_neff"), ("upload", "NrtpyTensor.from_numpy"), ("run", "NrtpyModel")):
        module.fail = (what, nrtpy.NrtError("status 9", 9))
        with pytest.raises(NeuronError, match="no NeuronCore is free") as caught:
            _artifact(engine).run(INPUTS, Resident(engine, {"links": PSI}))
        assert (caught.value.call, caught.value.status) == (call, 9)
    module.fail = ("load", nrtpy.NrtpyError("no status"))
    with pytest.raises(NeuronError) as caught:
        _artifact(engine).load()
    assert caught.value.status is None


def test_refusals_come_before_it_is_asked() -> None:
    module = _module()
    engine = NrtpyEngine(module, cores(), "2.33.1")
    with pytest.raises(EngineError, match=r"needs runtime 2\.34\.10\.0, this machine has 2\.33\.1"):
        _artifact(engine).load()
    with pytest.raises(EngineError, match="this machine has no NeuronCore"):
        NrtpyEngine(module, [], "2.34.10")
    with pytest.raises(EngineError, match="do not go together"):
        NrtpyEngine(module, cores(driver="2.26.0.0"), "2.34.10")
    assert module.counts["load"] == 0


def test_other_tensors_than_the_bindings_are_refused() -> None:
    engine = NrtpyEngine(_module(({"a": 4 * N, "b": 4 * N, "c": 4}, SIZES[1])), cores(), "2.34.10")
    with pytest.raises(EngineError, match="are not those of its binding"):
        _artifact(engine).load()


def test_the_placeholder_of_that_name_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for text in (
        'raise ImportError("WRONG PACKAGE. Please install the package from Neuron Repository")',
        "",
        "import absent_native_part",
    ):
        (tmp_path / "nrtpy.py").write_text(text)
        monkeypatch.delitem(sys.modules, "nrtpy", raising=False)
        assert importable() is None
    module = _module()
    monkeypatch.setitem(sys.modules, "nrtpy", module)
    assert importable() is module
    monkeypatch.setattr(neuron_module, "_engine", None)
    with pytest.raises(EngineError, match="this machine has no NeuronCore"):
        neuron_module.this_engine()
