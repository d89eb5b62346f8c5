"""What a store promises, on the real file system, in memory, and on one without hard links. C numbers: artifact-stores page."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lqcd_aot.store import Failure, Store, open_store
from lqcd_aot.store.fs import FileSystem, RealFileSystem
from lqcd_aot.store.sealed import is_intact, seal, unseal
from lqcd_runtime.errors import CorruptError, StoreError, TooNewError
from tests.crash.memory_fs import MemoryFileSystem
from tests.crash.records_for_tests import key, make_record, publish

ON_DISK, IN_MEMORY, NO_LINKS = "on disk", "in memory", "without hard links"


@pytest.fixture(params=[ON_DISK, IN_MEMORY, NO_LINKS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    fs: FileSystem = RealFileSystem() if request.param == ON_DISK else MemoryFileSystem(hard_links=request.param == IN_MEMORY)
    yield open_store(tmp_path / "store", create=True, fs=fs)


def again(store: Store) -> Store:
    """The store as another process opens it."""
    return open_store(store.root, fs=store.fs)


def overwrite(store: Store, path: str, data: bytes) -> None:
    """Damage behind the store's back."""
    store.fs.unlink(path)
    handle = store.fs.open_new(path, 0o444)
    if data:
        store.fs.write(handle, memoryview(data))
    store.fs.close(handle)


def test_blobs_are_found_under_their_digest(store: Store) -> None:
    for data in (b"", b"x", os.urandom(3 << 20)):
        digest = store.put_blob(data)
        assert store.put_blob(data) == digest
        assert again(store).read_blob(digest) == data
        assert store.blobs.size(digest) == len(data)


def test_a_record_is_there_after_publishing_and_leads_from_its_spec(store: Store) -> None:
    v3 = publish(store, "a", target="x86-64-v3")
    v2 = publish(store, "b", target="x86-64-v2")
    assert (v3.outcome, v2.outcome) == ("published", "published")
    other = again(store)
    assert other.record(key("a")) == v3.record
    assert other.records_of_spec(key("spec")) == {"x86-64-v2": v2.record, "x86-64-v3": v3.record}
    assert other.list_build_keys() == sorted([key("a"), key("b")])
    assert other.record(key("absent")) is None
    assert other.verify().problems == other.problems == ()


def test_the_latest_build_of_a_target_is_the_one_its_spec_names(store: Store) -> None:
    publish(store, "old")
    publish(store, "new")
    assert again(store).records_of_spec(key("spec"))["x86-64-v3"]["build_key"] == key("new")
    assert again(store).record(key("old")) is not None


def test_the_first_writer_of_a_key_wins_and_other_bytes_are_a_recorded_divergence(store: Store) -> None:
    """C7."""
    first = publish(store, "a", b"first")
    assert publish(store, "a", b"first", provenance={"compile_ms": 999}).outcome == "reused"
    second = publish(store, "a", b"second")
    assert second.outcome == "diverged"
    assert second.record == again(store).record(key("a")) == first.record
    (name,) = again(store).records.divergences()
    assert name.startswith(key("a"))
    assert publish(store, "a", b"second").outcome == "diverged"
    assert len(again(store).records.divergences()) == 1
    assert again(store).verify().problems == ()


def test_a_record_whose_bytes_are_absent_is_refused(store: Store) -> None:
    """C1: blobs before the record that names them."""
    with pytest.raises(ValueError, match="absent"):
        store.publish(make_record("a", b"never stored"))
    assert store.record(key("a")) is None


@pytest.mark.parametrize(
    "change", [{"schema": "other"}, {"build_key": "../../etc"}, {"outputs": {}}, {"extra": 1}, {"witness": 3}]
)
def test_a_record_that_is_none_is_refused(store: Store, change: dict[str, object]) -> None:
    store.put_blob(b"code")
    with pytest.raises(ValueError, match=r"has|is|names|SHA"):
        store.publish({**make_record("a", b"code"), **change})


