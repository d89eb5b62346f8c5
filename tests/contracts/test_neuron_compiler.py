"""Decisions of NeuronCompiler: engine, fusion, slabs, optlevel, routes; NeuronCores are played by the double of libnrt."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from lqcd_aot.build import check
from lqcd_aot.dirac import WilsonDirac, WilsonSchur
from lqcd_aot.neuron import NeuronCompiler, SpillError, get_device, is_neuron_available
from lqcd_aot.neuron.fusion import Limits, decide
from lqcd_runtime import target as target_module
from lqcd_runtime.engines import neuron as neuron_module
from lqcd_runtime.engines.neuron import NeuronEngine
from lqcd_runtime.engines.nrt import Session
from lqcd_runtime.errors import CompileError, UsageError
from lqcd_runtime.fields import random_links, random_spinor
from lqcd_runtime.hardware.chips import CHIPS
from lqcd_runtime.hardware.descriptor import NeuronCore
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import Host, this_host
from lqcd_runtime.witness_bound import bound_and_scale
from tests.contracts.neuronx_double import double as neuronx_double
from tests.contracts.neuronx_double import journal
from tests.doubles.libnrt import Double, cores, double_neff

LATTICE = (4, 2, 2, 4)
LARGE = (32, 16, 16, 16)


def wilson(lattice: tuple[int, ...] = LATTICE, operator: str = "wilson", **axes: Any) -> Spec:
    return Spec(operator, lattice, "bfloat16", **axes)


def machine(monkeypatch: pytest.MonkeyPatch, found: list[NeuronCore]) -> None:
    """This process as one on a machine with these cores."""
    monkeypatch.setattr(target_module, "_host", Host(this_host().architecture, this_host().features, found))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


# ---- engine ------------------------------------------------------------------------------------------------------------


def test_a_neuron_machine_gets_its_own_target(
    monkeypatch: pytest.MonkeyPatch, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machine(monkeypatch, cores(2, "Trainium1"))
    device = get_device()
    assert is_neuron_available() and (device.hardware, device.num_cores, device.target) == ("trn1", 2, "trn1")
    with caplog.at_level(logging.INFO, "lqcd_aot.neuron"):
        made = NeuronCompiler(dtype="bfloat16", store=store)
    assert (made.engine, made.target, made.dtype) == ("neuron", "trn1", "bfloat16")
    assert [(r.levelname, "2 NeuronCores of trn1" in r.message) for r in caplog.records] == [("INFO", True)]
    on_cpu = NeuronCompiler(engine="cpu", store=store)
    assert on_cpu.engine == "cpu" and "as asked for" in on_cpu.note
    with pytest.raises(UsageError, match="no double precision"):
        NeuronCompiler(dtype="float64", store=store)


UNUSABLE = [
    ([], "this machine has no NeuronCore"),
    ([NeuronCore(CHIPS["Trainium1"], 0, 0, (0,), reason="/dev/neuron0 cannot be opened")], "/dev/neuron0 cannot be opened"),
    ([NeuronCore(CHIPS["Inferentia"], 0, 0, (0,))], "is not a target of this project"),
]


@pytest.mark.parametrize(("found", "reason"), UNUSABLE, ids=[r for _, r in UNUSABLE])
def test_where_no_core_can_be_used_the_cpu_is_and_the_reason_is_said(
    monkeypatch: pytest.MonkeyPatch, store: Path, caplog: pytest.LogCaptureFixture, found: list[NeuronCore], reason: str
) -> None:
    machine(monkeypatch, found)
    assert not is_neuron_available() and (get_device().num_cores, get_device().hardware) == (0, "none")
    with caplog.at_level(logging.INFO, "lqcd_aot.neuron"):
        made = NeuronCompiler(dtype="bfloat16", store=store)
    assert (made.engine, made.dtype) == ("cpu", "float32") and reason in made.note and "computing in float32" in made.note
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    with pytest.raises(UsageError, match="engine neuron: cannot run here") as refused:
        NeuronCompiler(engine="neuron", store=store)
    assert reason in str(refused.value.found)


WORDS = [
    ({"engine": "gpu"}, "engine 'gpu'"),
    ({"dtype": "bfloat61"}, "did you mean 'bfloat16'"),
    ({"optlevel": 0}, "optlevel 0"),
    ({"route": "xla"}, "route 'xla'"),
    ({"route": "torch_neuronx.trace", "engine": "sim"}, "makes artifacts for NeuronCores only"),
    ({"sram_threshold_bytes": -1}, "sram_threshold_bytes: is negative"),
]


@pytest.mark.parametrize(("words", "message"), WORDS, ids=[m for _, m in WORDS])
def test_words_that_mean_nothing_are_refused(store: Path, words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        NeuronCompiler(store=store, **words)
    assert not store.exists()


def test_what_acts_on_neuron_only_says_so_on_the_cpu(store: Path) -> None:
    assert "have no meaning there" not in NeuronCompiler(engine="cpu", store=store).note
    for words in ({"optlevel": 1}, {"sram_threshold_bytes": 1}, {"allow_fused_fallback": False}):
        assert "have no meaning there" in NeuronCompiler(engine="cpu", store=store, **words).note


# ---- fused and slabs ---------------------------------------------------------------------------------------------------


def test_fused_falls_back_above_the_threshold_and_says_so() -> None:
    fits = decide(wilson(), "trn1", "auto", 1, Limits())
    assert fits.spec.fused and "fits" in fits.lines[0]
    assert decide(wilson(), "trn1", True, 1, Limits()) == (wilson(fused=True), ())
    assert decide(wilson(), "trn1", False, 1, Limits(0)) == (wilson(), ())
    for asked in (True, "auto"):
        fallen = decide(wilson(), "trn1", asked, 1, Limits(1000))  # type: ignore[arg-type]
        assert not fallen.spec.fused and "above 1,000" in fallen.lines[0] and "(estimate)" in fallen.lines[0]
        with pytest.raises(SpillError, match="does not fit") as spilled:
            decide(wilson(), "trn1", asked, 1, Limits(1000, allow_fused_fallback=False))  # type: ignore[arg-type]
        assert isinstance(spilled.value, RuntimeError) and isinstance(spilled.value, CompileError)


def test_the_default_threshold_is_sixty_percent_of_sbuf() -> None:
    """Fused blocks at 16^4: 65,536 x 24 x 96 bfloat16 = 288 MiB, far above 0.6 x 24 MiB; at 4^4 1.1 MiB."""
    large = decide(wilson((16, 16, 16, 16)), "trn1", "auto", 1, Limits())
    assert not large.spec.fused and f"above {int(0.6 * 24 * 2**20):,}" in large.lines[0]
    assert decide(wilson((4, 4, 4, 4)), "trn1", "auto", 1, Limits()).spec.fused


def test_an_operator_without_blocks_is_unfused_or_refused() -> None:
    plain = decide(wilson(operator="clover"), "trn1", "auto", 1, Limits())
    assert not plain.spec.fused and plain.lines == ("fused = false: clover has no fused blocks",)
    with pytest.raises(UsageError, match="no fused blocks"):
        decide(wilson(operator="clover"), "trn1", True, 1, Limits())


def test_a_lattice_that_passes_a_limit_is_cut_into_slabs() -> None:
    whole = decide(wilson(), "trn1", False, None, Limits())
    assert whole == (wilson(), ())
    cut = decide(wilson(LARGE, batch=512), "trn1", False, None, Limits())
    assert cut.spec.shards > 1 and f"shards = {cut.spec.shards}" in cut.lines[0]
    assert decide(wilson(LARGE, batch=512), "trn1", False, 2, Limits()).spec.shards == 2


def test_nothing_has_to_fit_on_a_cpu() -> None:
    spec = Spec("wilson", LARGE, "float32")
    assert decide(spec, "x86-64-v3", True, None, Limits(0, False)) == (spec.replace(fused=True), ())
    assert decide(spec, "x86-64-v3", "auto", 2, Limits(0, False)).spec == spec.replace(shards=2)


# ---- routes to a NeuronCore --------------------------------------------------------------------------------------------


def test_optlevel_reaches_the_compiler_and_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: Path) -> None:
    machine(monkeypatch, cores(2, "Trainium1"))
    monkeypatch.setattr(check, "cannot_replay", lambda target: "no device in this test")
    path = neuronx_double(tmp_path)
    D, keys = WilsonDirac(mass=0.1), []
    for level in (1, 3, 1):
        made = NeuronCompiler(optlevel=level, store=store, neuron_cc=str(path))
        keys.append(made.compile_dslash(D, LATTICE, fused=False).entry.build_key)
    assert keys[0] == keys[2] != keys[1], "a later build with another level does not change what runs"
    levels = [word for call in journal(tmp_path) for word in call if str(word).startswith("--optlevel")]
    assert levels == ["--optlevel=1", "--optlevel=3"]


@pytest.fixture(scope="module")
def built() -> Double:
    return Double()


class TorchNeuronx(ModuleType):
    """torch_neuronx as far as its `trace` is documented: runs the module on the examples and leaves a NEFF in the work folder.
    `compute` runs what was traced when libnrt's double executes that NEFF."""

    __version__ = "2.9.0.2.15.32035"

    def __init__(self) -> None:
        super().__init__("torch_neuronx")
        self.traced: list[Any] = []
        self.arguments: list[list[str]] = []

    def trace(self, func: Any, example_inputs: Any, *_: Any, compiler_workdir: str, compiler_args: Any, cpu_backend: bool) -> Any:
        assert cpu_backend and isinstance(example_inputs, tuple)
        results = func(*example_inputs)
        found = [(list(r.shape), str(r.dtype).removeprefix("torch.")) for r in results]
        assert found == [(r["shape"], r["dtype"]) for r in func.bound["results"]]
        self.traced.append(func)
        self.arguments.append(list(compiler_args))
        code = double_neff(
            func.bound, ["callback"], b"traced %d" % (len(self.traced) - 1),
            rename=lambda name, i, usage: f"{('input', 'output')[usage]}{i}",
        )  # fmt: skip
        (Path(compiler_workdir) / "graph.neff").write_bytes(code)
        return func

    def compute(self, code: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        func = self.traced[int(code.rpartition(b" ")[2])]
        given = [
            torch.from_numpy(inputs[f"input{i}"].view(np.float32)).reshape(tuple(p["shape"]))
            for i, p in enumerate(func.bound["parameters"])
        ]
        with torch.no_grad():
            return {f"output{i}": r.numpy() for i, r in enumerate(func(*given))}


@pytest.fixture
def traced(built: Double, monkeypatch: pytest.MonkeyPatch) -> Iterator[TorchNeuronx]:
    """A machine with two NeuronCores of a Trainium1 and torch-neuronx."""
    gc.collect()
    built.reset()
    built.machine(cores=2, family=2)
    package = TorchNeuronx()
    built.compute(package.compute)
    engine = NeuronEngine(Session(built.library), cores(2, "Trainium1"))
    monkeypatch.setattr(neuron_module, "_engine", engine)
    machine(monkeypatch, cores(2, "Trainium1"))
    monkeypatch.setattr(check, "cannot_replay", lambda target: "no device in this test")
    monkeypatch.setitem(sys.modules, "torch_neuronx", package)
    yield package
    gc.collect()
    engine.close()
    assert (built.report(), built.alive()) == ("", 0)


@pytest.mark.parametrize(
    ("module", "fused"), [(WilsonDirac(0.1, t_boundary=-1), False), (WilsonDirac(0.1), True), (WilsonSchur(0.3), False)],
    ids=["components", "fused", "checkerboard"],
)  # fmt: skip
def test_torch_neuronx_trace_makes_the_same_record(traced: TorchNeuronx, store: Path, module: Any, fused: bool) -> None:
    made = NeuronCompiler(store=store, route="torch_neuronx.trace", optlevel=3)
    links = torch.from_numpy(random_links(LATTICE, 3)).to(torch.complex64)
    psi = torch.stack([torch.from_numpy(random_spinor(LATTICE, 5, c)) for c in range(4)]).to(torch.complex64)
    compiled = made.compile_dslash_multicore(module, LATTICE, gauge_field=links, per_core_batch_size=2, fused=fused)
    found, expected = compiled(psi), module(psi.to(torch.complex128), links.to(torch.complex128))
    operator = compiled.spec.operator
    bound, scale = bound_and_scale("dirac", operator, LATTICE, {"mass": module.mass}, "float32")
    assert (compiled.engine, compiled.num_cores, compiled.spec.fused) == ("neuron", 2, fused)
    assert float((found - expected).abs().max()) <= bound * scale
    record = compiled._bundle.record(compiled.entry.build_key)
    assert record["components"]["toolchain"]["compiler"] == "torch_neuronx.trace"
    assert record["spec_key"] == compiled.spec.key and record["target"] == "trn1"
    words = traced.arguments[-1]
    assert {"--target=trn1", "--optlevel=3", "--auto-cast=none"} <= set(words) and not any("framework" in w for w in words)
    count = len(traced.traced)
    again = NeuronCompiler(store=store, route="torch_neuronx.trace", optlevel=3)
    again.compile_dslash_multicore(module, LATTICE, gauge_field=links, per_core_batch_size=2, fused=fused)
    assert len(traced.traced) == count


def placeholder(folder: Path) -> None:
    """What PyPI has under this name."""
    (folder / "torch_neuronx.py").write_text(
        'raise ImportError("WRONG PACKAGE. Please install the package from Neuron Repository")'
    )


@pytest.mark.parametrize("there", [False, True], ids=["absent", "placeholder"])
def test_without_torch_neuronx_the_route_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: Path, there: bool
) -> None:
    machine(monkeypatch, cores(1, "Trainium1"))
    if there:
        placeholder(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
    made = NeuronCompiler(store=store, route="torch_neuronx.trace")
    with pytest.raises(CompileError, match="pip install 'lqcd-aot") as refused:
        made.compile_dslash(WilsonDirac(mass=0.1), LATTICE)
    assert ("WRONG PACKAGE" in str(refused.value)) == there


@pytest.mark.parametrize(("files", "message"), [(0, "found:    0 files"), (2, "found:    2 files")])
def test_a_trace_that_leaves_no_single_neff_is_a_failed_compile(
    traced: TorchNeuronx, monkeypatch: pytest.MonkeyPatch, store: Path, files: int, message: str
) -> None:
    def trace(*_: Any, compiler_workdir: str, **__: Any) -> None:
        for i in range(files):
            (Path(compiler_workdir) / f"{i}.neff").write_bytes(b"x")

    monkeypatch.setattr(traced, "trace", trace)
    made = NeuronCompiler(store=store, route="torch_neuronx.trace")
    with pytest.raises(CompileError, match="left no single NEFF") as failed:
        made.compile_dslash(WilsonDirac(mass=0.1), LATTICE, fused=False)
    assert message in str(failed.value)
