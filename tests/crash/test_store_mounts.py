"""A store on a disk that is really full, and on one mounted read-only. Needs the right to mount; skipped without."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.store import open_store
from lqcd_runtime.errors import StoreError
from tests.crash.fake_build import fake_build, planned, some_variants
from tests.crash.records_for_tests import key, publish


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("no right to mount a file system")
    yield disk
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_stops_the_build_with_one_clear_error(small_disk: Path) -> None:
    """C13: the error says what to do, nothing half-written stays, and with room the same command completes."""
    root = small_disk / "store"
    publish(open_store(root, create=True), "before")
    ballast = small_disk / "ballast"
    with ballast.open("wb") as f:
        free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize
        f.write(bytes(free - (256 << 10)))
    with pytest.raises(StoreError, match="has no room left") as caught:
        for version in range(1000):
            fake_build(root, FakeToolchain(str(version)), 3)
    assert caught.value.exit_code == 10
    assert "free some space" in str(caught.value)
    store = open_store(root)
    assert store.verify().problems == ()
    assert store.fs.listdir(store.layout.tmp) == []
    assert store.record(key("before")) is not None
    assert store.failures.all_keys() == []
    published = store.list_build_keys()
    ballast.unlink()
    assert {r.outcome for r in fake_build(root, FakeToolchain("with room"), 3)} == {"built"}
    assert set(published) < set(open_store(root).list_build_keys())


def test_a_read_only_store_serves_and_refuses(small_disk: Path) -> None:
    """C13, C21: what is there is used without a write; what is absent is one clear error before anything is compiled."""
    root = small_disk / "store"
    toolchain = FakeToolchain(journal=small_disk.parent / "journal")
    fake_build(root, toolchain, 3)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert {r.outcome for r in fake_build(root, toolchain, 3)} == {"reused"}
    store = open_store(root)
    for item in planned(some_variants(3), store, toolchain):
        record = store.record(str(item.build_key))
        assert record is not None
        store.read_blob(record["outputs"]["code"]["sha256"])
    assert store.verify().problems == ()
    compiled = (small_disk.parent / "journal").read_text()
    with pytest.raises(StoreError, match="cannot be written"):
        fake_build(root, toolchain, 4)
    assert (small_disk.parent / "journal").read_text() == compiled, "a store that cannot be written is known before compiling"
