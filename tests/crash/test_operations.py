"""Every call of every operation of operations.py goes wrong in every way, and every other operation happens at every call.

C8 killed at any call, C6 errors that pass, C13 full and read-only, C11 collection beside everything, C10 records before bytes,
with power losses that lose names or bytes that were not synchronised. A bad state is a record without its bytes, a kept artifact
that does not load, or an operation that cannot be done again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from lqcd_aot.store import Store, open_store
from lqcd_aot.store.gc import collect
from lqcd_aot.store.pins import pin
from lqcd_runtime.errors import StoreError, UsageError
from tests.crash.faults import KINDS, LATE, FaultyFileSystem, Killed
from tests.crash.memory_fs import MemoryFileSystem
from tests.crash.operations import BESIDE, JUNK, OPERATIONS, ROOT, Operation, loads, loads_or_misses, old_and_new
from tests.crash.records_for_tests import key, publish

# The damage itself is a problem until it is repaired.
UNSOUND_BEFORE = ("verify --repair", "heal")


@pytest.fixture
def reborn(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and everything this process wrote until now is the work of a dead process."""
    life = [1]
    monkeypatch.setattr("lqcd_aot.store.owner.start_time", lambda pid: life[0])

    def again() -> None:
        life[0] += 1

    return again


def prepared(operation: Operation) -> MemoryFileSystem:
    fs = MemoryFileSystem()
    operation.before(fs, open_store(ROOT, create=True, fs=fs))
    fs.settle()
    return fs


def attempt(fs: FaultyFileSystem, run: Callable[[Store], object]) -> str:
    try:
        run(open_store(ROOT, fs=fs))
    except Killed:
        return "killed"
    except (StoreError, FileNotFoundError):  # the latter where something was not visible that is always there
        return "refused"
    return "done"


def judge(fs: MemoryFileSystem, name: str, outcome: str) -> None:
    operation = OPERATIONS[name]
    store = open_store(ROOT, fs=fs)
    operation.holds(store)
    if name not in UNSOUND_BEFORE:
        assert store.verify().problems == ()
    if outcome == "done":
        assert operation.done(store) is not False
    operation.run(store)
    operation.holds(store)
    assert operation.done(store) is not False
    assert open_store(ROOT, fs=fs).verify().problems == ()


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_call_fails_in_every_way(name: str, reborn: Callable[[], None], cases: Counter[str]) -> None:
    operation = OPERATIONS[name]
    counter = FaultyFileSystem(prepared(operation))
    assert attempt(counter, operation.run) == "done"
    count = 0
    for at, call in enumerate(counter.calls):
        for kind in (*KINDS, LATE):
            if kind.startswith("short write") and call != "write":
                continue
            if kind == LATE and call not in ("read", "sha256", "stat"):
                continue
            inner = prepared(operation)
            outcome = attempt(FaultyFileSystem(inner, at, kind), operation.run)
            found = [inner]
            if outcome == "killed":
                reborn()
                found += [inner.after_power_loss(entries_first=first) for first in (False, True)]
            for fs in found:
                try:
                    judge(fs, name, "done" if outcome == "done" and kind != LATE else outcome if kind != LATE else "late")
                except Exception as error:
                    raise AssertionError(f"{name}, call {at} ({call}), {kind}, {outcome}") from error
                count += 1
    assert count >= 3 * len(counter.calls)
    cases[name] += count


def collect_beside(store: Store) -> str:
    collect(store, BESIDE)
    return "young"


def publish_old(store: Store) -> str:
    publish(store, "old", spec="spec of old")
    return "old"


def publish_junk(store: Store) -> str:
    publish(store, "heir", JUNK, spec="spec of heir")
    return "heir"


def pin_old(store: Store) -> str:
    try:
        pin(store, "pin", "mine", [key("old")])
    except UsageError:
        return "young"
    return "old"


def repair(store: Store) -> str:
    store.verify(repair=True)
    return "young"


# Each returns an artifact that must load from now on.
ACTORS: dict[str, Callable[[Store], str]] = {
    "gc": collect_beside,
    "publish what goes": publish_old,
    "publish bytes that go": publish_junk,
    "pin what goes": pin_old,
    "verify --repair": repair,
}
PAIRS = [(first, second) for first in ACTORS for second in ACTORS]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{a} while {b}" for a, b in PAIRS])
def test_everything_may_happen_at_every_call_of_everything(
    first: str, second: str, monkeypatch: pytest.MonkeyPatch, cases: Counter[str]
) -> None:
    """The second happens from beginning to end between two calls of the first, and no lease excludes it."""
    monkeypatch.setattr("lqcd_aot.store.leases.Leases.wait", lambda self, name, seconds: self.__class__.lent(self, name))
    monkeypatch.setattr("lqcd_aot.store.leases.Leases.lent", lambda self, name: _Unheld(), raising=False)
    operation = OPERATIONS["gc with grace"]
    counter = FaultyFileSystem(prepared(operation))
    ACTORS[first](open_store(ROOT, fs=counter))
    for at, call in enumerate(counter.calls):
        inner = prepared(operation)
        promised: list[str] = []
        faulty = FaultyFileSystem(
            inner, at, "meanwhile", lambda fs=inner, to=promised: to.append(ACTORS[second](open_store(ROOT, fs=fs)))
        )  # fmt: skip
        promised.append(ACTORS[first](open_store(ROOT, fs=faulty)))
        store = open_store(ROOT, fs=inner)
        try:
            for name in ("kept", "young", *promised):
                loads(store, name)
            loads_or_misses(store, "other")
            assert store.verify().problems == ()
        except (AssertionError, StopIteration) as error:
            raise AssertionError(f"{second} at call {at} ({call}) of {first}") from error
    cases["interleavings"] += len(counter.calls)


class _Unheld:
    """A lease that excludes nobody."""

    def release(self) -> None:
        """Nothing was held."""


def test_a_collection_that_cannot_read_everything_removes_nothing() -> None:
    """Half of the roots, records or bytes is no ground for removing anything."""
    operation = OPERATIONS["gc"]
    counter = FaultyFileSystem(prepared(operation))
    attempt(counter, operation.run)
    first_removal = [at for at, call in enumerate(counter.calls) if call == "rename"][1]  # the first puts down the mark
    refused = 0
    for at in range(first_removal):
        inner = prepared(operation)
        before = open_store(ROOT, fs=inner).blobs.digests()
        if attempt(FaultyFileSystem(inner, at, "EIO"), operation.run) == "refused":
            refused += 1
            store = open_store(ROOT, fs=inner)
            assert store.blobs.digests() == before
            loads(store, "old")
    assert refused > 0


def test_old_and_new_is_what_it_says() -> None:
    fs = MemoryFileSystem()
    store = open_store(ROOT, create=True, fs=fs)
    old_and_new(fs, store)
    for name in ("kept", "other", "old", "young"):
        loads(store, name)
    assert store.verify().problems == ()
