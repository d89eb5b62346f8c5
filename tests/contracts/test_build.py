"""What `build` promises, with a fake compiler: order, parallelism, memory, failures, retries, waiting, Ctrl-C, progress."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from lqcd_aot.build.check import Checked
from lqcd_aot.build.events import Event, Progress
from lqcd_aot.build.execute import build
from lqcd_aot.build.job import Result
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.recipe.variant import Variant
from lqcd_aot.store import Record, Store, open_store
from lqcd_runtime.errors import WitnessMismatch
from lqcd_runtime.signature import Spec
from tests.contracts.scripted_cc import native_target, noted_pids, scripted_cc, still_running
from tests.crash.fake_build import NoCheck, fake_build, fake_program, planned, some_variants


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def run(store: Store, toolchain: FakeToolchain, variants: list[Variant] | int, **options: object) -> list[Result]:
    chosen = some_variants(variants) if isinstance(variants, int) else variants
    items = planned(chosen, store, toolchain, retry_failed=bool(options.pop("retry_failed", False)))
    return build(items, store, toolchain, **{"jobs": 3, "checker": NoCheck(), **options})  # type: ignore[arg-type]


def names(variants: list[Variant]) -> list[str]:
    return [v.name for v in variants]


def test_results_are_in_the_order_of_the_plan_and_the_second_build_compiles_nothing(store: Store) -> None:
    variants = some_variants(9)
    toolchain = FakeToolchain(delay=0.002)
    results = run(store, toolchain, variants)
    assert [r.item.variant.name for r in results] == names(variants)
    assert {r.outcome for r in results} == {"built"}
    assert sorted(toolchain.compiled) == sorted(names(variants))
    second = FakeToolchain()
    assert {r.outcome for r in run(store, second, variants)} == {"reused"}
    assert second.compiled == []
    for result in results:
        assert result.record is not None
        assert result.record["spec"] == result.item.variant.spec.as_dict()
        assert store.record(str(result.item.build_key)) == result.record


def test_a_new_variant_and_a_deleted_blob_are_all_that_is_built(store: Store) -> None:
    results = run(store, FakeToolchain(), 4)
    lost = results[2].record
    assert lost is not None
    store.fs.unlink(store.layout.blob(lost["outputs"]["code"]["sha256"]))
    toolchain = FakeToolchain()
    again = run(store, toolchain, 5)
    assert [r.outcome for r in again] == ["reused", "reused", "built", "reused", "built"]
    assert open_store(store.root).verify().problems == ()


def test_nothing_to_build_loads_no_torch_and_writes_nothing(store: Store) -> None:
    run(store, FakeToolchain(), 3)
    script = (
        "import sys; from pathlib import Path; from tests.crash.fake_build import *;"
        "s = open_store(sys.argv[1]); i = planned(some_variants(3), s, FakeToolchain());"
        "r = build(i, s, None); assert {x.outcome for x in r} == {'reused'}, r; assert 'torch' not in sys.modules"
    )
    before = {p: p.stat().st_mtime_ns for p in Path(store.root).rglob("*")}
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", script, store.root], check=True, cwd=root, env={**os.environ, "PYTHONPATH": str(root)})
    assert before == {p: p.stat().st_mtime_ns for p in Path(store.root).rglob("*")}


def test_a_deterministic_failure_is_recorded_with_its_log_and_blocks_until_asked(store: Store) -> None:
    bad = names(some_variants(3))[1]
    results = run(store, FakeToolchain(failures={bad: ["deterministic"]}), 3)
    assert [r.outcome for r in results] == ["built", "failed", "built"]
    failed = results[1]
    remembered = store.failure(str(failed.item.build_key))
    assert remembered is not None
    assert remembered.sticks
    assert (remembered.failure_class, remembered.attempts) == ("deterministic", 1)
    assert remembered.toolchain == FakeToolchain().identity("x86-64-v3")
    assert remembered.log_sha256 is not None
    assert b"scripted: deterministic" in store.read_blob(remembered.log_sha256)
    calm = FakeToolchain()
    assert [r.outcome for r in run(store, calm, 3)] == ["reused", "blocked", "reused"]
    assert calm.compiled == []
    assert run(store, calm, 3, retry_failed=True)[1].outcome == "built"
    assert store.failure(str(failed.item.build_key)) is None
    assert store.verify().orphans == (remembered.log_sha256,)


@pytest.mark.parametrize("failure_class", ["timeout", "interrupted"])
def test_timeouts_and_interruptions_are_failed_results_but_never_records(store: Store, failure_class: str) -> None:
    bad = names(some_variants(2))[0]
    results = run(store, FakeToolchain(failures={bad: [failure_class]}), 2)
    assert [(r.outcome, r.failure_class) for r in results] == [("failed", failure_class), ("built", None)]
    assert store.failures.all_keys() == []
    assert [r.outcome for r in run(store, FakeToolchain(), 2)] == ["built", "reused"]


class CountingToolchain(FakeToolchain):
    """Knows how many compiles run at once, and how many did when a named one ran."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.now = self.most = 0
        self.beside: dict[str, list[int]] = {}
        self.counter = threading.Lock()

    def compile(self, program: object, target: str, **options: object) -> bytes:
        with self.counter:
            self.now += 1
            self.most = max(self.most, self.now)
            self.beside.setdefault(program.identity, []).append(self.now)  # type: ignore[attr-defined]
        try:
            return super().compile(program, target, **options)  # type: ignore[arg-type]
        finally:
            with self.counter:
                self.now -= 1


