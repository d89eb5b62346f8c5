"""Every call of every way to write into the store goes wrong in every way: what is left is the old state or the new one.

C1 order of publish, C6 errors that pass, C8 killed at any call, C13 full and read-only: artifact-stores page, section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from lqcd_aot.store import Failure, Store, open_store
from lqcd_runtime.errors import StoreError
from tests.crash.faults import KILLS, KINDS, LASTING, PASSING, FaultyFileSystem, Killed
from tests.crash.memory_fs import MemoryFileSystem
from tests.crash.records_for_tests import key, publish

ROOT = "/cluster/store"
OTHER = b"other bytes" * 5


def damaged_blob(fs: MemoryFileSystem, store: Store) -> None:
    record = publish(store, "a").record
    fs.damage(store.layout.blob(record["outputs"]["code"]["sha256"]), b"rotten")


def deleted_blob(fs: MemoryFileSystem, store: Store) -> None:
    record = publish(store, "a").record
    fs.unlink(store.layout.blob(record["outputs"]["code"]["sha256"]))


def damaged_record(fs: MemoryFileSystem, store: Store) -> None:
    publish(store, "a")
    path = store.layout.entry("records", key("a"))
    fs.damage(path, fs.read(path)[:-9])


def fail(store: Store) -> None:
    store.record_failure(Failure(key("f"), "f@x", "deterministic", 1, "refused", store.put_blob(b"log"), {"compiler": "c"}))


def nothing(fs: MemoryFileSystem, store: Store) -> None:
    """The store as `create` makes it."""


# name: (what is there before, what is done under faults)
SCENARIOS: dict[str, tuple[Callable[[MemoryFileSystem, Store], None] | None, Callable[[Store], object]]] = {
    "first record of a new store": (None, lambda s: publish(s, "a")),
    "record in an empty store": (nothing, lambda s: publish(s, "a")),
    "second target of a spec": (lambda fs, s: publish(s, "b", target="x86-64-v2"), lambda s: publish(s, "a")),
    "newer build of a target": (lambda fs, s: publish(s, "b"), lambda s: publish(s, "a")),
    "same record again": (lambda fs, s: publish(s, "a"), lambda s: publish(s, "a")),
    "other bytes for a key": (lambda fs, s: publish(s, "a", OTHER), lambda s: publish(s, "a")),
    "healing a damaged blob": (damaged_blob, lambda s: publish(s, "a")),
    "healing a deleted blob": (deleted_blob, lambda s: publish(s, "a")),
    "healing a damaged record": (damaged_record, lambda s: publish(s, "a")),
    "recording a failure": (lambda fs, s: publish(s, "a"), fail),
}
# What the damage itself leaves for verify to name until the next publish heals it.
DAMAGED = ("healing a damaged blob", "healing a deleted blob", "healing a damaged record")


@pytest.fixture
def reborn(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and everything this process wrote until now is the work of a dead process."""
    life = [1]
    monkeypatch.setattr("lqcd_aot.store.owner.start_time", lambda pid: life[0])

    def again() -> None:
        life[0] += 1

    return again


def prepared(before: Callable[[MemoryFileSystem, Store], object] | None, *, hard_links: bool = True) -> MemoryFileSystem:
    fs = MemoryFileSystem(hard_links=hard_links)
    if before is not None:
        before(fs, open_store(ROOT, create=True, fs=fs))
    return fs


def run(fs: FaultyFileSystem, action: Callable[[Store], object]) -> str:
    try:
        action(open_store(ROOT, create=True, fs=fs))
    except Killed:
        return "killed"
    except StoreError:
        return "refused"
    return "done"


def survivors(fs: MemoryFileSystem, killed: bool) -> list[MemoryFileSystem]:
    """What the next process may find: the page cache as it is, or what a power loss keeps, in two ways."""
    lost = [fs.after_power_loss(entries_first=False), fs.after_power_loss(entries_first=True)]
    return [*lost, fs] if killed else [fs]


def judge(fs: MemoryFileSystem, action: Callable[[Store], object], name: str, outcome: str) -> None:
    """The store is sound, complete or without the record, and doing it again succeeds and survives a power loss."""
    store = open_store(ROOT, create=True, fs=fs)
    if name not in DAMAGED:
        assert store.verify().problems == ()
    was_failure = name == "recording a failure"
    record = store.record(key("a"))
    if record is not None and name != "healing a damaged blob":
        assert store.read_blob(record["outputs"]["code"]["sha256"])
    if outcome == "done":
        assert record is not None
        assert store.failure(key("f")) is not None or not was_failure
    action(store)
    report = store.verify()
    assert report.problems == ()
    for durable in (False, True):
        later = open_store(ROOT, fs=fs.after_power_loss(entries_first=durable))
        assert later.verify().problems == ()
        kept = later.record(key("a"))
        assert kept is not None
        assert later.read_blob(kept["outputs"]["code"]["sha256"])
        assert later.records_of_spec(key("spec"))["x86-64-v3"]["build_key"] == key("a")
        assert (later.failure(key("f")) is not None) == was_failure


CASES = [(name, True) for name in SCENARIOS] + [("record in an empty store", False), ("other bytes for a key", False)]


@pytest.mark.parametrize(("name", "hard_links"), CASES, ids=[f"{name}{'' if links else ', no links'}" for name, links in CASES])
def test_every_call_fails_in_every_way(name: str, hard_links: bool, reborn: Callable[[], None], cases: Counter[str]) -> None:
    before, action = SCENARIOS[name]
    counter = FaultyFileSystem(prepared(before, hard_links=hard_links))
    assert run(counter, action) == "done"
    count = 0
    for at in range(len(counter.calls)):
        for kind in KINDS:
            if kind.startswith("short write") and counter.calls[at] != "write":
                continue
            inner = prepared(before, hard_links=hard_links)
            outcome = run(FaultyFileSystem(inner, at, kind), action)
            where = f"call {at} ({counter.calls[at]}), {kind}"
            if kind in PASSING or kind == "short write":
                assert outcome == "done", where
            if kind in KILLS or kind == "short write then kill":
                assert outcome == "killed", where
                reborn()
            for fs in survivors(inner, outcome == "killed"):
                judge(fs, action, name, outcome)
                count += 1
    assert count >= 3 * len(counter.calls) * len(KILLS)
    cases["publish"] += count


@pytest.mark.parametrize("kind", LASTING)
def test_full_or_read_only_store_is_one_clear_error_and_leaves_nothing(kind: str) -> None:
    """C13: no room, no right: one StoreError (exit code 10) that says which, and no file of ours stays behind."""
    before, action = SCENARIOS["record in an empty store"]
    counter = FaultyFileSystem(prepared(before))
    run(counter, action)
    refusals = 0
    for at in range(len(counter.calls)):
        inner = prepared(before)
        faulty = FaultyFileSystem(inner, at, kind)
        try:
            action(open_store(ROOT, create=True, fs=faulty))
        except StoreError as error:
            refusals += 1
            says = "has no room left" if kind != "EROFS" else "cannot be written"
            assert error.fact == f"store {ROOT}: {says}"
            assert error.exit_code == 10
            assert error.hint
            assert kind in str(error.found)
        assert inner.listdir(f"{ROOT}/tmp") == [], f"call {at}"
    assert refusals > 0
