"""Building for Neuron targets without device and compiler: by the double for the target sim, and by the driver for real targets.

What a NEFF-SIM may stand for (nothing but itself), what is in keys and records, what a failure leaves behind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lqcd_runtime
from lqcd_aot.build.check import PASSED, WitnessChecker
from lqcd_aot.build.device_estimate import device_estimate, lines
from lqcd_aot.build.execute import build
from lqcd_aot.build.job import Result
from lqcd_aot.build.plan import PlanItem, plan
from lqcd_aot.build.simulate import simulated
from lqcd_aot.compilers import Toolchains, find_toolchain
from lqcd_aot.compilers.dispatch import Absent
from lqcd_aot.compilers.neuronx import MEMORY_BASE, NeuronxToolchain
from lqcd_aot.compilers.sim import SimToolchain
from lqcd_aot.dirac import judge
from lqcd_aot.program import HloProgram, program_for
from lqcd_aot.recipe import Variant, expand, loads
from lqcd_aot.store import Store, open_store
from lqcd_runtime.errors import NoVariant, WitnessMismatch
from lqcd_runtime.fields import random_links, random_spinor
from lqcd_runtime.neff import MEDIA_TYPE, SIM_MEDIA_TYPE
from lqcd_runtime.self_check import exit_code
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import Host, this_host
from tests.contracts.neuronx_double import double, journal

LATTICE = (4, 2, 2, 2)
RECIPE = """
schema = 1
name = "sim-build"
[axes]
operator = "wilson"
lattice = "4x2x2x2"
dtype = "float32"
batch = 2
fused = [false, true]
target = ["inf2", "trn1"]
[[include]]
dtype = "bfloat16"
fused = false
[[include]]
operator = "wilson_cg_chunk"
dtype = "float32"
fused = false
iterations = 2
"""


Built = tuple[Store, list[Result], list[str]]


def by_name(results: list[Result]) -> dict[str, Result]:
    return {r.item.variant.name: r for r in results}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[Result], list[str]]:
    """The recipe built with --compiler sim, and what was said."""
    said: list[str] = []
    store = open_store(tmp_path_factory.mktemp("sim") / "store", create=True)
    toolchain = find_toolchain(neuron="sim")
    items = plan(simulated(expand(loads(RECIPE)), said.append), store, toolchain)
    return store, build(items, store, toolchain, jobs=2), said


def test_sim_stands_in_the_place_of_the_neuron_targets_once_and_says_so(built: Built) -> None:
    _, results, said = built
    assert said == ["--compiler sim: the target sim stands in the place of inf2, trn1; nothing of it runs on a NeuronCore"]
    assert [r.item.variant.name for r in results] == [
        "wilson-4x2x2x2-f32-b2@sim", "wilson_blocks-4x2x2x2-f32@sim", "wilson-4x2x2x2-f32-b2-fused@sim",
        "wilson-4x2x2x2-bf16-b2@sim", "wilson_cg_chunk-4x2x2x2-f32-b2-k2@sim",
    ]  # fmt: skip
    assert {r.outcome for r in results} == {"built"}


def test_every_witness_is_replayed_by_the_simulator(built: Built) -> None:
    status = {name: str((r.record or {})["witness_status"]) for name, r in by_name(built[1]).items()}
    builders = [name for name in status if name.startswith("wilson_blocks")]
    assert {status.pop(name) for name in builders} == {"unchecked: judged by the fused operators that use its blocks"}
    assert set(status.values()) == {PASSED}


def test_without_the_simulator_nothing_is_checked_and_the_reason_says_how_to_get_it(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The artifacts are not at fault: skipped, exit code of "nothing was checked", no advice to build them again."""
    monkeypatch.setitem(sys.modules, "jaxlib.xla_client", None)
    with lqcd_runtime.open(built[0].root) as bundle:
        checks = lqcd_runtime.selfcheck(bundle, engine="sim")
    assert {c.status for c in checks} == {"skipped"} and "lqcd-aot[sim]" in checks[0].reason
    assert exit_code(checks) == 20


def test_selfcheck_replays_simulations_only_if_named(built: Built) -> None:
    with lqcd_runtime.open(built[0].root) as bundle:
        assert {c.status for c in lqcd_runtime.selfcheck(bundle)} == {"skipped"}
        assert {c.status for c in lqcd_runtime.selfcheck(bundle, engine="cpu")} == {"skipped"}
        assert {c.status for c in lqcd_runtime.selfcheck(bundle, engine="sim")} == {"passed"}


def test_a_record_has_binding_and_container_facts(built: Built) -> None:
    for result in built[1]:
        record = result.record
        assert record is not None and isinstance(result.item.program, HloProgram)
        assert record["binding"] == result.item.program.binding
        assert record["outputs"]["code"]["media_type"] == SIM_MEDIA_TYPE
        assert record["neff"]["simulated"] is True and record["target"] == "sim"


