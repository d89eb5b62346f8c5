"""The disposable journal of what was verified, for `verify --quick`: digest, size, mtime and inode of each blob file.

Owns the file `verified`. Absent, old or broken it costs reading; it never makes bytes good that were changed by a write, for a
write changes mtime or inode. Decay of the medium is found by a full `verify` only.
"""

from __future__ import annotations

import contextlib

from lqcd_aot.store.fs import FileStat, FileSystem
from lqcd_aot.store.layout import Layout
from lqcd_aot.store.writer import Writer
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import StoreError

HEAD = b"lqcd-aot verified v1 "


class Verified:
    """The journal of one store."""

    def __init__(self, fs: FileSystem, layout: Layout, writer: Writer) -> None:
        self._fs, self._layout, self._writer = fs, layout, writer

    def read(self) -> dict[str, str]:
        """{digest: mark of its file when it was verified}."""
        try:
            head, _, body = self._fs.read(self._layout.verified).partition(b"\n")
        except OSError:
            return {}
        if head != HEAD + sha256_hex(body).encode():
            return {}
        pairs = (line.partition(" ") for line in body.decode("ascii").splitlines())
        return {digest: mark for digest, _, mark in pairs}

    def write(self, sound: dict[str, FileStat]) -> None:
        """Replace the journal; a store that cannot be written is verified in full the next time."""
        marks = {digest: mark_of(stat) for digest, stat in sound.items()}
        if marks == self.read():
            return
        body = "".join(f"{digest} {mark}\n" for digest, mark in marks.items()).encode("ascii")
        with contextlib.suppress(StoreError):
            self._writer.replace(self._layout.verified, HEAD + sha256_hex(body).encode() + b"\n" + body, durable=False)


def mark_of(stat: FileStat) -> str:
    """What tells a file from every later one of the same name."""
    return f"{stat.size}.{stat.mtime_ns}.{stat.inode}"