def test_resource_failures_are_tried_again_alone_and_the_build_ends_green(store: Store) -> None:
    """C16."""
    every = names(some_variants(8))
    flaky = {every[1]: ["resource"], every[4]: ["resource", "resource"]}
    toolchain = CountingToolchain(failures=flaky, delay=0.01)
    seen: list[Event] = []
    results = run(store, toolchain, 8, jobs=4, observer=seen.append)
    assert {r.outcome for r in results} == {"built"}
    assert toolchain.most > 1
    assert toolchain.beside[every[1]][1:] == [1]
    assert toolchain.beside[every[4]][1:] == [1, 1]
    assert results[4].attempts == 3
    assert [e.name for e in seen if e.kind == "retrying"] == [every[1], every[4], every[4]]
    assert store.failures.all_keys() == []


def test_a_lasting_resource_failure_is_recorded_but_does_not_stick(store: Store) -> None:
    bad = names(some_variants(1))[0]
    (result,) = run(store, FakeToolchain(failures={bad: ["resource"] * 9}), 1)
    assert (result.outcome, result.failure_class, result.attempts) == ("failed", "resource", 3)
    remembered = store.failure(str(result.item.build_key))
    assert remembered is not None
    assert not remembered.sticks
    assert remembered.attempts == 3
    assert run(store, FakeToolchain(), 1)[0].outcome == "built"


@pytest.mark.parametrize(("memory", "most"), [(100, 1), (250, 2), (50, 1)])
def test_memory_bounds_how_many_compile_at_once(store: Store, memory: int, most: int) -> None:
    """C16: tasks of 100 bytes; one that needs more than there is runs alone rather than never."""
    toolchain = CountingToolchain(delay=0.02)
    results = run(store, toolchain, some_variants(6, memory_bytes=100), jobs=6, memory=memory)
    assert {r.outcome for r in results} == {"built"}
    assert toolchain.most == most


def test_ctrl_c_stops_leaves_no_failure_and_the_next_build_completes(store: Store) -> None:
    third = names(some_variants(6))[2]
    with pytest.raises(KeyboardInterrupt):
        run(store, FakeToolchain(failures={third: ["keyboard"]}, delay=0.005), 6, jobs=2)
    assert store.failures.all_keys() == []
    assert open_store(store.root).verify().problems == ()
    assert store.fs.listdir(store.layout.tmp) == []
    results = run(store, FakeToolchain(), 6)
    assert {r.outcome for r in results} <= {"built", "reused"}


