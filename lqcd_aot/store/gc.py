"""Garbage collection: mark, write the mark down, evict records, sweep bytes. Safe beside builders, readers, exports, other runs.

Owns the order, which is what makes it safe without a lock and interruptible anywhere:
1. `gc_mark` reads everything and decides; what is unreferenced, and since when, goes to gc/condemned.json.
2. Records go, their folders are synchronised, then the mentions in the spec indices go. A pin that came meanwhile brings its
   record back before any byte of it is touched.
3. Bytes go that have been unreferenced for the grace window, after a second look at records/. A builder that stores bytes or a
   record that were there already writes them anew, so they are young, and what is found young is given back (departing.py).
A run that ends anywhere leaves unreferenced bytes or a stale mention, both harmless; the next run gives back what was
half-removed, begins by marking again, and takes out the mentions.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.store.departing import Departing
from lqcd_aot.store.gc_mark import Mark, Policy, mark
from lqcd_aot.store.temporaries import sweep as sweep_temporaries
from lqcd_aot.store.writer import translated
from lqcd_runtime.errors import StoreError

if TYPE_CHECKING:
    from lqcd_aot.store.store import Store

BATCH = 1000


class Collected(NamedTuple):
    """What a run did, or with dry_run would do.

    evicted: {build key: reason}; swept: digests; waiting: bytes that are unreferenced but still within the grace window; kept:
    what stays referenced; files: old failures, divergences and corrupt entries. *_bytes: of unique bytes.
    """

    root: str
    dry_run: bool
    records: int
    evicted: dict[str, str]
    swept: tuple[str, ...]
    swept_bytes: int
    waiting: int
    waiting_bytes: int
    kept: int
    kept_bytes: int
    files: int
    temporaries: int
    leases: int

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {**self._asdict(), "swept": list(self.swept)}


def collect(store: Store, policy: Policy | None = None, *, dry_run: bool = False, now: float | None = None) -> Collected:
    """One run. now: seconds since the epoch, for tests. Errors: StoreError; what was removed until then was garbage."""
    policy = policy or Policy()
    with translated(store.root):
        if dry_run:
            return _report(store, mark(store, policy, now), dry_run=True, temporaries=0, leases=0)
        store.writer.folder(store.layout.folder("gc"))
        departing = Departing(store.fs, store.layout, store.writer)
        departing.recover()
        return _collect(store, policy, mark(store, policy, now), departing)


def _collect(store: Store, policy: Policy, marked: Mark, departing: Departing) -> Collected:
    with contextlib.suppress(StoreError):  # on a full disk the list finds room at the end of the run, when something has gone
        store.condemned.write(marked.condemned)
    evicted = {key: marked.evict[key] for key in _evict(store, marked, departing)}
    left = {key: one for key, one in marked.records.items() if key not in evicted}
    _tidy_indices(store, frozenset(left), marked.now - policy.grace_seconds)
    swept = _sweep(store, marked, policy, departing)
    for path in marked.files:
        store.writer.remove(path)
    temporaries, leases = sweep_temporaries(store.fs, store.layout), store.leases.drop_over()
    store.roots.drop_over(marked.now)
    gone = frozenset(swept)
    store.condemned.write({digest: at for digest, at in marked.condemned.items() if digest not in gone})
    store.records.listing.write(left)
    done = marked._replace(evict=evicted, sweep=swept)
    return _report(store, done, dry_run=False, temporaries=temporaries, leases=leases)


def _report(store: Store, marked: Mark, *, dry_run: bool, temporaries: int, leases: int) -> Collected:
    going = frozenset(marked.sweep)
    waiting = [digest for digest in marked.condemned if digest not in going]
    return Collected(
        root=store.root,
        dry_run=dry_run,
        records=len(marked.records) - len(marked.evict),
        evicted=marked.evict,
        swept=marked.sweep,
        swept_bytes=marked.swept_bytes,
        waiting=len(waiting),
        waiting_bytes=sum(marked.blobs[digest].size for digest in waiting),
        kept=sum(digest in marked.referenced for digest in marked.blobs),
        kept_bytes=marked.kept_bytes,
        files=len(marked.files),
        temporaries=temporaries,
        leases=leases,
    )


def _evict(store: Store, marked: Mark, departing: Departing) -> list[str]:
    """Remove the records, a batch at a time; the build keys that are gone."""
    gone: list[str] = []
    keys = iter(marked.evict)
    while batch := list(islice(keys, BATCH)):
        kept = store.roots.kept(marked.now) | store.leases.live()
        taken = [key for key in batch if key not in kept and departing.take_record(key, marked.records[key].stat)]
        # Whoever pins puts the root down first and then looks whether its records are there.
        pinned = store.roots.kept(marked.now) if taken else frozenset()
        for key in sorted(pinned & set(taken)):
            departing.give_back(key)
        ended = [key for key in taken if key not in pinned and departing.end_record(key)]
        # The records are gone for good before a mention, or a byte of them, goes.
        for folder in sorted({os.path.dirname(store.layout.entry("records", key)) for key in ended}):
            store.writer.settle(f"{folder}/-")
        for spec_key in sorted({marked.records[key].spec_key for key in ended}):
            store.specs.forget(spec_key, store.records.is_there)
        gone += ended
    return gone


def _tidy_indices(store: Store, left: frozenset[str], since: float) -> None:
    """Take out what an interrupted run left: mentions of records that are gone.

    A builder names its record before it publishes it, and may be killed between: an index that was written after `since` waits.
    """
    for spec_key, stat in store.specs.stats().items():
        if stat.mtime <= since and not left.issuperset(store.specs.get(spec_key).values()):
            store.specs.forget(spec_key, store.records.is_there)


def _sweep(store: Store, marked: Mark, policy: Policy, departing: Departing) -> tuple[str, ...]:
    """Remove the bytes; the digests that are gone."""
    if not marked.sweep:
        return ()
    named = frozenset(_named_since(store, marked))
    since = marked.now - policy.grace_seconds
    return tuple(digest for digest in marked.sweep if digest not in named and departing.take_bytes(digest, since))


def _named_since(store: Store, marked: Mark) -> Iterator[str]:
    """Digests named by records that were not there, or were others, when the mark was made, or that were kept after all."""
    records, _ = store.records.listing.look(marked.records)
    for build_key, one in records.items():
        then = marked.records.get(build_key)
        if then is None or then.stat != one.stat or build_key in marked.evict:
            yield from (digest for digest, _ in one.outputs or ())
