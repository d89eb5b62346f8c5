"""The simulator engine: arrays in and out of jaxlib, bfloat16 bits, aliases, state, refusals. Programs of four instructions."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from lqcd_runtime.engines import sim as sim_module
from lqcd_runtime.engines.neff_artifact import NeffArtifact, Resident
from lqcd_runtime.engines.sim import SimEngine, SimProgram
from lqcd_runtime.errors import CorruptError, EngineError, UsageError
from lqcd_runtime.neff import write_sim
from lqcd_runtime.signature import Spec
from tests.doubles.libnrt import binding_of, neff_entry

hlo_library = pytest.importorskip("jaxlib._hlo")

N = 6
SPEC = Spec("wilson_hop", "4x4x4x4", "float32")
AXPY = binding_of([("psi", [N], "input"), ("links", [N], "resident"), ("diagonal", [], "scalar")], [("out", [N], "output")])
STEP = binding_of(
    [("x", [N], "state"), ("links", [N], "resident"), ("stop", [], "scalar")], [("x", [N], "state"), ("steps", [], "output")]
)
PSI, LINKS = np.arange(N, dtype=np.float32), np.linspace(1, 2, N, dtype=np.float32)


def _hlo(text: str) -> bytes:
    """HLO text -> HloModuleProto, by XLA itself."""
    made: bytes = hlo_library.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return made


F32 = np.float32
AXPY_HLO = _hlo("""HloModule axpy
ENTRY e {
  psi = f32[6] parameter(0)
  links = f32[6] parameter(1)
  diagonal = f32[] parameter(2)
  a = f32[6] broadcast(diagonal), dimensions={}
  m = f32[6] multiply(a, psi)
  s = f32[6] add(m, links)
  ROOT out = (f32[6]) tuple(s)
}""")
STEP_HLO = _hlo("""HloModule step, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  x = f32[6] parameter(0)
  links = f32[6] parameter(1)
  stop = f32[] parameter(2)
  a = f32[6] broadcast(stop), dimensions={}
  m = f32[6] multiply(a, x)
  s = f32[6] add(m, links)
  ROOT out = (f32[6], f32[]) tuple(s, stop)
}""")
TWICE_HLO = _hlo("""HloModule twice
ENTRY e {
  x = bf16[6] parameter(0)
  ROOT out = bf16[6] add(x, x)
}""")


def _artifact(hlo: bytes, binding: dict[str, Any]) -> NeffArtifact:
    code = write_sim(hlo, {})
    return NeffArtifact(SimEngine(), code, neff_entry(SPEC, code, binding, "sim", {"simulated": True}))


def test_a_program_runs_by_number_or_by_name() -> None:
    expected = np.float32(3) * PSI + LINKS
    by_number = SimProgram(AXPY_HLO).run({"p0": PSI, "p1": LINKS, "p2": np.float32(3)})
    by_name = SimProgram(AXPY_HLO, AXPY).run({"diagonal": np.float32(3), "psi": PSI, "links": LINKS})
    np.testing.assert_allclose(by_number["r0"], expected, rtol=2**-22)
    assert np.array_equal(by_name["out"], by_number["r0"])


def test_bfloat16_travels_as_bits() -> None:
    import ml_dtypes

    values = LINKS.astype(ml_dtypes.bfloat16)
    for given in (values, values.view(np.uint16)):
        out = SimProgram(TWICE_HLO).run({"p0": given})["r0"]
        assert out.dtype == np.uint16
        assert np.array_equal(out.view(ml_dtypes.bfloat16), values + values)


def test_memory_of_the_caller_is_never_written() -> None:
    program = SimProgram(STEP_HLO, STEP)
    x = PSI.copy()
    for given in (x, np.concatenate([x, x])[1:][:N], np.repeat(x, 2)[::2]):  # unaligned and strided too
        before = given.copy()
        program.run({"x": given, "links": LINKS, "stop": np.float32(2)})
        assert np.array_equal(given, before)
    x.flags.writeable = False
    assert np.array_equal(program.run({"x": x, "links": LINKS, "stop": np.float32(2)})["x"], 2 * PSI + LINKS)


def test_state_is_replaced_in_place() -> None:
    artifact = _artifact(STEP_HLO, STEP)
    resident = Resident(artifact.engine, {"links": LINKS})
    state, expected = artifact.begin({"x": PSI}), PSI
    for _ in range(3):
        assert artifact.step(state, {"stop": np.asarray(2, F32)}, resident) == {"steps": 2}
        expected = 2 * expected + LINKS
    assert np.array_equal(state.read("x"), expected)


def test_cores_share_one_compiled_program() -> None:
    artifact = _artifact(AXPY_HLO, AXPY)
    resident = Resident(artifact.engine, {"links": LINKS})
    for core in artifact.cores:
        artifact.run({"psi": PSI, "diagonal": np.asarray(3, F32)}, resident, core=core)
    assert len(artifact.engine._programs) == 1
    artifact.close()
    assert len(artifact.engine._programs) == 0


def test_wrong_arrays_and_wrong_bindings_are_refused() -> None:
    program = SimProgram(AXPY_HLO, AXPY)
    good = {"psi": PSI, "links": LINKS, "diagonal": np.float32(3)}
    for wrong, fact in (
        ({k: v for k, v in good.items() if k != "psi"}, "other inputs"),
        ({**good, "psi": PSI[1:]}, "psi has the wrong shape"),
        ({**good, "psi": PSI.astype(np.float64)}, "psi has the wrong shape or dtype"),
    ):
        with pytest.raises(UsageError, match=fact):
            program.run(wrong)
    with pytest.raises(EngineError, match="binding is of another program"):
        SimProgram(AXPY_HLO, {**AXPY, "parameters": AXPY["parameters"][:2]})
    with pytest.raises(EngineError, match="XLA refuses"):
        SimProgram(b"no program")
    damaged = write_sim(AXPY_HLO, {})[:-1]
    with pytest.raises(CorruptError, match="wrong size"):
        NeffArtifact(SimEngine(), damaged, neff_entry(SPEC, damaged, AXPY, "sim")).load()


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"results": []}, "does not number"),
        ({"parameters": [{**AXPY["parameters"][0], "number": 1}]}, "does not number"),
        ({"parameters": [{**AXPY["parameters"][0], "role": "guest"}]}, "cannot be read"),
        ({"parameters": [{**AXPY["parameters"][0], "dtype": "complex64"}]}, "cannot be read"),
        ({"parameters": [{**AXPY["parameters"][0], "shape": [0]}]}, "cannot be read"),
        ({"parameters": [{**AXPY["parameters"][0], "role": "state"}]}, "state is not aliased"),
        ({"parameters": AXPY["parameters"] + [{**AXPY["parameters"][0], "number": 3}]}, "two arrays alike"),
        ({"aliases": [[4, 0]]}, "cannot be read"),
        ({"parameters": None}, "cannot be read"),
    ],
)
def test_a_binding_that_makes_no_sense_is_corrupt(change: dict[str, Any], fact: str) -> None:
    with pytest.raises(CorruptError, match=fact):
        _artifact(AXPY_HLO, {**AXPY, **change})


def test_without_jaxlib_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jaxlib.xla_client", None)
    monkeypatch.setattr(sim_module, "_client", None)
    with pytest.raises(EngineError, match="cannot use jaxlib") as caught:
        SimProgram(AXPY_HLO)
    assert "[sim]" in str(caught.value.hint)
