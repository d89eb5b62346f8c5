"""How much a store holds: logical, unique and compressed bytes. Reads only.

logical: what the artifacts would take if each had its own copy; unique: what the blobs take; compressed: what the unique bytes
take in an archive (zlib; measured on at most SAMPLE_BYTES of them and scaled).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lqcd_aot.store.store import Store

SAMPLE_BYTES = 64 << 20


def statistics(store: Store) -> dict[str, Any]:
    """Counts and bytes, by name."""
    records, _ = store.records.listing.look()
    sizes = store.blobs.sizes()
    referenced = {digest for one in records.values() for digest, _ in one.outputs or ()}
    roots = store.roots.all()
    return {
        "root": store.root,
        "layers": [layer.root for layer in store.lower],
        "records": len(records),
        "blobs": len(sizes),
        "logical_bytes": sum(size for one in records.values() for _, size in one.outputs or ()),
        "unique_bytes": sum(sizes.values()),
        "compressed_bytes": _compressed(store, sizes),
        "unreferenced_bytes": sum(size for digest, size in sizes.items() if digest not in referenced),
        "failures": len(store.failures.all_keys()),
        "divergences": len(store.records.divergences()),
        "leases": len(store.leases.all_names()),
        "roots": len(roots),
        "kept_by_roots": len({key for root in roots for key in root.build_keys} & records.keys()),
    }


def _compressed(store: Store, sizes: dict[str, int]) -> int:
    raw = packed = 0
    for digest in sizes:
        try:
            data = store.fs.read(store.layout.blob(digest))
        except OSError:
            continue
        raw += len(data)
        packed += len(zlib.compress(data, 1))
        if raw >= SAMPLE_BYTES:
            break
    return round(sum(sizes.values()) * packed / raw) if raw else 0
