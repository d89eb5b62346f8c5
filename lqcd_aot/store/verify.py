"""Read every byte of a store and judge it.

Owns the report. Without `repair` it writes nothing (`quick`: only its own journal, verified.py); with it, bad entries go to
corrupt/, so that the next build makes them again, and the spec indices are made anew from the records. Bytes that no record
names, and temporary files, are no problems: a killed writer leaves them and nothing reads them.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.store.problems import Problem
from lqcd_aot.store.records import glance_of
from lqcd_aot.store.temporaries import stale
from lqcd_aot.store.verified import is_settled, line_of

if TYPE_CHECKING:
    from lqcd_aot.store.store import Store


class VerifyReport(NamedTuple):
    """problems: what is wrong, empty for a sound store. orphans: bytes without a record. temporaries: files of dead writers.
    trusted: blobs that were not read again, because their file is as it was when they were last verified."""

    root: str
    records: int
    blobs: int
    bytes: int
    problems: tuple[Problem, ...]
    orphans: tuple[str, ...]
    temporaries: int
    failures: int
    divergences: int
    repaired: bool
    trusted: int

    @property
    def is_sound(self) -> bool:
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {**self._asdict(), "problems": [p.as_dict() for p in self.problems], "orphans": list(self.orphans)}


def verify(store: Store, *, repair: bool = False, quick: bool = False) -> VerifyReport:
    """See `Store.verify`. Blobs first: a record over a bad blob is bad too."""
    problems = []
    before = store.verified.read() if quick or repair else frozenset()
    now = time.time()
    digests = store.blobs.stats()
    trusted = {d for d, stat in digests.items() if line_of(d, stat) in before} if quick else set()
    sound = {d: stat for d, stat in digests.items() if d in trusted or store.blobs.is_sound(d)}
    for digest in sorted(digests.keys() - sound.keys()):
        problems.append(Problem("blob", digest, "content does not match its name"))
        if repair:
            store.blobs.put_aside(digest, "content does not match its name")
    bad_blobs = digests.keys() - sound.keys()
    if quick or repair:
        # Lines of bytes that are not here are of the layers below, which a build verified.
        others = {line for line in before if line[:64] not in digests}
        store.verified.write(others | {line_of(d, stat) for d, stat in sound.items() if d in trusted or is_settled(stat, now)})
    named: set[str] = set()
    index: dict[str, dict[str, str]] = {}
    specs: dict[str, str] = {}
    sizes = {digest: stat.size for digest, stat in digests.items()}.items()
    keys = store.records.all_keys()
    for build_key in keys:
        fact = None
        glance = store.records.quick(build_key)
        if glance is None or not sizes >= set(glance.outputs):
            # Broken, of a later release, or with bytes that were not there when the blobs were listed.
            record, fact = store.records.examine(build_key)
            glance = None if record is None else glance_of(record)
        if glance is not None:
            blobs = {digest for digest, _ in glance.outputs}
            named |= blobs
            fact = f"names blob {min(blobs & bad_blobs)[:16]}, which is corrupt" if blobs & bad_blobs else None
            index.setdefault(glance.spec_key, {})[glance.target] = build_key
            specs[glance.spec_key] = glance.spec
        if fact is not None:
            problems.append(Problem("record", build_key, fact))
            if repair:
                store.records.put_aside(build_key, fact)
    failures = [store.failures.get(key) for key in store.failures.all_keys()]
    named |= {f.log_sha256 for f in failures if f is not None and f.log_sha256 is not None}
    problems += _indices(store, index, specs, repair=repair)
    return VerifyReport(
        root=store.root,
        records=len(keys),
        blobs=len(digests),
        bytes=sum(stat.size for stat in sound.values()),
        problems=tuple(problems),
        orphans=tuple(d for d in digests if d not in named and d not in bad_blobs),
        temporaries=len(stale(store.fs, store.layout)),
        failures=len(failures),
        divergences=len(store.records.divergences()),
        repaired=repair,
        trusted=len(trusted),
    )


def _indices(store: Store, index: dict[str, dict[str, str]], specs: dict[str, str], *, repair: bool) -> list[Problem]:
    """A usable record whose spec's index does not name its target cannot be found by spec."""
    problems = []
    for spec_key, records in sorted(index.items()):
        now = store.specs.get(spec_key)
        absent = {target: key for target, key in records.items() if target not in now}
        if not absent:
            continue
        problems.append(Problem("spec", spec_key, f"index does not name {', '.join(sorted(absent))}"))
        if repair:
            store.specs.merge(spec_key, json.loads(specs[spec_key]), absent)
    return problems
