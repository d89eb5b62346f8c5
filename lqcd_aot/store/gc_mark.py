"""The mark phase of garbage collection: what is kept, what goes, and why. Reads only; half an answer is an error.

Owns the policy. Kept are records that a root names, that somebody is building, that are younger than `keep_seconds` or the grace
window, and of the rest the youngest that fit into `max_bytes`; bytes that a kept record, a remembered failure, a divergence or
anything unreadable names.
"""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from lqcd_aot.store.blobs import listed, scanned
from lqcd_aot.store.fs import FileStat
from lqcd_aot.store.listing import Listed

if TYPE_CHECKING:
    from lqcd_aot.store.store import Store

DAY = 24 * 3600.0
KEEP_SECONDS = 30 * DAY
GRACE_SECONDS = DAY
_DIGEST = re.compile(rb"[0-9a-f]{64}")


class Policy(NamedTuple):
    """What may go.

    keep_seconds: records that no root keeps stay until they are older. max_bytes: of unique bytes, None for no bound; what roots
    keep is never removed for it. grace_seconds: bytes go only after they were unreferenced, and not written, for so long: longer
    than any build, export or load that may run beside; 0 only where nothing else uses the store.
    """

    keep_seconds: float = KEEP_SECONDS
    max_bytes: int | None = None
    grace_seconds: float = GRACE_SECONDS


class Mark(NamedTuple):
    """What goes and what stays.

    records, blobs: all, as found. evict: {build key: reason} in the order they go. referenced: digests that what is kept names.
    condemned: {digest: since} of the others; sweep: those whose time is up. files: paths of old failures, divergences,
    corrupt entries and logs.
    """

    now: float
    records: dict[str, Listed]
    evict: dict[str, str]
    blobs: dict[str, FileStat]
    referenced: frozenset[str]
    condemned: dict[str, int]
    sweep: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def kept_bytes(self) -> int:
        """Unique bytes that stay referenced."""
        return sum(stat.size for digest, stat in self.blobs.items() if digest in self.referenced)

    @property
    def swept_bytes(self) -> int:
        """Bytes that go in this run."""
        return sum(self.blobs[digest].size for digest in self.sweep)


def mark(store: Store, policy: Policy, now: float | None = None) -> Mark:
    """Decide. Errors: OSError where anything cannot be read: nothing may be removed on incomplete knowledge."""
    now = time.time() if now is None else now
    # Bytes before records: whoever stores bytes after this look finds them younger than any grace window.
    blobs = store.blobs.stats()
    records, _ = store.records.listing.look()
    files, extra = _evidence(store, policy, now)
    references = {key: _references(store, key, one) for key, one in records.items()}
    evict = _evictions(store, policy, now, records, references, blobs)
    before = {digest for outputs in references.values() for digest in outputs}
    referenced = extra | {digest for key, outputs in references.items() if key not in evict for digest in outputs}
    old = store.condemned.read()
    # What only now loses its last record is unreferenced since now, whatever an interrupted run wrote down.
    condemned = {
        digest: min(old.get(digest, int(now)), int(now)) if digest not in before else int(now)
        for digest in blobs
        if digest not in referenced
    }
    since = now - policy.grace_seconds
    sweep = tuple(digest for digest, at in condemned.items() if at <= since and blobs[digest].mtime <= since)
    return Mark(now, records, evict, blobs, frozenset(referenced), condemned, sweep, files)


def _references(store: Store, build_key: str, one: Listed) -> frozenset[str]:
    """Digests a record names; of one that cannot be read as ours, everything in it that looks like one."""
    if one.outputs is not None:
        return frozenset(digest for digest, _ in one.outputs)
    for _ in range(2):  # a network file system may show a new name before its bytes: open by path once more
        with contextlib.suppress(FileNotFoundError):
            data = store.fs.read(store.layout.entry("records", build_key))
            return frozenset(found.decode() for found in _DIGEST.findall(data))
    return frozenset()


def _evictions(
    store: Store,
    policy: Policy,
    now: float,
    records: dict[str, Listed],
    references: dict[str, frozenset[str]],
    blobs: dict[str, FileStat],
) -> dict[str, str]:
    kept = store.roots.kept(now) | store.leases.live()
    young = now - policy.grace_seconds
    free = {key: one.stat.mtime for key, one in records.items() if key not in kept and one.stat.mtime <= young}
    by_age = sorted(free, key=lambda key: (free[key], key))
    # One that this release cannot read is not judged by it (it may be of a later one): only `verify --repair` puts it aside.
    by_age = [key for key in by_age if records[key].outputs is not None]
    evict = {key: f"older than {policy.keep_seconds / DAY:g} days" for key in by_age if now - free[key] > policy.keep_seconds}
    if policy.max_bytes is None:
        return evict
    users: dict[str, int] = {}
    for key, outputs in references.items():
        if key not in evict:
            for digest in outputs:
                users[digest] = users.get(digest, 0) + 1
    total = sum(blobs[digest].size for digest in users if digest in blobs)
    for key in by_age:
        if total <= policy.max_bytes:
            break
        if key in evict:
            continue
        evict[key] = f"more than {policy.max_bytes} bytes, and this is the oldest"
        for digest in references[key]:
            users[digest] -= 1
            if not users[digest] and digest in blobs:
                total -= blobs[digest].size
    return evict


def _evidence(store: Store, policy: Policy, now: float) -> tuple[tuple[str, ...], set[str]]:
    """(old failures, divergences, corrupt entries and logs of builds; digests that the younger ones name)."""
    old, named = [], set()
    for folder in ("failures", "divergences"):
        base = store.layout.folder(folder)
        for fan in listed(store.fs, base):
            for name, stat in scanned(store.fs, f"{base}/{fan}"):
                if now - stat.mtime > max(policy.keep_seconds, policy.grace_seconds):
                    old.append(f"{base}/{fan}/{name}")
                    continue
                try:
                    data = store.fs.read(f"{base}/{fan}/{name}")
                except FileNotFoundError:
                    continue
                named |= {found.decode() for found in _DIGEST.findall(data)}
    for base in (store.layout.folder("corrupt"), store.layout.folder("events")):
        aside = scanned(store.fs, base)
        old += [f"{base}/{name}" for name, stat in aside if now - stat.mtime > max(policy.keep_seconds, policy.grace_seconds)]
    return tuple(old), named
