"""gc/condemned.json: which bytes garbage collection found unreferenced, and since when: the mark phase on disk.

Owns that file. It only ever delays a removal: absent or broken, everything counts as unreferenced since now.
"""

from __future__ import annotations

from lqcd_aot.store.fs import FileSystem
from lqcd_aot.store.layout import Layout, is_key
from lqcd_aot.store.sealed import seal, unseal
from lqcd_aot.store.writer import Writer

CONDEMNED_SCHEMA = "lqcd-aot/gc-condemned/v1"


class Condemned:
    """The unreferenced bytes of one store, {digest: second since which they are known to be unreferenced}."""

    def __init__(self, fs: FileSystem, layout: Layout, writer: Writer) -> None:
        self._fs, self._layout, self._writer = fs, layout, writer

    def read(self) -> dict[str, int]:
        """The list of the last run."""
        try:
            value = unseal(self._fs.read(self._layout.condemned))
        except (OSError, ValueError):
            return {}
        blobs = value.get("blobs")
        if value.get("schema") != CONDEMNED_SCHEMA or not isinstance(blobs, dict):
            return {}
        return {digest: since for digest, since in blobs.items() if is_key(digest) and isinstance(since, int)}

    def write(self, blobs: dict[str, int]) -> None:
        """Replace the list, where it is another one. Errors: StoreError."""
        if blobs != self.read():
            self._writer.replace(self._layout.condemned, seal({"schema": CONDEMNED_SCHEMA, "blobs": blobs}), durable=False)
