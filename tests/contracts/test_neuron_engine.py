"""The ctypes engine against the double of libnrt: data flow, residents, state, life cycle, every status at every call."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lqcd_runtime.binding import Binding, tensor_names
from lqcd_runtime.engines.neff_artifact import NeffArtifact, Resident
from lqcd_runtime.engines.neuron import NeuronEngine
from lqcd_runtime.engines.nrt import Session
from lqcd_runtime.engines.nrt_library import OPTIONAL, PROTOTYPES
from lqcd_runtime.engines.nrt_status import STATUS, NeuronError
from lqcd_runtime.errors import CorruptError, EngineError, TooNewError, UsageError
from lqcd_runtime.signature import Spec
from tests.doubles.libnrt import Double, binding_of, compiled, cores, double_neff, neff_entry

_RELEASES = ("nrt_unload", "nrt_tensor_free", "nrt_destroy_tensor_set", "nrt_close", "nrt_execute")
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


@pytest.fixture(scope="module")
def built() -> Double:
    return Double()


@pytest.fixture
def double(built: Double) -> Iterator[Double]:
    gc.collect()  # handles of an earlier test belong to a session that is closed or gone
    built.reset()
    yield built


def _numbered(_: str, number: int, usage: int) -> str:
    return f"{('input', 'output')[usage]}{number}"


def _engine(double: Double, **machine: Any) -> NeuronEngine:
    return NeuronEngine(Session(double.library), cores(**machine))


def _artifact(engine: Any, binding: dict[str, Any] = AXPY, ops: tuple[str, ...] = AXPY_OPS, **options: Any) -> NeffArtifact:
    code = double_neff(binding, ops, **options)
    return NeffArtifact(engine, code, neff_entry(SPEC, code, binding))


def _inputs(a: float = 3.0) -> dict[str, np.ndarray]:
    return {"psi": PSI, "diagonal": np.asarray(a, np.float32)}


def _clean(double: Double, engine: NeuronEngine) -> None:
    engine.close()
    assert double.report() == ""
    assert double.alive() == 0


def test_data_flows_through_the_documented_calls(double: Double) -> None:
    engine = _engine(double)
    artifact, resident = _artifact(engine), Resident(engine, {"links": LINKS})
    for a in (3.0, -2.0):
        out = artifact.run(_inputs(a), resident)["out"]
        assert np.array_equal(out, a * PSI + LINKS)
    assert (double.calls("nrt_load"), double.calls("nrt_execute")) == (1, 2)
    _clean(double, engine)


def test_residents_are_written_once_per_core_and_scalars_only_when_they_change(double: Double) -> None:
    engine = _engine(double)
    resident = Resident(engine, make=lambda: {"links": LINKS})
    first, second = _artifact(engine), _artifact(engine, ops=NUMBERED_OPS, rename=_numbered)
    for _ in range(5):
        for artifact in (first, second):
            artifact.run(_inputs(), resident)
    # 1 of links; per artifact 5 of psi and 1 of the scalar
    assert double.calls("nrt_tensor_write") == 1 + 2 * (5 + 1)
    first.run(_inputs(), resident, core=2)
    assert double.calls("nrt_tensor_write") == 13 + 3
    assert double.alive("model") == 3
    _clean(double, engine)


def test_state_stays_on_the_device(double: Double) -> None:
    engine = _engine(double)
    artifact, resident = _artifact(engine, CG, CG_OPS), Resident(engine, {"links": LINKS})
    state = artifact.begin({"x": PSI})
    expected = PSI
    for _ in range(4):
        found = artifact.step(state, {"stop": np.asarray(2, np.float32)}, resident)
        expected = 2 * expected + LINKS
        assert list(found) == ["steps"]
    assert double.calls("nrt_tensor_read") == 4  # of the four numbers, never of x
    assert np.array_equal(state.read("x"), expected)
    with pytest.raises(UsageError, match="has a state"):
        artifact.run({"stop": np.asarray(2, np.float32)}, resident)
    state.close()
    with pytest.raises(EngineError, match="was closed"):
        state.read("x")
    _clean(double, engine)


def test_a_thousand_cycles_leave_nothing(double: Double) -> None:
    engine = _engine(double)
    resident = Resident(engine, {"links": LINKS})
    for i in range(1000):
        artifact = _artifact(engine)
        assert artifact.run(_inputs(float(i)), resident, core=i % 4)["out"][1] == i + LINKS[1]
        artifact.close()
        assert double.alive("model") == 0
    assert double.alive() == 4  # the gauge field, once per core
    assert (double.calls("nrt_load"), double.calls("nrt_unload"), double.calls("nrt_execute")) == (1000, 1000, 1000)
    _clean(double, engine)


def test_what_nobody_refers_to_is_released(double: Double) -> None:
    engine = _engine(double)
    artifact, resident = _artifact(engine), Resident(engine, {"links": LINKS})
    artifact.run(_inputs(), resident)
    del artifact, resident
    gc.collect()
    assert double.alive() == 0
    _clean(double, engine)


def _scenario(double: Double) -> None:
    """Everything the runtime does with libnrt; `engine.close` also where it raises."""
    engine = _engine(double)
    try:
        artifact, resident = _artifact(engine), Resident(engine, {"links": LINKS})
        artifact.run(_inputs(), resident)
        chunk = _artifact(engine, CG, CG_OPS)
        state = chunk.begin({"x": PSI}, core=1)
        chunk.step(state, {"stop": np.asarray(2, np.float32)}, resident)
        state.read("x")
        engine.tensor("whole", (N,), "float32", 0).memory.slice(16, 32).close()
        for thing in (state, chunk, artifact, resident):
            thing.close()
    finally:
        engine.close()


def test_every_status_at_every_call_is_a_clear_error_and_no_leak(double: Double) -> None:
    _scenario(double)
    assert double.report() == ""
    used = {name: double.calls(name) for name in PROTOTYPES if double.calls(name)}
    assert set(used) == set(PROTOTYPES) - {"nrt_get_total_vnc_count", "nrt_get_instance_info"}
    tried = 0
    # Every status at the first call of each function, and a hardware error at each later call.
    cases = [(name, status, 0) for name in used for status in STATUS]
    cases += [(name, 6, nth) for name, count in used.items() for nth in range(1, count)]
    for name, status, nth in cases:
        double.reset()
        double.inject(name, status, nth)
        with pytest.raises(NeuronError) as caught:
            _scenario(double)
        assert (caught.value.call, caught.value.status) == (name, status)
        assert f"NRT_{STATUS[status][0]} ({status})" in str(caught.value)
        assert STATUS[status][1] in caught.value.fact
        assert not double.pending()
        assert (double.report(), double.alive()) == ("", 0), (name, status, nth)
        tried += 1
    assert tried > len(used) * len(STATUS)


def test_an_unknown_status_is_an_error_too(double: Double) -> None:
    engine = _engine(double)
    double.inject("nrt_load", 4242)
    with pytest.raises(NeuronError, match="does not know") as caught:
        _artifact(engine).load()
    assert "4242" in str(caught.value)
    _clean(double, engine)


def test_a_full_device_is_an_error_and_can_be_used_again(double: Double) -> None:
    double.machine(memory=N * 4 * 3)
    engine = _engine(double)
    artifact = _artifact(engine)
    big = Resident(engine, {"links": LINKS, "more": np.zeros((2, N), np.float32)})
    with pytest.raises(NeuronError, match="not enough memory") as caught:
        artifact.run(_inputs(), big)
    assert caught.value.hint == "use a smaller batch, or shards"
    artifact.close()
    assert double.alive() == 0
    _clean(double, engine)


def test_use_after_close_never_reaches_libnrt(double: Double) -> None:
    engine = _engine(double)
    artifact, resident = _artifact(engine), Resident(engine, {"links": LINKS})
    artifact.run(_inputs(), resident)
    tensor = engine.tensor("late", (N,), "float32", 0)
    artifact.close()
    with pytest.raises(EngineError, match="was closed"):
        artifact.run(_inputs(), resident)
    engine.close()
    engine.close()
    before = {name: double.calls(name) for name in PROTOTYPES}
    for use in (
        lambda: _artifact(engine).run(_inputs(), resident),
        lambda: engine.tensor("new", (N,), "float32", 0),
        tensor.read,
        lambda late=tensor: late.write(PSI),
    ):
        with pytest.raises(EngineError, match="was closed"):
            use()
    tensor.close()
    resident.close()
    del artifact, tensor
    gc.collect()
    assert before == {name: double.calls(name) for name in PROTOTYPES}
    assert double.report() == ""


def test_a_forked_child_is_refused_and_releases_nothing(double: Double) -> None:
    engine = _engine(double)
    artifact, resident = _artifact(engine), Resident(engine, {"links": LINKS})
    artifact.run(_inputs(), resident)
    before = [double.calls(name) for name in _RELEASES]
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            artifact.run(_inputs(), resident)
        except EngineError as err:
            code = 0 if "forked" in err.fact else 2
        engine.close()
        resident.close()
        os._exit(code or (3 if [double.calls(name) for name in _RELEASES] != before else 0))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert np.array_equal(artifact.run(_inputs(), resident)["out"], 3 * PSI + LINKS)
    _clean(double, engine)


def test_threads_on_all_cores_and_a_close_that_waits(double: Double) -> None:
    engine = _engine(double)
    gate, inside = threading.Event(), threading.Semaphore(0)

    def slow(code: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        inside.release()
        assert gate.wait(60)
        return {"out": inputs["psi"]}

    double.compute(slow)
    artifact, resident = _artifact(engine, ops=("callback",)), Resident(engine, {"links": LINKS})
    refused: list[EngineError] = []

    def run(core: int) -> None:
        try:
            assert np.array_equal(artifact.run(_inputs(), resident, core=core)["out"], PSI)
        except EngineError as err:
            refused.append(err)

    threads = [threading.Thread(target=run, args=(core,)) for core in (0, 1, 2, 3)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert inside.acquire(timeout=60)  # all four are inside nrt_execute at once
    closing = threading.Thread(target=engine.close)
    closing.start()
    gate.set()
    for thread in (closing, *threads):
        thread.join(60)
    # Executions end before the close; a thread that would read afterwards is refused before libnrt is reached.
    assert double.calls("nrt_execute") == 4
    assert (double.report(), double.alive()) == ("", 0)
    assert all("was closed" in err.fact for err in refused)


def test_two_threads_on_one_core_take_turns(double: Double) -> None:
    engine = _engine(double)
    artifact, resident = _artifact(engine), Resident(engine, {"links": LINKS})
    wrong: list[float] = []

    def many(a: float) -> None:
        for _ in range(50):
            if not np.array_equal(artifact.run(_inputs(a), resident)["out"], a * PSI + LINKS):
                wrong.append(a)

    threads = [threading.Thread(target=many, args=(float(a),)) for a in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    _clean(double, engine)


@pytest.mark.parametrize(
    ("target", "machine", "neff", "header", "fact"),
    [
        ("trn1", {}, {}, {}, r"needs NeuronCore-v2 \(trn1\), this machine has NeuronCore-v3 \(Trainium2\)"),
        ("trn2", {"chip": "Inferentia2"}, {}, {}, r"needs NeuronCore-v3 \(trn2\), .* has NeuronCore-v2 \(Inferentia2\)"),
        ("trn2", {"lnc": 2}, {}, {}, "is compiled for logical cores of 1, this machine uses 2; NEURON_LOGICAL_NC_CONFIG=1"),
        ("trn2", {}, {"lnc": 2}, {}, "its record says logical cores of 2, its header 1"),
        ("trn2", {}, {"runtime_floor": "2.35.1.0"}, {}, r"needs runtime 2\.35\.1\.0, this machine has 2\.34\.10"),
    ],
)  # fmt: skip
def test_a_refusal_comes_before_libnrt(
    double: Double, target: str, machine: dict[str, Any], neff: dict[str, Any], header: dict[str, Any], fact: str
) -> None:
    engine = _engine(double, **machine)
    code = double_neff(AXPY, AXPY_OPS, **header)
    with pytest.raises(EngineError, match=fact):
        NeffArtifact(engine, code, neff_entry(SPEC, code, AXPY, target, neff)).load()
    assert double.calls("nrt_load") == 0
    _clean(double, engine)


def test_trn1_and_inf2_take_each_others_programs(double: Double) -> None:
    engine = _engine(double, chip="Inferentia2")
    code = double_neff(AXPY, AXPY_OPS)
    NeffArtifact(engine, code, neff_entry(SPEC, code, AXPY, "trn1")).load()
    _clean(double, engine)


def test_newer_neffs_and_damaged_ones_are_refused(double: Double) -> None:
    engine = _engine(double)
    newer = double_neff(AXPY, AXPY_OPS, version=(3, 0))
    with pytest.raises(TooNewError, match="later format"):
        NeffArtifact(engine, newer, neff_entry(SPEC, newer, AXPY)).load()
    with pytest.raises(CorruptError, match="does not match its digest"):
        NeffArtifact(engine, newer + b"x", neff_entry(SPEC, newer, AXPY))
    cut = double_neff(AXPY, AXPY_OPS)[:-1]
    with pytest.raises(CorruptError, match="truncated"):
        NeffArtifact(engine, cut, neff_entry(SPEC, cut, AXPY)).load()
    assert double.calls("nrt_load") == 0
    _clean(double, engine)


@pytest.mark.parametrize(
    ("version", "chip", "driver", "fact"),
    [
        ((2, 32), "Trainium2", "2.29.0.0", "this driver needs runtime 2.33"),
        ((2, 32), "Trainium1", "2.26.10.0", "this runtime needs a driver after 2.26"),
        ((2, 26), "Trainium2", "2.21.9.0", "on trn2 this runtime needs driver 2.22"),
    ],
)
def test_runtime_and_driver_must_go_together(double: Double, version: tuple[int, int], chip: str, driver: str, fact: str) -> None:
    double.machine(version=version)
    with pytest.raises(EngineError, match=fact):
        _engine(double, chip=chip, driver=driver)
    assert (double.report(), double.calls("nrt_close")) == ("", 1)


def test_a_machine_without_cores_is_refused_with_the_reason(double: Double) -> None:
    with pytest.raises(EngineError, match="this machine has no NeuronCore"):
        NeuronEngine(Session(double.library), [])
    double.reset()
    double.machine(cores=0)
    with pytest.raises(EngineError, match="libnrt shows no core"):
        _engine(double)


def test_old_runtimes_miscount_large_tensors(double: Double) -> None:
    double.machine(version=(2, 28))
    engine = _engine(double, driver="2.24.7.0")
    with pytest.raises(UsageError, match="too large for this libnrt"):
        engine.tensor("big", (1 << 30,), "float32", 0)
    _clean(double, engine)


def test_names_of_tensors_are_ours_or_numbered_and_never_guessed_from_order() -> None:
    binding = Binding(AXPY, "test")
    ours = {(0, "psi"): 4 * N, (0, "links"): 4 * N, (0, "diagonal"): 4, (1, "out"): 4 * N}
    numbered = {(0, "input2"): 4, (0, "input0"): 4 * N, (0, "input1"): 4 * N, (1, "output0"): 4 * N}
    assert tensor_names(binding, ours, "t")[0] == {"psi": "psi", "links": "links", "diagonal": "diagonal"}
    for table in (numbered, None):
        assert tensor_names(binding, table, "t") == (
            {"psi": "input0", "links": "input1", "diagonal": "input2"},
            {"out": "output0"},
        )
    for wrong in ({**ours, (0, "more"): 4}, {**numbered, (0, "input2"): 8}, {(0, "a"): 4, (1, "b"): 4}):
        with pytest.raises(EngineError, match="are not those of its binding"):
            tensor_names(binding, wrong, "t")


def test_wrong_arrays_are_refused_by_name(double: Double) -> None:
    engine = _engine(double)
    artifact, resident = _artifact(engine), Resident(engine, {"links": LINKS})
    for inputs, fact in (
        ({"psi": PSI}, "other inputs"),
        ({**_inputs(), "csw": PSI}, "other inputs"),
        ({**_inputs(), "psi": PSI[1:]}, "psi has the wrong shape"),
        ({**_inputs(), "psi": PSI.astype(np.float64)}, "psi has the wrong shape or dtype"),
    ):
        with pytest.raises(UsageError, match=fact):
            artifact.run(inputs, resident)
    with pytest.raises(UsageError, match="has no links on the device"):
        artifact.run(_inputs())
    with pytest.raises(UsageError, match="core 7: is not usable"):
        artifact.run(_inputs(), resident, core=7)
    _clean(double, engine)


def test_a_library_without_the_experimental_functions_is_enough(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OPTIONAL:
        monkeypatch.delitem(double.library._functions, name)
    engine = _engine(double)
    artifact = _artifact(engine, ops=NUMBERED_OPS, rename=_numbered)
    assert np.array_equal(artifact.run(_inputs(), Resident(engine, {"links": LINKS}))["out"], 3 * PSI + LINKS)
    assert double.library.family() == 0
    _clean(double, engine)


def test_the_double_notices_what_it_is_for(double: Double) -> None:
    """A test of the test: wrong calls do leave a line."""
    session = Session(double.library)
    handle = double.library.make("nrt_tensor_allocate", 0, 0, 8, b"t")
    with pytest.raises(NeuronError):
        double.library.call("nrt_tensor_write", handle, handle, 4, 8)
    with pytest.raises(NeuronError):
        double.library.call("nrt_unload", handle)
    with pytest.raises(NeuronError):
        double.library.call("nrt_init", 0, b"", b"")
    session.close()
    with pytest.raises(NeuronError):
        double.library.call("nrt_unload", handle)
    lines = double.report().splitlines()
    assert lines == [
        "nrt_tensor_write: out of bounds",
        "nrt_unload: was given a tensor for a model",
        "nrt_init: framework 0",
        "leak: a tensor is alive at nrt_close",
        "nrt_unload after nrt_close",
    ]


_PROGRAM = """
import atexit, sys
import numpy as np
from lqcd_runtime import hardware
from lqcd_runtime.engines.neff_artifact import NeffArtifact, Resident
from lqcd_runtime.engines.neuron import this_engine
from lqcd_runtime.errors import EngineError
from tests.contracts import test_neuron_engine as t
from tests.doubles.libnrt import cores

try:
    this_engine()
except EngineError as err:
    print(err.found)
hardware.devices = cores
double = t.Double()
atexit.register(lambda: print(double.calls("nrt_close"), repr(double.report()), double.alive()))
engine = this_engine()
assert engine is this_engine()
artifact, resident = t._artifact(engine), Resident(engine, {"links": t.LINKS})
print(engine.via, engine.session.library.path, np.array_equal(artifact.run(t._inputs(), resident)["out"], 3 * t.PSI + t.LINKS))
"""


def test_the_library_is_found_by_its_name_and_closed_at_exit(repo_root: Path, tmp_path: Path) -> None:
    (tmp_path / "libnrt.so.1").symlink_to(compiled())
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(repo_root)}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "no /dev/neuron0: the driver (package aws-neuronx-dkms) is not loaded",
        "libnrt libnrt.so.1 True",
        "1 '' 0",
    ]
