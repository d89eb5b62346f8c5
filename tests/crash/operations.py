"""The table of everything that writes, for the enumeration of faults (test_operations.py). Who adds a way to write adds a row.

An operation is done in a store in memory at ROOT. `before` makes the old state; `run` may be done any number of times; `holds`
asserts what must be true of the store at any moment after, whether `run` came to its end or not; `done`, what is true after that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lqcd_aot.keys import BUILD_TAG
from lqcd_aot.ship.closure import take_in
from lqcd_aot.ship.content import Content
from lqcd_aot.store import Store
from lqcd_aot.store.gc import collect
from lqcd_aot.store.gc_mark import DAY, Policy
from lqcd_aot.store.inventory import read_again
from lqcd_aot.store.outfile import write_bytes
from lqcd_aot.store.pins import pin
from lqcd_aot.trust.policy import Verdict
from lqcd_runtime.conventions import CONVENTIONS
from lqcd_runtime.digest import tagged_sha256
from lqcd_runtime.signature import Spec
from tests.crash.memory_fs import MemoryFileSystem
from tests.crash.records_for_tests import key, make_record, publish

ROOT = "/cluster/store"
AT_ONCE = Policy(keep_seconds=DAY, grace_seconds=0)
BESIDE = Policy(keep_seconds=DAY, grace_seconds=3600)
JUNK = b"nothing names these bytes"


class Operation(NamedTuple):
    before: Callable[[MemoryFileSystem, Store], object]
    run: Callable[[Store], object]
    holds: Callable[[Store], object]
    done: Callable[[Store], object]  # False is as bad as an assertion


def loads(store: Store, name: str) -> None:
    """The record is there, its bytes are right, and its spec leads to it."""
    record = store.record(key(name))
    assert record is not None, name
    assert store.read_blob(record["outputs"]["code"]["sha256"])
    assert key(name) in {found["build_key"] for found in store.records_of_spec(record["spec_key"]).values()}


def loads_or_misses(store: Store, name: str) -> None:
    """As `loads`, or no file of that name: never a record without its bytes."""
    if store.records.is_there(key(name)):
        loads(store, name)


def old_and_new(fs: MemoryFileSystem, store: Store) -> None:
    """kept: rooted and old; old: neither rooted nor young, alone in its spec; other: the same beside kept; young. And junk."""
    publish(store, "kept", spec="shared spec")
    publish(store, "other", spec="shared spec", target="x86-64-v2")
    publish(store, "old", spec="spec of old")
    publish(store, "young", spec="spec of young")
    store.roots.put("recipe", "/recipes/a.toml", [key("kept")])
    junk = store.put_blob(JUNK)
    for name in ("kept", "other", "old"):
        record = store.record(key(name))
        assert record is not None
        fs.age(store.layout.entry("records", key(name)), 40 * DAY)
        fs.age(store.layout.blob(record["outputs"]["code"]["sha256"]), 40 * DAY)
    fs.age(store.layout.blob(junk), 40 * DAY)
    # What an earlier run found, long enough ago.
    store.condemned.write({junk: 1})


def kept_and_young_are_there(store: Store) -> None:
    loads(store, "kept")
    loads(store, "young")
    loads_or_misses(store, "old")
    loads_or_misses(store, "other")


def collected(store: Store) -> None:
    assert not store.records.is_there(key("old"))
    assert not store.records.is_there(key("other"))
    assert store.specs.get(key("spec of old")) == {}
    assert key("kept") in store.specs.get(key("shared spec")).values()
    assert len(store.blobs.digests()) == 2


def pinned(store: Store) -> None:
    (root,) = [root for root in store.roots.all() if root.kind == "pin"]
    assert root.build_keys == (key("old"),)
    assert key("old") in store.roots.kept(0.0)


def damaged(fs: MemoryFileSystem, store: Store) -> None:
    old_and_new(fs, store)
    record = store.record(key("old"))
    assert record is not None
    fs.damage(store.layout.blob(record["outputs"]["code"]["sha256"]), b"rotten")
    fs.unlink(store.layout.entry("specs", key("spec of young")))


def repaired(store: Store) -> None:
    assert store.verify().problems == ()
    loads(store, "young")
    assert store.record(key("old")) is None


def flipped(fs: MemoryFileSystem, store: Store) -> None:
    """Bytes of the right size that are wrong."""
    old_and_new(fs, store)
    record = store.record(key("old"))
    assert record is not None
    path = store.layout.blob(record["outputs"]["code"]["sha256"])
    fs.damage(path, bytes([store.fs.read(path)[0] ^ 1]) + store.fs.read(path)[1:])


def heal(store: Store) -> None:
    """What a build does about them."""
    if store.sound_record(key("old")) is None:
        publish(store, "old", spec="spec of old")
    read_again(store, [key("old")])


def nothing(store: Store) -> None:
    """Nothing more to hold."""


def importable() -> Content:
    """One artifact as it comes out of a bundle; its bytes are the junk of `old_and_new`, and old."""
    spec = Spec("wilson", (4, 4, 4, 4))
    components = {"spec": spec.as_dict(), "target": "x86-64-v3"}
    build_key = tagged_sha256(BUILD_TAG, components)
    made = {"build_key": build_key, "spec_key": spec.key, "spec": spec.as_dict(), "components": components}
    record = {**make_record("imported", JUNK), **made, "conventions": CONVENTIONS}
    return Content("made", {}, {build_key: record}, lambda digest: JUNK, {}, {})


def imported(store: Store) -> None:
    (build_key,) = importable().records
    record = store.record(build_key)
    assert record is not None
    assert store.read_blob(record["outputs"]["code"]["sha256"]) == JUNK
    assert store.records_of_spec(record["spec_key"]) == {"x86-64-v3": record}


def absent_or_whole(store: Store) -> None:
    """What export, sign and lock write: a file outside the store, with its old content or its new one."""
    kept_and_young_are_there(store)
    assert store.fs.read(OUTSIDE) in (b"old", PRODUCT)


OUTSIDE = "/cluster/product.lqcd"
PRODUCT = b"a bundle, a signature, a lock" * 99


OPERATIONS: dict[str, Operation] = {
    "gc": Operation(old_and_new, lambda s: collect(s, AT_ONCE), kept_and_young_are_there, collected),
    "gc with grace": Operation(old_and_new, lambda s: collect(s, BESIDE), kept_and_young_are_there, nothing),
    "pin": Operation(old_and_new, lambda s: pin(s, "pin", "mine", [key("old")]), kept_and_young_are_there, pinned),
    "keep while a file is there": Operation(
        lambda fs, s: (old_and_new(fs, s), write_bytes(OUTSIDE, PRODUCT, fs=s.fs)),
        lambda s: pin(s, "lock", OUTSIDE, [key("old")], file=OUTSIDE),
        kept_and_young_are_there,
        lambda s: s.roots.is_over(s.roots.all()[0], 0.0) is False and key("old") in s.roots.kept(0.0),
    ),
    "use": Operation(
        old_and_new, lambda s: s.used([key("old")]), lambda s: (kept_and_young_are_there(s), loads(s, "old")), nothing
    ),
    "heal": Operation(flipped, heal, lambda s: loads(s, "kept"), lambda s: loads(s, "old")),
    "unpin": Operation(
        lambda fs, s: (old_and_new(fs, s), pin(s, "pin", "mine", [key("old")])),
        lambda s: s.roots.remove("pin", "mine"),
        kept_and_young_are_there,
        lambda s: [root.kind for root in s.roots.all()] == ["recipe"],
    ),
    "import": Operation(
        old_and_new,
        lambda s: take_in(importable(), s, Verdict(True, ("tester",), "signed")),
        kept_and_young_are_there,
        imported,
    ),
    "export, sign, lock": Operation(
        lambda fs, s: (old_and_new(fs, s), write_bytes(OUTSIDE, b"old", fs=s.fs)),
        lambda s: write_bytes(OUTSIDE, PRODUCT, fs=s.fs),
        absent_or_whole,
        lambda s: s.fs.read(OUTSIDE) == PRODUCT,
    ),
    "verify --repair": Operation(damaged, lambda s: s.verify(repair=True), lambda s: loads(s, "kept"), repaired),
}
