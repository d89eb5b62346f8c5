"""Bytes that are reused are right: what changed since it was verified is hashed by the next plan, put aside and built again.

Changes are made behind the store's back: same size, with and without the times put back.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lqcd_aot.build.execute import build
from lqcd_aot.build.plan import PlanItem, plan
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.store import Store, open_store
from lqcd_aot.store.gc import collect
from lqcd_aot.store.gc_mark import DAY, Policy
from lqcd_aot.store.inventory import read_again
from tests.crash.fake_build import NoCheck, fake_build, planned, some_variants
from tests.crash.memory_fs import MemoryFileSystem
from tests.crash.operations import ROOT, old_and_new
from tests.crash.records_for_tests import key, make_record, publish

COUNT = 4


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of this very moment enter the journal too."""
    monkeypatch.setattr("lqcd_aot.store.verified.TICK_SECONDS", -1.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made(tmp_path / "store")


def made(root: Path) -> Store:
    fake_build(root, FakeToolchain(), COUNT)
    return open_store(root)


def fake_plan(store: Store) -> list[PlanItem]:
    return planned(some_variants(COUNT), store, FakeToolchain())


def blob_of(store: Store, item: PlanItem) -> Path:
    record = store.record(str(item.build_key))
    assert record is not None
    return Path(store.layout.blob(record["outputs"]["code"]["sha256"]))


def flip(path: Path, *, times: bool) -> None:
    """One bit of a file; times: put back size, mtime, mode and inode."""
    before = path.stat()
    path.chmod(0o644)
    with path.open("r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(bytes([first[0] ^ 1]))
    path.chmod(0o444)
    if times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns, path.stat().st_ino) == (
            before.st_size, before.st_mtime_ns, before.st_ino,
        )  # fmt: skip


@pytest.mark.parametrize("times", [False, True])
def test_a_build_heals_a_flipped_bit(store: Store, times: bool) -> None:
    items = fake_plan(store)
    assert {item.decision for item in items} == {"reuse"}
    path = blob_of(store, items[1])
    right = path.read_bytes()
    flip(path, times=times)
    again = fake_plan(open_store(store.root))
    assert [item.decision for item in again] == ["reuse", "build", "reuse", "reuse"]
    wrong = f"is in the store, but its blob {path.name[:12]} does not match its digest"
    assert again[1].reason == f"artifact {str(items[1].build_key)[:12]} {wrong}"
    toolchain = FakeToolchain()
    results = build(again, store, toolchain, checker=NoCheck(), jobs=1)
    assert [result.outcome for result in results] == ["reused", "built", "reused", "reused"]
    assert toolchain.compiled == [again[1].variant.name]
    assert path.read_bytes() == right
    (aside,) = Path(store.layout.folder("corrupt")).iterdir()
    assert aside.name.startswith(f"blob-{path.name}")
    assert open_store(store.root).verify().problems == ()
    assert {item.decision for item in fake_plan(open_store(store.root))} == {"reuse"}


def test_a_plan_reads_only_bytes_whose_file_is_not_as_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    real = type(store.fs).sha256

    def counted(self: object, path: str) -> str:
        hashed.append(Path(path).name)
        return real(self, path)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store.fs), "sha256", counted)
    items = fake_plan(store)
    assert hashed == [], "the build that made them has read them again"
    touched = blob_of(store, items[2])
    touched.chmod(0o400)
    assert {item.decision for item in fake_plan(store)} == {"reuse"}
    assert hashed == [touched.name], "a chmod changes ctime"
    inventory = store.inventory()
    assert inventory.wrong(str(items[2].build_key)) is None
    inventory.remember(store)
    hashed.clear()
    fake_plan(store)
    assert hashed == []
    Path(store.layout.verified).unlink()
    fake_plan(store)
    assert len(hashed) == COUNT, "without the journal everything is read"


def test_a_plan_writes_no_journal_and_a_broken_one_is_none(store: Store) -> None:
    journal = Path(store.layout.verified)
    lines = journal.read_bytes()
    journal.chmod(0o644)
    journal.write_bytes(lines[:-3])
    assert store.verified.read() == frozenset()
    fake_plan(store)
    assert journal.read_bytes() == lines[:-3]


