"""Garbage collection: mark, write the mark down, evict records, sweep bytes. Safe beside builders, readers, exports, other runs.

Owns the order, which is what makes it safe without a lock and interruptible anywhere:
1. `gc_mark` reads everything and decides; what is unreferenced, and since when, goes to gc/condemned.json.
2. Records go, their folders are synchronised, then the mentions in the spec indices go. A pin that came meanwhile brings its
   record back before any byte of it is touched.
3. Bytes go that have been unreferenced for the grace window, after a second look at records/; each is looked at once more in the
   call before its removal. A builder that stores bytes which were there already writes them anew (blobs.py), so they are young.
A run that ends anywhere leaves unreferenced bytes or a stale mention, both harmless; the next run begins by marking again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.store.gc_mark import Mark, Policy, mark
from lqcd_aot.store.record_format import parse_record
from lqcd_aot.store.sealed import seal
from lqcd_aot.store.temporaries import sweep as sweep_temporaries
from lqcd_aot.store.writer import translated

if TYPE_CHECKING:
    from lqcd_aot.store.record_format import Record
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
    marked = mark(store, policy, now)
    if dry_run:
        return _report(store, marked, dry_run=True, temporaries=0, leases=0)
    store.condemned.write(marked.condemned)
    evicted = {key: marked.evict[key] for key in _evict(store, marked)}
    swept = _sweep(store, marked, policy)
    with translated(store.root):
        for path in marked.files:
            store.writer.remove(path)
    temporaries, leases = sweep_temporaries(store.fs, store.layout), store.leases.drop_over()
    store.roots.drop_over(marked.now)
    gone = frozenset(swept)
    store.condemned.write({digest: at for digest, at in marked.condemned.items() if digest not in gone})
    left = {key: one for key, one in marked.records.items() if key not in evicted}
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


def _evict(store: Store, marked: Mark) -> list[str]:
    """Remove the records, a batch at a time; the build keys that are gone."""
    gone: list[str] = []
    keys = iter(marked.evict)
    while batch := list(islice(keys, BATCH)):
        kept = store.roots.kept(marked.now) | store.leases.live()
        removed: dict[str, Record] = {}
        for build_key in batch:
            record = _take(store, build_key) if build_key not in kept else None
            if record is not None:
                removed[build_key] = record
        # Whoever pins puts the root down first and then looks whether its records are there.
        pinned = store.roots.kept(marked.now) if removed else frozenset()
        for build_key in sorted(pinned & removed.keys()):
            store.writer.create(store.layout.entry("records", build_key), seal(removed.pop(build_key)))
        # The records are gone for good before a mention, or a byte of them, goes.
        for folder in sorted({os.path.dirname(store.layout.entry("records", key)) for key in removed}):
            store.writer.settle(f"{folder}/-")
        by_spec: dict[str, list[Record]] = {}
        for record in removed.values():
            by_spec.setdefault(record["spec_key"], []).append(record)
        for spec_key, records in by_spec.items():
            store.specs.forget(spec_key, records, store.records.is_there)
        gone += removed
    return gone


def _take(store: Store, build_key: str) -> Record | None:
    """Remove a record that still is what was marked; None where it is gone or another one."""
    path = store.layout.entry("records", build_key)
    with translated(store.root):
        try:
            record = parse_record(store.fs.read(path), build_key)
        except (FileNotFoundError, ValueError):
            return None
        store.writer.remove(path)
    return record


def _sweep(store: Store, marked: Mark, policy: Policy) -> tuple[str, ...]:
    """Remove the bytes; the digests that are gone."""
    if not marked.sweep:
        return ()
    named = frozenset(_named_since(store, marked))
    since = marked.now - policy.grace_seconds
    gone = []
    with translated(store.root):
        for digest in marked.sweep:
            if digest in named:
                continue
            path = store.layout.blob(digest)
            with contextlib.suppress(FileNotFoundError):
                if store.fs.stat(path).mtime <= since:
                    store.fs.unlink(path)
                    gone.append(digest)
    return tuple(gone)


def _named_since(store: Store, marked: Mark) -> Iterator[str]:
    """Digests named by records that were not there, or were others, when the mark was made, or that were kept after all."""
    with translated(store.root):
        records, _ = store.records.listing.look()
    for build_key, one in records.items():
        then = marked.records.get(build_key)
        if then is None or then.stat != one.stat or build_key in marked.evict:
            yield from (digest for digest, _ in one.outputs or ())