def test_the_second_build_compiles_nothing_in_another_process_folder_environment_and_hash_seed(
    built: Built, tmp_path: Path
) -> None:
    """Same keys, no torch, no compiler started: the second process has none on its PATH."""
    store, results, _ = built
    (tmp_path / "r.toml").write_text(RECIPE)
    keys = []
    for seed, home in (("1", "a"), ("77", "b")):
        folder = tmp_path / home
        folder.mkdir()
        code = (
            "import sys; from lqcd_aot.cli import run; code = run(sys.argv[1:]);"
            "assert 'torch' not in sys.modules and 'google.protobuf' not in sys.modules; sys.exit(code)"
        )
        cache = {"LQCD_AOT_CACHE": os.environ["LQCD_AOT_CACHE"]} if "LQCD_AOT_CACHE" in os.environ else {}
        verb = ["build", str(tmp_path / "r.toml"), "--compiler", "sim", "--store", store.root, "--json"]
        environment = {"PYTHONHASHSEED": seed, "HOME": os.environ["HOME"], "PATH": "/nowhere", "NEURON_CC_FLAGS": home, **cache}
        done = subprocess.run(
            [sys.executable, "-c", code, *verb], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)
        assert {row["outcome"] for row in rows} == {"reused"}
        keys.append([row["build_key"] for row in rows])
    assert keys[0] == keys[1] == [r.item.build_key for r in results]


def test_mass_and_gauge_field_are_no_axes_one_artifact_serves_all(built: Built) -> None:
    with lqcd_runtime.open(built[0].root) as bundle:
        seen = set()
        psi = np.stack([random_spinor(LATTICE, 5, column) for column in (0, 1)])
        for mass, seed in ((0.1, 1), (0.7, 1), (0.7, 2)):
            links = random_links(LATTICE, seed)
            operator = bundle.operator("wilson", gauge=links, mass=mass, t_boundary=-1, dtype="float32", batch=2, engine="sim")
            expected = judge.apply("wilson", psi, links, mass=mass, phases=(-1, 1, 1, 1)).numpy()
            # A component is at most 4.7 sqrt 2 + 8 sqrt 6 = 27 (witness_bound), and takes 22 roundings of 2^-24.
            assert np.abs(operator.apply(psi.astype(np.complex64)) - expected).max() < 22 * 2.0**-24 * 27
            seen.add(operator.entry.build_key)
    assert len(seen) == 1


AXES: dict[str, Callable[[Spec], Spec]] = {
    "operator": lambda s: s.replace(operator="wilson_dagger"),
    "lattice": lambda s: s.replace(lattice=(4, 2, 2, 4)),
    "dtype": lambda s: s.replace(dtype="bfloat16"),
    "batch": lambda s: s.replace(batch=3),
    "fused": lambda s: s.replace(fused=True),
    "shards": lambda s: s.replace(shards=2),
    "kind": lambda s: s.replace(operator="wilson_cg_chunk", iterations=1),
    "iterations": lambda s: s.replace(operator="wilson_cg_chunk", iterations=2),
}  # fmt: skip


def test_every_axis_and_the_target_are_in_the_key(tmp_path: Path) -> None:
    base = Spec("wilson", LATTICE, "float32", batch=2)
    toolchains = Toolchains(Absent("", ""), NeuronxToolchain(double(tmp_path)), SimToolchain())
    variants = [Variant(make(base), "sim") for make in AXES.values()]
    variants += [Variant(base, target) for target in ("sim", "inf2", "trn1", "trn2", "trn3")]
    variants.append(Variant(base, "sim", salt="x"))
    keys = [item.build_key for item in plan(variants, None, toolchains)]
    assert len(set(keys)) == len(keys) == len(AXES) + 6


def test_a_simulated_artifact_is_never_selected_for_a_machine(built: Built) -> None:
    spec = Spec("wilson", LATTICE, "float32", batch=2)
    hosts = [this_host()]
    for instance in ("trn1.2xlarge", "inf2.xlarge", "trn2.3xlarge"):
        cores = lqcd_runtime.devices(override=instance)
        for core in cores:
            core.reason, core.available = None, True
        hosts.append(Host("x86_64", (), cores))
    with lqcd_runtime.open(built[0].root) as bundle:
        for host in hosts:
            for engine in (None, "neuron", "cpu"):
                with pytest.raises(NoVariant):
                    bundle.select(spec, host, engine)
        assert bundle.select(spec, hosts[0], "sim").choice.target == "sim"


def test_a_simulated_artifact_does_not_spare_the_real_compile(built: Built, tmp_path: Path) -> None:
    real = Toolchains(Absent("", ""), NeuronxToolchain(double(tmp_path)), SimToolchain())
    items = plan(expand(loads(RECIPE)), built[0], real)
    assert {item.decision for item in items} == {"build"}
    assert {item.reason for item in items} == {
        "no artifact of this spec for inf2, only for sim", "no artifact of this spec for trn1, only for sim",
    }  # fmt: skip


def one(store: Store, toolchain: Any, spec: Spec, target: str, **options: Any) -> Result:
    items = plan([Variant(spec, target)], store, toolchain, **options)
    (result,) = build(items, store, toolchain, jobs=1)
    return result


SPEC = Spec("wilson", LATTICE, "float32")