def test_what_was_written_a_moment_ago_is_not_yet_in_the_journal(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change within one tick of the clock of the file system leaves its times as they are."""
    monkeypatch.setattr("lqcd_aot.store.verified.TICK_SECONDS", 3600.0)
    Path(store.layout.verified).unlink()
    read_again(store, store.list_build_keys())
    assert store.verified.read() == frozenset()


def test_wrong_bytes_in_a_layer_below_are_built_into_the_users_store(tmp_path: Path) -> None:
    system = made(tmp_path / "system")
    user = open_store(tmp_path / "user", create=True, layers=[system.root])
    items = planned(some_variants(COUNT), user, FakeToolchain())
    path = blob_of(system, items[0])
    flip(path, times=True)
    wrong = path.read_bytes()
    again = planned(some_variants(COUNT), user, FakeToolchain())
    assert [item.decision for item in again] == ["build", "reuse", "reuse", "reuse"]
    assert f"is in the store {system.root} below it, but its blob" in again[0].reason
    build(again, user, FakeToolchain(), checker=NoCheck(), jobs=1)
    assert path.read_bytes() == wrong, "nothing is written below"
    healed = open_store(user.root)
    assert healed.layer_of(str(again[0].build_key)) == user.root
    assert [item.decision for item in planned(some_variants(COUNT), healed, FakeToolchain())] == ["reuse"] * COUNT


def test_without_a_compiler_wrong_bytes_block(store: Store) -> None:
    items = fake_plan(store)
    flip(blob_of(store, items[0]), times=False)
    blocked = plan(some_variants(COUNT), store, None)[0]
    assert blocked.decision == "blocked"
    assert "does not match its digest" in blocked.reason and "there is no compiler here" in blocked.reason


def test_storing_bytes_again_heals_them_however_young_they_are(store: Store) -> None:
    """An import asks `renew` before it stores."""
    digest = store.put_blob(b"some bytes")
    assert store.blobs.renew(digest, 10)
    flip(Path(store.layout.blob(digest)), times=True)
    assert not store.blobs.renew(digest, 10)
    store.put_blob(b"some bytes")
    assert store.read_blob(digest) == b"some bytes"


def test_two_artifacts_of_the_same_bytes_are_healed_by_one_build(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    publish(store, "a", b"the same", spec="a")
    publish(store, "b", b"the same", spec="b")
    (path,) = [Path(store.layout.blob(digest)) for digest in store.blobs.digests()]
    flip(path, times=True)
    assert store.sound_record(key("a")) is None and store.sound_record(key("b")) is None
    assert not path.exists()
    store.put_blob(b"the same")
    store.publish(make_record("a", b"the same", spec="a"))
    assert store.sound_record(key("a")) is not None
    assert store.sound_record(key("b")) is not None


def test_use_counts_as_youth() -> None:
    """Artifacts without a root, as measuring verbs and the SDK make them, stay while they are used."""
    fs = MemoryFileSystem()
    store = open_store(ROOT, create=True, fs=fs)
    old_and_new(fs, store)
    before = store.records.listing.look()[0]
    store.used([key("old"), key("young"), key("never built")])
    after = store.records.listing.look()[0]
    assert after[key("young")] == before[key("young")], "at most one write a day"
    done = collect(store, Policy(30 * DAY, grace_seconds=3600))
    assert set(done.evicted) == {key("other")}
    assert store.record(key("old")) is not None


def test_use_of_a_store_that_cannot_be_written_writes_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    publish(store, "a")
    path = Path(store.layout.entry("records", key("a")))
    long_ago = path.stat().st_mtime - 3 * DAY
    os.utime(path, (long_ago, long_ago))

    def refuse(path: str, mode: int) -> int:
        raise PermissionError(13, "no", path)

    store.fs.open_new = refuse  # type: ignore[method-assign]
    store.used([key("a")])
    assert path.stat().st_mtime == pytest.approx(long_ago, abs=1)
