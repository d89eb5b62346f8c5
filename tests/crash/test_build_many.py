"""Many processes build one recipe into one store at once: no error, one set of artifacts, every load right. C3, C7, C14."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.store import open_store
from lqcd_aot.store.leases import Lease, Leases
from tests.crash.fake_build import exit_code, fake_build, fork, planned, some_variants

PROCESSES = 32
VARIANTS = 5


def build_and_load(root: Path, toolchain: FakeToolchain) -> Callable[[], None]:
    """What each process does: build everything, then load everything and compare with the bytes the compiler makes."""

    def work() -> None:
        results = fake_build(root, toolchain, VARIANTS)
        assert Counter(r.outcome for r in results).keys() <= {"built", "shared", "reused"}
        store = open_store(root)
        for item in planned(some_variants(VARIANTS), store, toolchain):
            assert item.decision == "reuse"
            assert item.build_key is not None
            record = store.record(item.build_key)
            assert record is not None
            code = store.read_blob(record["outputs"]["code"]["sha256"])
            assert item.program is None or code == FakeToolchain(toolchain.version).compile(item.program, item.variant.target)
        assert store.problems == ()

    return work


def check_one_set(root: Path) -> None:
    store = open_store(root)
    report = store.verify()
    assert report.problems == ()
    assert (report.records, report.blobs, report.divergences) == (VARIANTS, VARIANTS, 0)
    assert report.failures == 0
    assert store.fs.listdir(store.layout.tmp) == []
    assert [f for fan in store.fs.listdir(f"{root}/leases") for f in store.fs.listdir(f"{root}/leases/{fan}")] == []


def test_32_processes_build_one_recipe_at_once(tmp_path: Path) -> None:
    """With leases, every variant is compiled exactly once among all processes."""
    toolchain = FakeToolchain(delay=0.02, journal=tmp_path / "journal")
    pids = [fork(build_and_load(tmp_path / "store", toolchain)) for _ in range(PROCESSES)]
    assert [exit_code(pid) for pid in pids] == [0] * PROCESSES
    check_one_set(tmp_path / "store")
    compiled = Counter((tmp_path / "journal").read_text().splitlines())
    assert sorted(compiled.values()) == [1] * VARIANTS


def test_32_processes_where_every_lock_is_granted_to_everybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C3: a file system on which locks exclude nobody costs work, never right bytes."""
    monkeypatch.setattr(Leases, "acquire", lambda self, name, *, seconds: Lease(self, name, None))
    toolchain = FakeToolchain(delay=0.02, journal=tmp_path / "journal")
    pids = [fork(build_and_load(tmp_path / "store", toolchain)) for _ in range(PROCESSES)]
    assert [exit_code(pid) for pid in pids] == [0] * PROCESSES
    check_one_set(tmp_path / "store")
    compiled = Counter((tmp_path / "journal").read_text().splitlines())
    assert len(compiled) == VARIANTS
    assert max(compiled.values()) > 1, "without locks somebody compiled twice; else this test says nothing"
