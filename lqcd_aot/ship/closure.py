"""A store's artifacts out as a bundle, and a bundle's artifacts into a store.

Owns the order of an import: every byte of the bundle verified, its signatures judged, then blobs, then records, through the
store's own writing. Nothing of a refused bundle reaches the store, and a killed import leaves whole artifacts or none:
importing again finishes it. A record that is there already with other bytes stays; the foreign one becomes a recorded divergence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from lqcd_aot.keys import BUILD_TAG
from lqcd_aot.ship.content import Content, Record, content_of, opened
from lqcd_aot.store.inventory import read_again
from lqcd_runtime.digest import tagged_sha256
from lqcd_runtime.errors import CorruptError

if TYPE_CHECKING:
    from lqcd_aot.store import Store
    from lqcd_aot.trust import Policy
    from lqcd_aot.trust.policy import Verdict

Progress = Callable[[int, int, str], None]


class Imported(NamedTuple):
    """How many records were new, there already, there with other bytes; and what was judged of the signatures."""

    published: int
    reused: int
    diverged: int
    verdict: Verdict


def import_bundle(path: str | os.PathLike[str], store: Store, policy: Policy, *, progress: Progress | None = None) -> Imported:
    """Take the artifacts of a bundle into a store. progress(done, total, name).

    Errors: CorruptError for wrong bytes, TrustError for a bundle nobody trusted has signed, StoreError.
    """
    with opened(path) as bundle:
        verdict = policy.judge(bundle)
        return take_in(content_of(bundle), store, verdict, progress)


def take_in(content: Content, store: Store, verdict: Verdict, progress: Progress | None = None) -> Imported:
    """Publish verified content in a store. Errors: CorruptError, StoreError."""
    counts = {"published": 0, "reused": 0, "diverged": 0}
    entries = content.entries()
    for entry in entries:
        _check_key(content.records[entry.build_key], entry.name)
    for done, entry in enumerate(entries, 1):
        for output in entry.outputs.values():
            digest = output["sha256"]
            if not store.blobs.renew(digest, output["size"]) and store.put_blob(content.read_blob(digest)) != digest:
                raise CorruptError(f"blob {digest[:16]}: changed while it was imported")
        try:
            outcome = store.publish(dict(content.records[entry.build_key])).outcome
        except ValueError as error:
            raise CorruptError(f"record {entry.name}: is no record of a store", found=error) from error
        counts[outcome] += 1
        if progress is not None:
            progress(done, len(entries), entry.name)
    read_again(store, content.records)
    return Imported(**counts, verdict=verdict)


def _check_key(record: Record, name: str) -> None:
    """A record under a key that is not its own would be served for another build later. Errors: CorruptError."""
    components = record["components"]
    found = tagged_sha256(BUILD_TAG, components)
    if found != record["build_key"]:
        raise CorruptError(
            f"record {name}: its build key is not that of its components", expected=found, found=record["build_key"]
        )
    if components.get("spec") != record["spec"] or components.get("target") != record["target"]:
        raise CorruptError(f"record {name}: its components are those of another spec or target")
