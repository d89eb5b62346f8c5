"""What the ctypes engine refuses, with the reason, and how it finds libnrt; what the double of libnrt notices."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lqcd_runtime.binding import Binding, tensor_names
from lqcd_runtime.engines.neff_artifact import NeffArtifact, Resident
from lqcd_runtime.engines.neuron import NeuronEngine
from lqcd_runtime.engines.nrt import Session
from lqcd_runtime.engines.nrt_library import OPTIONAL
from lqcd_runtime.engines.nrt_status import NeuronError
from lqcd_runtime.errors import CorruptError, EngineError, TooNewError, UsageError
from tests.doubles.engine_cases import (
    AXPY,
    AXPY_OPS,
    LINKS,
    NUMBERED_OPS,
    PSI,
    SPEC,
    N,
    artifact_of,
    assert_clean,
    engine_of,
    inputs_of,
    numbered,
)
from tests.doubles.libnrt import Double, compiled, double_neff, neff_entry

_RELEASES = ("nrt_unload", "nrt_tensor_free", "nrt_destroy_tensor_set", "nrt_close", "nrt_execute")


@pytest.fixture(scope="module")
def built() -> Double:
    return Double()


@pytest.fixture
def double(built: Double) -> Iterator[Double]:
    gc.collect()  # handles of an earlier test belong to a session that is closed or gone
    built.reset()
    yield built


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
    engine = engine_of(double, **machine)
    code = double_neff(AXPY, AXPY_OPS, **header)
    with pytest.raises(EngineError, match=fact):
        NeffArtifact(engine, code, neff_entry(SPEC, code, AXPY, target, neff)).load()
    assert double.calls("nrt_load") == 0
    assert_clean(double, engine)


def test_trn1_and_inf2_take_each_others_programs(double: Double) -> None:
    engine = engine_of(double, chip="Inferentia2")
    code = double_neff(AXPY, AXPY_OPS)
    NeffArtifact(engine, code, neff_entry(SPEC, code, AXPY, "trn1")).load()
    assert_clean(double, engine)


def test_newer_neffs_and_damaged_ones_are_refused(double: Double) -> None:
    engine = engine_of(double)
    newer = double_neff(AXPY, AXPY_OPS, version=(3, 0))
    with pytest.raises(TooNewError, match="later format"):
        NeffArtifact(engine, newer, neff_entry(SPEC, newer, AXPY)).load()
    with pytest.raises(CorruptError, match="does not match its digest"):
        NeffArtifact(engine, newer + b"x", neff_entry(SPEC, newer, AXPY))
    cut = double_neff(AXPY, AXPY_OPS)[:-1]
    with pytest.raises(CorruptError, match="truncated"):
        NeffArtifact(engine, cut, neff_entry(SPEC, cut, AXPY)).load()
    assert double.calls("nrt_load") == 0
    assert_clean(double, engine)


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
        engine_of(double, chip=chip, driver=driver)
    assert (double.report(), double.calls("nrt_close")) == ("", 1)


def test_a_machine_without_cores_is_refused_with_the_reason(double: Double) -> None:
    with pytest.raises(EngineError, match="this machine has no NeuronCore"):
        NeuronEngine(Session(double.library), [])
    double.reset()
    double.machine(cores=0)
    with pytest.raises(EngineError, match="libnrt shows no core"):
        engine_of(double)


def test_old_runtimes_miscount_large_tensors(double: Double) -> None:
    double.machine(version=(2, 28))
    engine = engine_of(double, driver="2.24.7.0")
    with pytest.raises(UsageError, match="too large for this libnrt"):
        engine.tensor("big", (1 << 30,), "float32", 0)
    assert_clean(double, engine)


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
    engine = engine_of(double)
    artifact, resident = artifact_of(engine), Resident(engine, {"links": LINKS})
    for inputs, fact in (
        ({"psi": PSI}, "other inputs"),
        ({**inputs_of(), "csw": PSI}, "other inputs"),
        ({**inputs_of(), "psi": PSI[1:]}, "psi has the wrong shape"),
        ({**inputs_of(), "psi": PSI.astype(np.float64)}, "psi has the wrong shape or dtype"),
    ):
        with pytest.raises(UsageError, match=fact):
            artifact.run(inputs, resident)
    with pytest.raises(UsageError, match="has no links on the device"):
        artifact.run(inputs_of())
    with pytest.raises(UsageError, match="core 7: is not usable"):
        artifact.run(inputs_of(), resident, core=7)
    assert_clean(double, engine)


def test_a_library_without_the_experimental_functions_is_enough(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OPTIONAL:
        monkeypatch.delitem(double.library._functions, name)
    engine = engine_of(double)
    artifact = artifact_of(engine, ops=NUMBERED_OPS, rename=numbered)
    assert np.array_equal(artifact.run(inputs_of(), Resident(engine, {"links": LINKS}))["out"], 3 * PSI + LINKS)
    assert double.library.family() == 0
    assert_clean(double, engine)


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
from tests.doubles import engine_cases as t
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
artifact, resident = t.artifact_of(engine), Resident(engine, {"links": t.LINKS})
print(engine.via, engine.session.library.path, np.array_equal(artifact.run(t.inputs_of(), resident)["out"], 3 * t.PSI + t.LINKS))
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
