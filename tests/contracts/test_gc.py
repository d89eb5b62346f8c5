"""What garbage collection keeps and removes, what it says, and that its lists are disposable. Safety: tests/crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from lqcd_aot.cli import run
from lqcd_aot.store import Store, open_store
from lqcd_aot.store.gc import collect
from lqcd_aot.store.gc_mark import DAY, Policy
from lqcd_aot.store.outfile import write_bytes
from lqcd_aot.store.pins import pin
from lqcd_runtime.errors import UsageError
from tests.crash.memory_fs import MemoryFileSystem
from tests.crash.operations import ROOT, loads, old_and_new
from tests.crash.records_for_tests import key, publish


@pytest.fixture
def fs() -> MemoryFileSystem:
    return MemoryFileSystem()


@pytest.fixture
def store(fs: MemoryFileSystem) -> Store:
    made = open_store(ROOT, create=True, fs=fs)
    old_and_new(fs, made)
    return made


def names(store: Store) -> set[str]:
    return {name for name in ("kept", "old", "other", "young") if store.record(key(name)) is not None}


def test_what_is_kept_and_what_goes(store: Store) -> None:
    """Roots and young records stay; the first run evicts and waits with the bytes, a run after the grace window frees them."""
    first = collect(store, Policy(DAY, grace_seconds=3600))
    assert names(store) == {"kept", "young"}
    assert set(first.evicted) == {key("old"), key("other")}
    assert first.evicted[key("old")] == "older than 1 days"
    assert len(first.swept) == 1, "the junk was known long enough"
    assert first.waiting == 2
    again = collect(store, Policy(DAY, grace_seconds=3600))
    assert (again.evicted, again.swept, again.waiting) == ({}, (), 2)
    from time import time

    late = collect(store, Policy(DAY * 1000, grace_seconds=3600), now=time() + 2 * 3600)
    assert (len(late.swept), late.waiting, late.kept) == (2, 0, 2)
    loads(store, "kept")
    loads(store, "young")


def test_a_dry_run_says_the_same_and_writes_nothing(store: Store) -> None:
    before = {folder: store.fs.listdir(store.layout.folder(folder)) for folder in ("records", "blobs/sha256", "gc")}
    condemned = store.condemned.read()
    said = collect(store, Policy(DAY, grace_seconds=3600), dry_run=True)
    assert {f: store.fs.listdir(store.layout.folder(f)) for f in before} == before
    assert store.condemned.read() == condemned
    done = collect(store, Policy(DAY, grace_seconds=3600))
    assert (said.evicted, said.swept, said.swept_bytes) == (done.evicted, done.swept, done.swept_bytes)


def test_a_size_bound_removes_the_oldest_unrooted_until_it_fits(fs: MemoryFileSystem) -> None:
    store = open_store(ROOT, create=True, fs=fs)
    for number in range(6):
        publish(store, f"r{number}", bytes(1000 + number), spec=f"s{number}")
        fs.age(store.layout.entry("records", key(f"r{number}")), DAY * (2 + number))
    store.roots.put("pin", "oldest", [key("r5")])
    done = collect(store, Policy(90 * DAY, 3500, grace_seconds=0))
    assert set(done.evicted) == {key("r4"), key("r3"), key("r2")}
    assert done.kept_bytes <= 3500
    nothing = collect(store, Policy(90 * DAY, 0, grace_seconds=0))
    assert set(nothing.evicted) == {key("r0"), key("r1")}
    assert names(store) == set()
    assert store.record(key("r5")) is not None, "what a root keeps is never removed for a bound"


def test_a_lease_and_an_unreadable_root_keep_what_they_name(store: Store, fs: MemoryFileSystem) -> None:
    lease = store.lease(key("old"), seconds=60)
    assert lease is not None
    store.roots.put("pin", "broken", [key("other")])
    (path,) = [
        f"{ROOT}/roots/{fan}/{file}"
        for fan in store.fs.listdir(f"{ROOT}/roots")
        for file in store.fs.listdir(f"{ROOT}/roots/{fan}")
        if b"broken" in store.fs.read(f"{ROOT}/roots/{fan}/{file}")
    ]
    fs.damage(path, store.fs.read(path)[:-4])
    collect(store, Policy(DAY, grace_seconds=0))
    assert names(store) == {"kept", "young", "old", "other"}
    assert "unreadable" in {root.kind for root in store.roots.all()}
    lease.release()
    collect(store, Policy(DAY, grace_seconds=0))
    assert names(store) == {"kept", "young", "other"}


def test_a_record_of_a_later_release_and_all_it_names_stay(store: Store, fs: MemoryFileSystem) -> None:
    path = store.layout.entry("records", key("old"))
    record = store.record(key("old"))
    assert record is not None
    fs.damage(path, store.fs.read(path).replace(b"record/v1", b"record/v2"))
    collect(store, Policy(DAY, grace_seconds=0))
    assert store.records.is_there(key("old"))
    assert store.read_blob(record["outputs"]["code"]["sha256"])


def test_pins_are_checked_and_expire(store: Store) -> None:
    with pytest.raises(UsageError, match="1 of 2 artifacts are not in store"):
        pin(store, "pin", "some", [key("old"), key("never built")])
    assert [root.kind for root in store.roots.all()] == ["recipe"]
    assert pin(store, "pin", "some", [key("old")]) is True
    assert pin(store, "pin", "some", [key("old")]) is False
    pin(store, "export", "of an hour", [key("other")], seconds=3600)
    assert key("other") in store.roots.kept(0)
    from time import time

    assert key("other") not in store.roots.kept(time() + 2 * 3600)


def test_a_mention_of_a_record_that_is_gone_is_taken_out(store: Store, fs: MemoryFileSystem) -> None:
    """An eviction that was interrupted before it came to the index; a builder that was killed before it published."""
    fs.unlink(store.layout.entry("records", key("other")))
    assert set(store.specs.get(key("shared spec")).values()) == {key("kept"), key("other")}
    assert store.verify().problems == (), "no reader minds it"
    collect(store, Policy(grace_seconds=3600))
    assert key("other") in store.specs.get(key("shared spec")).values(), "its builder may be about to publish it"
    fs.age(store.layout.entry("specs", key("shared spec")), 2 * 3600)
    collect(store, Policy(grace_seconds=3600))
    assert store.specs.get(key("shared spec")) == {"x86-64-v3": key("kept")}
    loads(store, "kept")
    fs.unlink(store.layout.entry("records", key("young")))
    collect(store, Policy(grace_seconds=0))
    assert store.specs.all_keys() == [key("shared spec")], "an index without any record goes"


def test_a_root_of_a_file_ends_with_the_file(store: Store, fs: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lock files and recipes keep what they name until they are removed or moved; pins hold whatever becomes of a file."""
    from time import time

    write_bytes("/cluster/a.lock.toml", b"lock", fs=store.fs)
    pin(store, "lock", "/cluster/a.lock.toml", [key("old")], file="/cluster/a.lock.toml")
    pin(store, "lock", "/cluster/b.lock.toml", [key("other")], file="/cluster/b.lock.toml")
    assert store.roots.put("lock", "/cluster/a.lock.toml", [key("old")], file="/cluster/a.lock.toml") is False
    assert key("old") in store.roots.kept(time()) and key("other") not in store.roots.kept(time())
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("lqcd_aot.store.roots.host_name", lambda: "another-host")
        assert key("other") in store.roots.kept(time()), "whether it is there is not for another host to say"
    done = collect(store, Policy(DAY, grace_seconds=0))
    assert set(done.evicted) == {key("other")}
    assert [root.name for root in store.roots.all() if root.kind == "lock"] == ["/cluster/a.lock.toml"]
    fs.rename("/cluster/a.lock.toml", "/cluster/moved.lock.toml")
    assert set(collect(store, Policy(DAY, grace_seconds=0)).evicted) == {key("old")}