def test_a_deleted_blob_is_a_miss_that_heals(store: Store) -> None:
    """C10: the record is there, its bytes are gone: never a permanent error."""
    digest = publish(store, "a").record["outputs"]["code"]["sha256"]
    store.fs.unlink(store.layout.blob(digest))
    reader = again(store)
    assert reader.record(key("a")) is None
    assert reader.list_build_keys() == []
    assert [p.kind for p in reader.problems] == ["record"]
    assert reader.records_of_spec(key("spec")) == {}
    assert digest[:16] in reader.verify().problems[0].fact
    with pytest.raises(CorruptError, match="absent"):
        reader.read_blob(digest)
    assert publish(store, "a").record["build_key"] == key("a")
    assert again(store).verify().problems == ()
    assert again(store).list_build_keys() == [key("a")]


def test_a_corrupt_blob_is_found_put_aside_and_healed(store: Store) -> None:
    """C9: bytes that do not match their name go to corrupt/ and are made again."""
    digest = publish(store, "a").record["outputs"]["code"]["sha256"]
    data = bytearray(store.read_blob(digest))
    data[7] ^= 1
    overwrite(store, store.layout.blob(digest), bytes(data))
    with pytest.raises(CorruptError, match="does not match its name") as caught:
        again(store).read_blob(digest)
    assert caught.value.exit_code == 12
    assert [(p.kind, p.name) for p in again(store).verify().problems] == [("blob", digest), ("record", key("a"))]
    assert again(store).verify().problems != (), "without repair nothing changes"
    again(store).verify(repair=True)
    assert again(store).record(key("a")) is None
    assert any(digest in name for name in store.fs.listdir(store.layout.folder("corrupt")))
    publish(store, "a")
    assert again(store).verify().problems == ()


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "other key", "text"])
def test_a_damaged_record_is_a_miss_reported_once_that_heals(store: Store, damage: str) -> None:
    """C9: whatever stands there, a reader misses, writes nothing, and the next publish puts it aside."""
    publish(store, "a")
    publish(store, "b", spec="other")
    path = store.layout.entry("records", key("a"))
    data = store.fs.read(path)
    at = data.index(b"compile_ms")
    other = store.fs.read(store.layout.entry("records", key("b")))
    flipped = data[:at] + b"C" + data[at + 1 :]
    damaged = {"empty": b"", "truncated": data[:-20], "flipped": flipped, "other key": other, "text": b"hello"}[damage]
    overwrite(store, path, damaged)
    reader = again(store)
    assert reader.record(key("a")) is None
    assert reader.record(key("a")) is None
    assert key("a") not in reader.list_build_keys()
    assert [p.name for p in reader.problems] == [key("a")]
    assert store.fs.listdir(store.layout.folder("corrupt")) == [], "a reader moves nothing"
    assert publish(store, "a").outcome == "published"
    assert len(store.fs.listdir(store.layout.folder("corrupt"))) == 1
    assert again(store).verify().problems == ()


def test_a_record_of_a_later_release_is_a_miss_and_stays(store: Store) -> None:
    publish(store, "a")
    path = store.layout.entry("records", key("a"))
    newer = seal({**unseal(store.fs.read(path)), "schema": "lqcd-aot/record/v2", "unheard": "of"})
    overwrite(store, path, newer)
    assert again(store).record(key("a")) is None
    assert publish(store, "a").record["build_key"] == key("a")
    assert store.fs.read(path) == newer


def test_a_lost_spec_index_is_named_and_repaired(store: Store) -> None:
    publish(store, "a")
    publish(store, "b", target="aarch64")
    store.fs.unlink(store.layout.entry("specs", key("spec")))
    assert again(store).records_of_spec(key("spec")) == {}
    (problem,) = again(store).verify().problems
    assert problem.kind == "spec"
    again(store).verify(repair=True)
    assert sorted(again(store).records_of_spec(key("spec"))) == ["aarch64", "x86-64-v3"]
    assert again(store).verify().problems == ()


def failure(name: str, failure_class: str) -> Failure:
    return Failure(key(name), name, failure_class, 2, "compiler said no", None, {"compiler": "zig", "version": "1"})


def test_only_deterministic_failures_stick_and_success_forgets_them(store: Store) -> None:
    """C15."""
    for failure_class, sticks in [("deterministic", True), ("resource", False), ("unknown", False), ("witness", False)]:
        store.record_failure(failure("a", failure_class))
        found = again(store).failure(key("a"))
        assert found == failure("a", failure_class)
        assert found.sticks is sticks
    publish(store, "a")
    assert again(store).failure(key("a")) is None