def test_a_real_neff_without_the_device_is_unchecked_and_says_what_it_needs(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    result = one(store, NeuronxToolchain(double(tmp_path)), SPEC, "trn1")
    assert result.outcome == "built" and result.record is not None
    assert result.record["witness_status"] == "unchecked: needs a trn1 device" and result.record["witness"] is not None
    assert result.record["outputs"]["code"]["media_type"] == MEDIA_TYPE
    assert (result.record["neff"]["runtime_floor"], result.record["neff"]["target"]) == ("2.34.10.0", "trn1")
    assert store.verify().problems == ()


def test_without_jaxlib_a_simulation_is_built_and_unchecked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lqcd_aot.build.check.importlib.util.find_spec", lambda name: None)
    result = one(open_store(tmp_path / "store", create=True), find_toolchain("g++", "sim"), SPEC, "sim")
    assert result.record is not None and "needs jaxlib" in result.record["witness_status"]


def test_a_program_that_computes_something_else_is_not_published(tmp_path: Path) -> None:
    """M^dagger where M was asked for: the same parameters, a valid program, wrong numbers."""

    def wrong(spec: Spec, target: str) -> Any:
        other = program_for(spec.replace(operator="wilson_dagger"), target)
        return HloProgram(other.hlo, other.binding, f"{spec.name}@{target}")

    store = open_store(tmp_path / "store", create=True)
    result = one(store, find_toolchain(neuron="sim"), SPEC, "sim", program_for=wrong)
    assert (result.outcome, result.failure_class) == ("failed", "witness") and isinstance(result.error, WitnessMismatch)
    assert "exceeds" in str(result.error.found) and store.list_build_keys() == []


def test_a_witness_that_could_refute_nothing_is_called_unchecked(tmp_path: Path) -> None:
    spec = Spec("wilson_cg_chunk", LATTICE, "bfloat16", iterations=1)
    result = one(open_store(tmp_path / "store", create=True), find_toolchain(neuron="sim"), spec, "sim")
    assert result.record is not None
    assert result.record["witness_status"] == "unchecked: rounding in bfloat16 may be as large as the answer"


def test_a_silent_exit_70_is_tried_again_alone_and_a_verdict_is_remembered(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    flaky = NeuronxToolchain(double(tmp_path, attempts=[{"exit": 70}, {"exit": 70}]))
    result = one(store, flaky, SPEC, "trn1")
    assert (result.outcome, result.attempts, len(journal(tmp_path))) == ("built", 3, 3)
    other = SPEC.replace(batch=2)
    (tmp_path / "b").mkdir()
    said = {"say": "ERROR: [NCC_EVRF007] Instructions generated by compiler 5000001", "exit": 70}
    refusing = NeuronxToolchain(double(tmp_path / "b", attempts=[said]))
    failed = one(store, refusing, other, "trn1")
    assert (failed.outcome, failed.failure_class) == ("failed", "deterministic")
    again = plan([Variant(other, "trn1")], store, refusing)[0]
    assert again.decision == "blocked" and "failed before (deterministic" in again.reason


def test_the_pool_reserves_what_a_compile_is_guessed_to_take(tmp_path: Path) -> None:
    (item,) = plan([Variant(SPEC, "trn1")], None, NeuronxToolchain(double(tmp_path)))
    assert item.variant.memory_bytes >= MEMORY_BASE
    (cheap,) = plan([Variant(SPEC, "sim")], None, SimToolchain())
    assert cheap.variant.memory_bytes == Variant(SPEC, "sim").memory_bytes


def test_estimates_need_no_compiler_are_labelled_and_stop_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from lqcd_aot.program.hlo.estimate import CORES

    monkeypatch.setenv("LQCD_AOT_CACHE", str(tmp_path))
    monkeypatch.setitem(CORES, "trn1", replace(CORES["trn1"], hbm=1))
    absent = Toolchains(Absent("", ""), Absent("not here", "install it"), SimToolchain())
    items: list[PlanItem] = plan([Variant(SPEC, "trn1"), Variant(SPEC, "sim"), Variant(SPEC, "x86-64-v3")], None, absent)
    first, second, third = (device_estimate(item) for item in items)
    assert items[0].decision == "blocked" and first is not None and second is not None and third is None
    said = lines(first)
    assert said[0].startswith("estimate, uncalibrated:") and "device memory" in said[1] and "compiled all the same" in said[1]
    assert len(lines(second)) == 1 and first.hbm_bytes == second.hbm_bytes
    (item,) = plan([Variant(SPEC, "trn1")], None, NeuronxToolchain(double(tmp_path)))
    assert item.decision == "build"
    kept = list((tmp_path / "estimates").iterdir())
    assert len(kept) >= 2
    kept[0].write_text("{")
    assert [device_estimate(item) for item in items[:2]] == [first, second], "a damaged file is made anew"


def test_a_checker_for_a_neuron_target_asks_for_the_device(tmp_path: Path) -> None:
    checker = WitnessChecker(open_store(tmp_path / "store", create=True))
    checked = checker.check(SPEC, {"target": "trn2"}, b"", 1.0)
    checker.close()
    assert checked.status == "unchecked: needs a trn2 device" and checked.witness is not None
