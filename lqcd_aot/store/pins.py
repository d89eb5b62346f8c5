"""Pinning: a root that is checked. Owns the order that makes it safe beside garbage collection: the root first, then the look.

A collection that has not seen the root yet looks at the roots once more after removing a record, and brings it back (gc.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lqcd_runtime.errors import UsageError

if TYPE_CHECKING:
    from lqcd_aot.store.store import Store

SHOWN = 5


def pin(
    store: Store, kind: str, name: str, build_keys: Iterable[str], *, seconds: float | None = None, file: str | None = None
) -> bool:
    """Keep these artifacts until `unpin`, or for `seconds`, or while a file is there; False where they were kept just so already.

    Errors: UsageError where some of them are not in this store (then nothing is changed for good); StoreError.
    """
    keys = sorted(set(build_keys))
    before = store.roots.get(kind, name)
    changed = store.roots.put(kind, name, keys, seconds=seconds, file=file)
    # Twice: a network file system may show a name late.
    absent = [key for key in keys if store.record(key) is None and store.record(key) is None]
    if not absent:
        return changed
    if before is not None:
        store.roots.put(kind, name, before.build_keys, file=before.file)
    else:
        store.roots.remove(kind, name)
    raise UsageError(
        f"pin {name}: {len(absent)} of {len(keys)} artifacts are not in store {store.root}",
        details=[key[:16] for key in absent[:SHOWN]],
        hint="build them first",
    )