@pytest.mark.parametrize("failure_class", ["interrupted", "timeout"])
def test_interruptions_and_timeouts_are_never_recorded(store: Store, failure_class: str) -> None:
    """C15: Ctrl-C says nothing of the program."""
    with pytest.raises(ValueError, match="never recorded"):
        store.record_failure(failure("a", failure_class))
    assert store.failure(key("a")) is None


def test_a_lease_is_held_by_one_and_only_saves_work(store: Store) -> None:
    lease = store.lease(key("a"), seconds=60)
    assert lease is not None
    assert lease.is_held
    assert again(store).lease(key("a"), seconds=60) is None
    assert str(os.getpid()) in str(again(store).leases.holder(key("a")))
    assert publish(again(store), "a").outcome == "published", "who has no lease may write all the same"
    lease.release()
    lease.release()
    other = again(store).lease(key("a"), seconds=60)
    assert other is not None
    other.release()


def test_temporary_files_of_the_dead_go_and_those_of_the_living_stay(store: Store) -> None:
    """C8, C4."""
    from lqcd_aot.store.owner import Owner, this_host, this_process

    mine = this_process().temp_name()
    dead = Owner(this_host(), 2**22 + 1, 1).temp_name()
    reused_pid = this_process()._replace(start=this_process().start + 1).temp_name()
    elsewhere = Owner("othernode.00000000", 1, 1).temp_name()
    for name in (mine, dead, reused_pid, elsewhere):
        overwrite_new(store, name)
    assert store.verify().temporaries == 2
    assert store.sweep_temporaries() == 2
    assert sorted(store.fs.listdir(store.layout.tmp)) == sorted([mine, elsewhere])


def overwrite_new(store: Store, name: str) -> None:
    store.fs.close(store.fs.open_new(f"{store.layout.tmp}/{name}", 0o444))


def test_a_store_of_a_later_release_and_a_folder_that_is_none_are_refused(store: Store) -> None:
    overwrite(store, store.layout.version, b"lqcd-aot store 2\n")
    for create in (False, True):
        with pytest.raises(TooNewError, match="later release"):
            open_store(store.root, create=create, fs=store.fs)
    overwrite(store, store.layout.version, b"holiday pictures\n")
    with pytest.raises(StoreError, match="is not a store") as caught:
        again(store)
    assert caught.value.exit_code == 10
    with pytest.raises(StoreError, match="is not a store"):
        open_store(f"{store.root}/absent", fs=store.fs)


def test_a_folder_with_other_things_is_not_made_a_store(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(StoreError, match="not empty"):
        open_store(tmp_path, create=True)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_permissions_come_from_the_store_folder_not_from_the_umask(tmp_path: Path) -> None:
    """C21: blobs 0444; a store of a group stays the group's, whoever builds with whatever umask."""
    root = tmp_path / "shared"
    root.mkdir()
    root.chmod(0o2775)
    before = os.umask(0o077)
    try:
        digest = publish(open_store(root, create=True), "a").record["outputs"]["code"]["sha256"]
    finally:
        os.umask(before)
    for path in root.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o2775 if path.is_dir() else 0o444), path
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    store = open_store(private, create=True)
    publish(store, "a")
    assert stat.S_IMODE(Path(store.layout.blob(digest)).stat().st_mode) == 0o400


def test_reading_writes_nothing(tmp_path: Path) -> None:
    """C21: every folder and file has the same times and names after all kinds of reading, misses included."""
    publish(open_store(tmp_path, create=True), "a")
    before = {p: (p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in [tmp_path, *tmp_path.rglob("*")]}
    store = open_store(tmp_path)
    record = store.record(key("a"))
    assert record is not None
    store.read_blob(record["outputs"]["code"]["sha256"])
    store.records_of_spec(key("spec"))
    store.record(key("absent"))
    store.failure(key("a"))
    store.list_build_keys()
    store.verify()
    assert before == {p: (p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in [tmp_path, *tmp_path.rglob("*")]}


def test_a_sealed_object_notices_every_changed_byte() -> None:
    data = seal(make_record("a", b"code"))
    assert is_intact(data)
    assert json.loads(data)["build_key"] == key("a"), "a plain JSON reader reads it too"
    for at in range(len(data)):
        assert not is_intact(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]), at
        assert not is_intact(data[:at]), at
    assert not is_intact(data + b" ")