def test_a_pin_outlives_its_file_and_a_file_that_cannot_be_looked_at_counts_as_there(
    store: Store, fs: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(store, "recipe", "/cluster/a.toml", [key("old")])
    store.roots.put("recipe", "/cluster/a.toml", [key("old"), key("young")], file="/cluster/a.toml")
    root = store.roots.get("recipe", "/cluster/a.toml")
    assert root is not None and root.file is None, "build says the same again, and pinned stays pinned"
    real = fs.stat

    def refused(path: str) -> object:
        if path.startswith("/home/"):
            raise PermissionError(13, "no", path)
        return real(path)

    monkeypatch.setattr(fs, "stat", refused)
    pin(store, "lock", "/home/other/b.lock.toml", [key("other")], file="/home/other/b.lock.toml")
    collect(store, Policy(DAY, grace_seconds=0))
    assert names(store) == {"kept", "old", "other", "young"}


def test_disposable_lists_may_be_absent_old_or_broken(
    store: Store, fs: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C12: `listing`, `verified` and gc/condemned.json only save time."""
    monkeypatch.setattr("lqcd_aot.store.verified.TICK_SECONDS", -1.0)  # files of this very moment count too
    usable = store.list_build_keys()
    store.records.listing.write(store.records.listing.look()[0])
    assert store.records.listing.look()[1] == 0, "with the list no record is read"
    assert store.list_build_keys() == usable
    publish(store, "new", spec="spec of new")
    assert store.records.listing.look()[1] == 1
    assert key("new") in store.list_build_keys()
    store.verify(quick=True)
    assert store.verify(quick=True).trusted == len(store.blobs.digests())
    for path in (store.layout.listing, store.layout.verified):
        fs.damage(path, store.fs.read(path)[:-7] + b"garbage")
    assert set(store.list_build_keys()) == {*usable, key("new")}
    assert store.verify(quick=True).trusted == 0
    store.fs.unlink(store.layout.listing)
    assert set(store.list_build_keys()) == {*usable, key("new")}


def test_a_changed_file_is_seen_through_the_lists(tmp_path: Path) -> None:
    """On the disk: same size, other bytes, other mtime or inode."""
    store = open_store(tmp_path / "store", create=True)
    publish(store, "a")
    publish(store, "b", spec="other")
    store.records.listing.write(store.records.listing.look()[0])
    store.verify(quick=True)
    record = store.record(key("a"))
    assert record is not None
    for path in (store.layout.entry("records", key("a")), store.layout.blob(record["outputs"]["code"]["sha256"])):
        data = bytearray(Path(path).read_bytes())
        data[20] ^= 1
        Path(path).unlink()
        Path(path).write_bytes(bytes(data))
        Path(path).chmod(0o444)
    again = open_store(store.root)
    assert again.list_build_keys() == [key("b")]
    assert {problem.kind for problem in again.verify(quick=True).problems} == {"record", "blob"}


def test_the_verbs_say_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """store ls --all, stats, gc, pins: nothing is left out silently."""
    root = tmp_path / "store"
    store = open_store(root, create=True)
    publish(store, "a")
    publish(store, "f", spec="foreign", target="aarch64")
    store.put_blob(b"orphan")
    broken = Path(store.layout.entry("records", key("broken")))
    broken.parent.mkdir(exist_ok=True)
    broken.write_bytes(b"{}")
    held = store.lease(key("building"), seconds=60)
    store.roots.put("pin", "mine", [key("a")])
    assert run(["store", "ls", "--store", str(root), "--all"]) == 0
    out = capsys.readouterr().out
    for word in ("usable", "invalid", "foreign", "orphan", "held", "pin mine", "does not match its own seal"):
        assert word in out, word
    assert run(["store", "ls", "--store", str(root)]) == 0
    assert "not shown: 1 blob orphan, 1 lease held, 1 record foreign, 1 record invalid, 1 root kept" in capsys.readouterr().out
    assert run(["store", "stats", "--store", str(root), "--json"]) == 0
    assert '"unreferenced_bytes": 6' in capsys.readouterr().out
    assert run(["store", "gc", "--store", str(root), "--dry-run"]) == 0
    assert "would evict 0 of 3 records" in capsys.readouterr().out
    assert run(["store", "gc", "--store", str(root), "--max-bytes", "3X"]) == 2
    assert run(["store", "unpin", "mine", "--store", str(root)]) == 0
    assert run(["store", "unpin", "mine", "--store", str(root)]) == 2
    assert held is not None
    held.release()
