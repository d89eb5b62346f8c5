"""Everything a store folder holds, each thing with its state and the reason: nothing is ever left out silently.

Owns the words for states. Reads only. What a machine can run is the caller's knowledge.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.store.blobs import listed
from lqcd_aot.store.record_format import Record
from lqcd_aot.store.temporaries import stale

if TYPE_CHECKING:
    from lqcd_aot.store.store import Store

USABLE, FOREIGN, INVALID, NEWER = "usable", "foreign", "invalid", "newer"


class Item(NamedTuple):
    """kind: record, blob, failure, divergence, lease, root, corrupt, temporary; name: key, digest or file; state: one word;
    reason: one sentence or ""; record: of a record that can be read."""

    kind: str
    name: str
    state: str
    reason: str
    record: Record | None = None

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {"kind": self.kind, "name": self.name, "state": self.state, "reason": self.reason}


def contents(store: Store, refusal: Callable[[Record], str | None] = lambda record: None) -> Iterator[Item]:
    """Every item, records first. refusal(record): why this machine cannot run an artifact, None where it can."""
    named: set[str] = set()
    for key in store.records.all_keys():
        item = _record(store, key, refusal)
        if item.record is not None:
            named |= {output["sha256"] for output in item.record["outputs"].values()}
        yield item
    yield from _failures(store, named)
    yield from _orphans(store, named)
    for name in store.records.divergences():
        yield Item("divergence", name, "recorded", "a second build of this key made other bytes; the first were kept")
    for name in store.leases.all_names():
        holder = store.leases.holder(name)
        state = "unreadable" if holder is None else "over" if name not in store.leases.live() else "held"
        yield Item("lease", name, state, f"by {holder}" if holder else "cannot be read")
    now = time.time()
    for root in store.roots.all():
        state = "over" if store.roots.is_over(root, now) else "kept"
        yield Item("root", f"{root.kind} {root.name}", state, f"keeps {len(root.build_keys)} build keys")
    for name in listed(store.fs, store.layout.folder("corrupt")):
        yield Item("corrupt", name, "aside", "was not what its name says")
    dead = frozenset(stale(store.fs, store.layout))
    for name in listed(store.fs, store.layout.tmp):
        yield Item("temporary", name, "dead" if name in dead else "in use", "its writer is gone" if name in dead else "")


def _record(store: Store, key: str, refusal: Callable[[Record], str | None]) -> Item:
    record, fact = store.records.examine(key)
    if record is not None:
        reason = refusal(record)
        return Item("record", key, FOREIGN if reason else USABLE, reason or "", record)
    if fact is not None:
        return Item("record", key, INVALID, fact)
    return Item("record", key, NEWER, "was written by a later release, or has just gone")


def _failures(store: Store, named: set[str]) -> Iterator[Item]:
    for key in store.failures.all_keys():
        failure = store.failures.get(key)
        if failure is None:
            yield Item("failure", key, INVALID, "cannot be read")
            continue
        if failure.log_sha256 is not None:
            named.add(failure.log_sha256)
        again = "not tried again by itself" if failure.sticks else "tried again by the next build"
        yield Item("failure", key, failure.failure_class, f"{failure.name}: {failure.fact}; {again}")


def _orphans(store: Store, named: set[str]) -> Iterator[Item]:
    since = store.condemned.read()
    now = time.time()
    for digest in store.blobs.digests():
        if digest not in named:
            known = f", known for {(now - since[digest]) / 3600:.1f} h" if digest in since else ""
            yield Item("blob", digest, "orphan", f"no usable record or failure names it{known}")
