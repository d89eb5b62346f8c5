"""The ctypes engine against the double of libnrt: data flow, residents, state, life cycle, every status at every call."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from lqcd_runtime.engines.neff_artifact import Resident
from lqcd_runtime.engines.nrt_library import PROTOTYPES
from lqcd_runtime.engines.nrt_status import STATUS, NeuronError
from lqcd_runtime.errors import EngineError, UsageError
from tests.doubles.engine_cases import (
    CG,
    CG_OPS,
    LINKS,
    NUMBERED_OPS,
    PSI,
    N,
    artifact_of,
    assert_clean,
    engine_of,
    inputs_of,
    numbered,
)
from tests.doubles.libnrt import Double

_RELEASES = ("nrt_unload", "nrt_tensor_free", "nrt_destroy_tensor_set", "nrt_close", "nrt_execute")


@pytest.fixture(scope="module")
def built() -> Double:
    return Double()


@pytest.fixture
def double(built: Double) -> Iterator[Double]:
    gc.collect()  # handles of an earlier test belong to a session that is closed or gone
    built.reset()
    yield built


def test_data_flows_through_the_documented_calls(double: Double) -> None:
    engine = engine_of(double)
    artifact, resident = artifact_of(engine), Resident(engine, {"links": LINKS})
    for a in (3.0, -2.0):
        out = artifact.run(inputs_of(a), resident)["out"]
        assert np.array_equal(out, a * PSI + LINKS)
    assert (double.calls("nrt_load"), double.calls("nrt_execute")) == (1, 2)
    assert_clean(double, engine)


def test_residents_are_written_once_per_core_and_scalars_only_when_they_change(double: Double) -> None:
    engine = engine_of(double)
    resident = Resident(engine, make=lambda: {"links": LINKS})
    first, second = artifact_of(engine), artifact_of(engine, ops=NUMBERED_OPS, rename=numbered)
    for _ in range(5):
        for artifact in (first, second):
            artifact.run(inputs_of(), resident)
    # 1 of links; per artifact 5 of psi and 1 of the scalar
    assert double.calls("nrt_tensor_write") == 1 + 2 * (5 + 1)
    first.run(inputs_of(), resident, core=2)
    assert double.calls("nrt_tensor_write") == 13 + 3
    assert double.alive("model") == 3
    assert_clean(double, engine)


def test_state_stays_on_the_device(double: Double) -> None:
    engine = engine_of(double)
    artifact, resident = artifact_of(engine, CG, CG_OPS), Resident(engine, {"links": LINKS})
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
    assert_clean(double, engine)


def test_a_thousand_cycles_leave_nothing(double: Double) -> None:
    engine = engine_of(double)
    resident = Resident(engine, {"links": LINKS})
    for i in range(1000):
        artifact = artifact_of(engine)
        assert artifact.run(inputs_of(float(i)), resident, core=i % 4)["out"][1] == i + LINKS[1]
        artifact.close()
        assert double.alive("model") == 0
    assert double.alive() == 4  # the gauge field, once per core
    assert (double.calls("nrt_load"), double.calls("nrt_unload"), double.calls("nrt_execute")) == (1000, 1000, 1000)
    assert_clean(double, engine)


def test_what_nobody_refers_to_is_released(double: Double) -> None:
    engine = engine_of(double)
    artifact, resident = artifact_of(engine), Resident(engine, {"links": LINKS})
    artifact.run(inputs_of(), resident)
    del artifact, resident
    gc.collect()
    assert double.alive() == 0
    assert_clean(double, engine)


def _scenario(double: Double) -> None:
    """Everything the runtime does with libnrt; `engine.close` also where it raises."""
    engine = engine_of(double)
    try:
        artifact, resident = artifact_of(engine), Resident(engine, {"links": LINKS})
        artifact.run(inputs_of(), resident)
        chunk = artifact_of(engine, CG, CG_OPS)
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
    engine = engine_of(double)
    double.inject("nrt_load", 4242)
    with pytest.raises(NeuronError, match="does not know") as caught:
        artifact_of(engine).load()
    assert "4242" in str(caught.value)
    assert_clean(double, engine)


def test_a_full_device_is_an_error_and_can_be_used_again(double: Double) -> None:
    double.machine(memory=N * 4 * 3)
    engine = engine_of(double)
    artifact = artifact_of(engine)
    big = Resident(engine, {"links": LINKS, "more": np.zeros((2, N), np.float32)})
    with pytest.raises(NeuronError, match="not enough memory") as caught:
        artifact.run(inputs_of(), big)
    assert caught.value.hint == "use a smaller batch, or shards"
    artifact.close()
    assert double.alive() == 0
    assert_clean(double, engine)


def test_use_after_close_never_reaches_libnrt(double: Double) -> None:
    engine = engine_of(double)
    artifact, resident = artifact_of(engine), Resident(engine, {"links": LINKS})
    artifact.run(inputs_of(), resident)
    tensor = engine.tensor("late", (N,), "float32", 0)
    artifact.close()
    with pytest.raises(EngineError, match="was closed"):
        artifact.run(inputs_of(), resident)
    engine.close()
    engine.close()
    before = {name: double.calls(name) for name in PROTOTYPES}
    for use in (
        lambda: artifact_of(engine).run(inputs_of(), resident),
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
    engine = engine_of(double)
    artifact, resident = artifact_of(engine), Resident(engine, {"links": LINKS})
    artifact.run(inputs_of(), resident)
    before = [double.calls(name) for name in _RELEASES]
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            artifact.run(inputs_of(), resident)
        except EngineError as err:
            code = 0 if "forked" in err.fact else 2
        engine.close()
        resident.close()
        os._exit(code or (3 if [double.calls(name) for name in _RELEASES] != before else 0))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert np.array_equal(artifact.run(inputs_of(), resident)["out"], 3 * PSI + LINKS)
    assert_clean(double, engine)


def test_threads_on_all_cores_and_a_close_that_waits(double: Double) -> None:
    engine = engine_of(double)
    gate, inside = threading.Event(), threading.Semaphore(0)

    def slow(code: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        inside.release()
        assert gate.wait(60)
        return {"out": inputs["psi"]}

    double.compute(slow)
    artifact, resident = artifact_of(engine, ops=("callback",)), Resident(engine, {"links": LINKS})
    refused: list[EngineError] = []

    def run(core: int) -> None:
        try:
            assert np.array_equal(artifact.run(inputs_of(), resident, core=core)["out"], PSI)
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
    engine = engine_of(double)
    artifact, resident = artifact_of(engine), Resident(engine, {"links": LINKS})
    wrong: list[float] = []

    def many(a: float) -> None:
        for _ in range(50):
            if not np.array_equal(artifact.run(inputs_of(a), resident)["out"], a * PSI + LINKS):
                wrong.append(a)

    threads = [threading.Thread(target=many, args=(float(a),)) for a in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert_clean(double, engine)