CTRL_C = """
import sys
from tests.crash.fake_build import *
from lqcd_aot.compilers import find_toolchain
store = open_store(sys.argv[2], create=True)
toolchain = find_toolchain(sys.argv[1])
variants = [v._replace(target=sys.argv[3]) for v in some_variants(4)]
try:
    build(planned(variants, store, toolchain), store, toolchain, jobs=2, checker=NoCheck())
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_kills_the_compilers_that_run_and_records_nothing(tmp_path: Path) -> None:
    """The signal reaches the main thread; the compiles wait in others, each with a family of processes."""
    compiler = scripted_cc(tmp_path, "sleep 600 & sleep 600")
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", CTRL_C, str(compiler), str(tmp_path / "store"), native_target()]
    environment = {**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True) as process:
        pids = noted_pids(tmp_path, at_least=2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert still_running(pids) == []
    store = open_store(tmp_path / "store")
    assert store.failures.all_keys() == []
    assert store.verify().problems == ()
    assert store.list_build_keys() == []
    assert [p for p in tmp_path.iterdir() if p.name.startswith("compile-")] == []


def test_a_key_another_process_builds_is_waited_for_and_reused(store: Store) -> None:
    """The others are built first; the busy one is taken when it is published, and compiled by nobody here."""
    toolchain = FakeToolchain()
    variants = some_variants(3)
    items = planned(variants, store, toolchain)
    lease = store.lease(str(items[0].build_key), seconds=60)
    assert lease is not None
    seen: list[Event] = []

    def observe(event: Event) -> None:
        seen.append(event)
        if event.kind == "published" and event.done == 2:
            # "The other process" finishes: same code, published under the key this build waits for.
            other = open_store(store.root)
            from lqcd_aot.build.job import new_record

            assert items[0].program is not None
            code = FakeToolchain().compile(items[0].program, items[0].variant.target)
            other.put_blob(code)
            other.publish(new_record(items[0], code, compile_ms=1))

    results = build(items, store, toolchain, jobs=2, checker=NoCheck(), observer=observe)
    assert [r.outcome for r in results] == ["shared", "built", "built"]
    assert sorted(toolchain.compiled) == sorted(names(variants[1:]))
    assert [e.name for e in seen if e.kind == "waiting"] == [variants[0].name]
    lease.release()


class Refusing(NoCheck):
    """Finds one artifact wrong."""

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self, spec: Spec, record: Record, code: bytes, timeout: float) -> Checked:
        if f"{spec.name}@{record['target']}" == self.name:
            raise WitnessMismatch(f"artifact {self.name}: does not agree with its witness", found="relative error 0.1")
        return super().check(spec, record, code, timeout)


def test_an_artifact_that_computes_wrong_numbers_is_not_published(store: Store) -> None:
    variants = some_variants(3)
    results = run(store, FakeToolchain(), variants, checker=Refusing(variants[1].name))
    assert [r.outcome for r in results] == ["built", "failed", "built"]
    assert isinstance(results[1].error, WitnessMismatch)
    assert store.record(str(results[1].item.build_key)) is None
    remembered = store.failure(str(results[1].item.build_key))
    assert remembered is not None
    assert remembered.failure_class == "witness"
    assert not remembered.sticks, "the judge or the machine may have been at fault"


def test_builders_are_built_before_the_operators_that_are_checked_with_them(store: Store) -> None:
    fused = Variant(Spec("wilson", (4, 4, 4, 4), fused=True), "x86-64-v3")
    blocks = Variant(Spec("wilson_blocks", (4, 4, 4, 4)), "x86-64-v3")
    toolchain = FakeToolchain(delay=0.01)
    results = run(store, toolchain, [fused, blocks])
    assert toolchain.compiled == [blocks.name, fused.name]
    assert [r.item.variant.name for r in results] == [fused.name, blocks.name]


def test_progress_counts_every_variant_once_and_ends_at_zero_seconds(store: Store) -> None:
    bad = names(some_variants(5))[0]
    run(store, FakeToolchain(), some_variants(5)[3:])
    seen: list[Event] = []
    run(store, FakeToolchain(failures={bad: ["unknown"]}, delay=0.002), 5, observer=seen.append)
    assert [e.done for e in seen] == sorted(e.done for e in seen)
    assert (seen[-1].done, seen[-1].total, seen[-1].eta) == (5, 5, 0.0)
    final = Counter(e.kind for e in seen if e.kind in ("reused", "published", "failed"))
    assert final == {"reused": 2, "published": 2, "failed": 1}
    built = [e.kind for e in seen if e.name == names(some_variants(5))[1]]
    assert built == ["started", "compiled", "verified", "published"]


def test_the_estimate_comes_from_history_and_then_from_this_build() -> None:
    now = [0.0]
    seen: list[Event] = []
    progress = Progress(4, 2, {"a": 3.0, "b": 5.0, "c": None, "d": None}, seen.append, clock=lambda: now[0])
    progress.tell("started", "a")
    assert seen[-1].eta == (3 + 5 + 4 + 4) / 2, "unknown ones take what the known ones take in the middle"
    now[0] = 10.0
    progress.tell("published", "a")
    assert seen[-1].eta == 3 * 10 / 2
    progress.tell("failed", "b")
    progress.tell("failed", "c")
    assert seen[-1].eta == 10.0, "one left keeps one of two jobs busy"


def test_programs_of_these_tests_have_distinct_keys(tmp_path: Path) -> None:
    """The fake program stands for a real one: its digest depends on spec and target."""
    digests = {fake_program(v.spec, t).digest for v in some_variants(3) for t in ("x86-64-v2", "x86-64-v3")}
    assert len(digests) == 6
    assert len(fake_build(tmp_path, FakeToolchain(), 3)) == 3
