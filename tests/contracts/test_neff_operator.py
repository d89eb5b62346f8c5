"""Operators of HLO programs: against torch complex128 on the simulator, and the same bits through libnrt's double."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import lqcd_runtime as lqcd
from lqcd_aot.dirac.judge import apply as judge
from lqcd_aot.observables.judge import observe as judge_observable
from lqcd_runtime import target as target_module
from lqcd_runtime.bundle import Bundle
from lqcd_runtime.engines import neuron as neuron_module
from lqcd_runtime.engines.neuron import NeuronEngine
from lqcd_runtime.engines.nrt import Session
from lqcd_runtime.errors import EngineError, NoVariant, UsageError
from lqcd_runtime.fields import random_links, random_spinor
from lqcd_runtime.neff_operator import NeffOperator
from lqcd_runtime.signature import Spec
from lqcd_runtime.solvers.cg import cg
from lqcd_runtime.target import Host
from lqcd_runtime.witness_bound import bound_and_scale
from tests.contracts import hlo_bundle
from tests.doubles.libnrt import Double, cores

pytest.importorskip("jaxlib")

LATTICE = (8, 2, 2, 4)
LINKS = random_links(LATTICE, 7)
PSI = np.stack([random_spinor(LATTICE, 11, column) for column in range(5)]).astype(np.complex64)
FAMILY = [Spec(f"wilson{form}", LATTICE, "float32", batch=2) for form in ("", "_dagger", "_normal")]
SHARDED = [Spec("wilson", LATTICE, "float32", fused=True, shards=2), Spec("wilson_blocks", LATTICE, "float32", shards=2)]
CHUNKS = [
    Spec("wilson_cg_chunk", LATTICE, "float32", batch=2, iterations=4),
    Spec("wilson_schur_cg_chunk", LATTICE, "float32", batch=2, iterations=4),
    Spec("wilson_schur_dagger", LATTICE, "float32", batch=2), Spec("wilson_schur", LATTICE, "float32", batch=2),
]  # fmt: skip
OTHERS = [
    Spec("clover", LATTICE, "float32"), Spec("clover_schur", LATTICE, "float32"), Spec("wilson", LATTICE, "bfloat16"),
    Spec("wilson_normal", LATTICE, "float32", shards=2), Spec("plaquette", LATTICE, "float32"),
]  # fmt: skip
INPUTS = {"mass": 0.1, "csw": 0.5}


@pytest.fixture(scope="module")
def sim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    path = hlo_bundle.write(tmp_path_factory.mktemp("sim") / "sim.lqcd", [*FAMILY, *SHARDED, *OTHERS, *CHUNKS])
    with lqcd.open(path) as bundle:
        held = [bundle.load(entry) for entry in bundle.entries()]  # so that each program is compiled once in all tests
        yield bundle
        held.clear()


@pytest.fixture(scope="module")
def built() -> Double:
    return Double()


@pytest.fixture
def double(built: Double, monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    """This process as one on a machine with four NeuronCores of a Trainium2."""
    gc.collect()
    built.reset()
    built.compute(hlo_bundle.compute)
    engine = NeuronEngine(Session(built.library), cores())
    monkeypatch.setattr(neuron_module, "_engine", engine)
    monkeypatch.setattr(target_module, "_host", Host("x86_64", target_module.this_host().features, cores()))
    yield built
    engine.close()
    assert (built.report(), built.alive()) == ("", 0)


def _given(spec: Spec) -> dict[str, float]:
    return {k: v for k, v in INPUTS.items() if k == "mass" or spec.operator.startswith("clover")}


def _operator(bundle: Bundle, spec: Spec, **options: object) -> NeffOperator:
    options = {"gauge": LINKS, "t_boundary": -1, "engine": "sim", **_given(spec), **options}
    found = bundle.operator(
        spec.operator, dtype=spec.dtype, batch=spec.batch, fused=spec.fused, shards=spec.shards, **options  # type: ignore[arg-type]
    )  # fmt: skip
    assert isinstance(found, NeffOperator)
    return found


def _judged(spec: Spec, psi: np.ndarray) -> np.ndarray:
    import torch

    answer = judge(
        spec.operator, torch.from_numpy(psi.astype(np.complex128)), torch.from_numpy(LINKS), **_given(spec), phases=(-1, 1, 1, 1)
    )
    return answer.numpy()


@pytest.mark.parametrize("spec", [*FAMILY, SHARDED[0], *OTHERS[:4]], ids=lambda s: s.name)
def test_every_form_agrees_with_complex128_on_any_number_of_columns(sim: Bundle, spec: Spec) -> None:
    D = _operator(sim, spec)
    found = D.apply(PSI[:3])
    bound, scale = bound_and_scale("dirac", spec.operator, LATTICE, _given(spec), spec.dtype)
    judged = _judged(spec, PSI[:3])
    assert found.dtype == np.complex64
    assert np.max(np.abs(found - judged)) <= bound * scale
    assert np.array_equal(D(PSI[1]), found[1])
    out = np.empty_like(found)
    D.apply_into(out, PSI[:3])
    assert np.array_equal(out, found)


def test_the_number_of_cores_changes_no_bit(sim: Bundle) -> None:
    spec = FAMILY[0]
    one, many = _operator(sim, spec, cores=[0]), _operator(sim, spec)
    assert (one.cores, many.cores) == ((0,), (0, 1, 2, 3))
    assert np.array_equal(one.apply(PSI), many.apply(PSI))
    with pytest.raises(UsageError, match="cores: cannot be used"):
        _operator(sim, spec, cores=[0, 9])
    with pytest.raises(UsageError, match="cores: cannot be used"):
        _operator(sim, spec, cores=[])


def test_mass_and_boundary_are_run_time_inputs(sim: Bundle) -> None:
    D = _operator(sim, FAMILY[0])
    heavier = D.with_inputs(mass=0.6)
    assert heavier.program is D.program
    assert np.allclose(heavier(PSI[0]) - D(PSI[0]), 0.5 * PSI[0], atol=1e-5)
    periodic = _operator(sim, FAMILY[0], t_boundary=1)
    differ = np.abs(periodic(PSI[0]) - D(PSI[0])).max(axis=(1, 2, 3, 4, 5))
    assert np.flatnonzero(differ).tolist() == [0, LATTICE[0] - 1]


def test_a_solve_runs_on_it(sim: Bundle) -> None:
    D = _operator(sim, FAMILY[0], mass=0.5)
    x, info = lqcd.solve(D, PSI[:2], tol=1e-5)
    assert info.converged
    judged = _judged(FAMILY[0], x.astype(np.complex128)) + 0.4 * x
    assert np.linalg.norm(judged - PSI[:2]) <= 2e-5 * np.linalg.norm(PSI[:2])


@pytest.mark.parametrize("family", ["wilson", "wilson_schur"])
def test_chunks_of_iterations_correct_a_solve(sim: Bundle, family: str) -> None:
    chunk = next(s for s in CHUNKS if s.operator == f"{family}_cg_chunk")
    inner = sim.chunk_solver(
        chunk.operator, gauge=LINKS, mass=0.5, t_boundary=-1, batch=2, iterations=4, engine="sim", cores=[0, 2]
    )  # fmt: skip
    D = _operator(sim, Spec(family, LATTICE, "float32", batch=2), mass=0.5)
    b = D.apply(PSI[:3])
    x, info = lqcd.solve(D, b, tol=1e-5, inner=inner)
    assert info.converged
    assert np.linalg.norm(D.apply(x) - b) <= 1.1e-5 * np.linalg.norm(b)
    # The same right-hand side by the loop of the host over single applications, both by the recursion only: as many steps.
    rhs = D.dagger.apply(PSI[:3])
    y, told = inner.correct(PSI[:3], 1e-3, 1000)
    z, host = cg(lambda v: D.dagger.apply(D.apply(v)), rhs, tol=1e-3)
    assert all(abs(a.iterations - c.iterations) <= 1 for a, c in zip(told.columns, host.columns, strict=True))
    assert np.linalg.norm(y - z) <= 1e-2 * np.linalg.norm(z)
    _, cut = inner.correct(PSI[:3], 1e-6, 5)  # two calls of four
    assert {c.iterations for c in cut.columns} == {8}
    assert {c.reason for c in cut.columns} == {"max_iterations"}
    assert np.isnan(cut.final_residual)
    blank, none = inner.correct(np.zeros_like(PSI[:1]), 1e-3, 100)
    assert not blank.any()
    assert none.iterations == 0


def test_a_column_of_nan_harms_no_other(sim: Bundle) -> None:
    inner = sim.chunk_solver("wilson_cg_chunk", gauge=LINKS, mass=0.5, batch=2, iterations=4, engine="sim")
    sick = PSI[:2].copy()
    sick[1, 0, 0, 0, 0, 0, 0] = np.nan
    y, info = inner.correct(sick, 1e-3, 1000)
    alone, _ = inner.correct(PSI[:1], 1e-3, 1000)
    assert [c.reason for c in info.columns] == ["converged", "not_finite"]
    assert np.allclose(y[0], alone[0], atol=1e-4)
    with pytest.raises(UsageError, match="is no solver chunk"):
        sim.chunk_solver("wilson", gauge=LINKS, mass=0.5, iterations=0)


def test_observables(sim: Bundle) -> None:
    import torch

    measured = sim.observable("plaquette", LATTICE, "float32", engine="sim")(LINKS)
    judged = judge_observable("plaquette", torch.from_numpy(LINKS))
    bound, scale = bound_and_scale("observable", "plaquette", LATTICE, {}, "float32")
    assert np.max(np.abs(np.array(list(measured.values())) - judged)) <= bound * scale
    planes = lqcd.observe(sim, LINKS, "plaquette_planes", dtype="float32", engine="sim")
    assert list(planes.values()) == list(measured.values())
    with pytest.raises(UsageError, match="other inputs"):
        sim.observable("plaquette", LATTICE, "float32", engine="sim")(LINKS, beta=6.0)


def test_a_simulation_is_chosen_only_by_name(sim: Bundle) -> None:
    for engine in (None, "cpu", "neuron"):
        with pytest.raises(NoVariant) as caught:
            _operator(sim, FAMILY[0], engine=engine)
        assert 'engine="sim" runs the simulation' in str(caught.value.hint)
        with pytest.raises(NoVariant):
            sim.observable("plaquette", LATTICE, "float32", engine=engine)
    with pytest.raises(UsageError, match="engine 'tpu': is not known"):
        _operator(sim, FAMILY[0], engine="tpu")
    assert {c.status for c in lqcd.selfcheck(sim)} == {"skipped"}


def test_through_libnrt_the_bits_are_the_simulators_and_the_gauge_field_is_written_once(
    sim: Bundle, double: Double, tmp_path: Path
) -> None:
    with lqcd.open(hlo_bundle.write(tmp_path / "trn2.lqcd", FAMILY, ("trn2", "sim"))) as bundle:
        D = _operator(bundle, FAMILY[0], engine=None, cores=[1])
        assert (D.entry.target, D.engine) == ("trn2", "neuron")
        for operator, spec in ((D, FAMILY[0]), (D.dagger, FAMILY[1]), (D.normal, FAMILY[2])):
            assert np.array_equal(operator.apply(PSI), _operator(sim, spec).apply(PSI))
        # Three programs, three calls each (five columns in batches of two): psi 9, mass 3, links once.
        assert double.calls("nrt_tensor_write") == 9 + 3 + 1
        assert (double.calls("nrt_load"), double.calls("nrt_execute")) == (3, 9)
        all_cores = _operator(bundle, FAMILY[0], engine="neuron")
        assert np.array_equal(all_cores.apply(PSI), D.apply(PSI))
        # D on core 1 and, for three chunks, on 0 and 2; M^dag M on core 1; M^dag went with its last reference.
        assert double.alive("model") == 3 + 1
        del D, all_cores, operator


def test_a_failure_on_one_core_reaches_the_caller_and_the_next_call_works(double: Double, tmp_path: Path) -> None:
    with lqcd.open(hlo_bundle.write(tmp_path / "trn2.lqcd", FAMILY[:1], ("trn2",))) as bundle:
        D = _operator(bundle, FAMILY[0], engine="neuron")
        right = D.apply(PSI)
        double.inject("nrt_execute", 1202, after=1)
        with pytest.raises(EngineError, match="uncorrectable error"):
            D.apply(PSI)
        assert np.array_equal(D.apply(PSI), right)
        del D


def test_decisions_say_why_a_neff_is_not_for_this_machine(tmp_path: Path) -> None:
    spec = Spec("plaquette", LATTICE, "float32")
    with lqcd.open(hlo_bundle.write(tmp_path / "b.lqcd", [spec], ("inf2", "trn1", "trn2", "sim"))) as bundle:
        no_cores = Host("x86_64", ())
        with pytest.raises(NoVariant) as caught:
            bundle.select(spec, no_cores)
        assert [d.reason for d in caught.value.decisions] == [  # type: ignore[attr-defined]
            "needs NeuronCore-v2 (inf2), this machine has no NeuronCore",
            "needs NeuronCore-v2 (trn1), this machine has no NeuronCore",
            "needs NeuronCore-v3 (trn2), this machine has no NeuronCore",
            'is a simulation, which stands for no machine; engine="sim" runs it',
        ]
        chosen = {
            chip: bundle.select(spec, Host("x86_64", (), cores(chip=chip, lnc=1))).choice.target
            for chip in ("Inferentia2", "Trainium1", "Trainium2")
        }
        assert chosen == {"Inferentia2": "inf2", "Trainium1": "trn1", "Trainium2": "trn2"}
        paired = Host("x86_64", (), cores(lnc=2))
        with pytest.raises(NoVariant, match="compiled for logical cores of 1, this machine uses 2"):
            bundle.select(spec, paired)
        blocked = cores()
        for core in blocked:
            core.available, core.reason = False, "no /dev/neuron0: the driver (package aws-neuronx-dkms) is not loaded"
        with pytest.raises(NoVariant, match="no /dev/neuron0"):
            bundle.select(spec, Host("x86_64", (), blocked))
        with pytest.raises(NoVariant, match='runs on engine "neuron", asked for is "cpu"'):
            bundle.select(spec, Host("x86_64", (), cores()), "cpu")
        assert bundle.select(spec, no_cores, "sim").choice.target == "sim"
