"""The file `layers` of a store: which read-only stores are looked in after it, one absolute path a line, in order.

Owns that file. The runtime reads it too (lqcd_runtime.store_reader). The file of a lower store is not followed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lqcd_aot.store.writer import translated

if TYPE_CHECKING:
    from lqcd_aot.store.store import Store


def layered(store: Store, further: Sequence[str | os.PathLike[str]], *, write: bool) -> list[str]:
    """The folders below a store: those of its file, then `further`; write: put these into the file too. Errors: StoreError."""
    named = _named(store)
    wanted = [os.path.abspath(os.fspath(path)) for path in further]
    added = [path for path in dict.fromkeys(wanted) if path not in named and path != store.root]
    if write and added:
        text = "".join(f"{path}\n" for path in [*named, *added])
        store.writer.replace(store.layout.layers, os.fsencode(text))
    return [*named, *added]


def _named(store: Store) -> list[str]:
    try:
        with translated(store.root):
            text = os.fsdecode(store.fs.read(store.layout.layers))
    except FileNotFoundError:
        return []
    lines = [line.strip() for line in text.splitlines()]
    return [path for path in dict.fromkeys(lines) if path and path != store.root]
