"""The disposable journal of what was verified: digest, and size, mtime, ctime and inode that its file had then.

Owns the file `verified`: `verify --quick` does not read such bytes again, and a build takes them for right (inventory.py).
Absent, old or broken it costs reading. A write to the file changes its ctime, whatever else is put back; decay of the medium does
not, and is found by a full `verify`, and by whoever reads the bytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from lqcd_aot.store.fs import FileStat, FileSystem
from lqcd_aot.store.layout import Layout
from lqcd_aot.store.writer import Writer
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import StoreError

HEAD = b"lqcd-aot verified v2 "
# A file that changes within one tick of a file system's clock keeps its times: younger ones are read again. The coarsest tick of
# any file system in use, in seconds.
TICK_SECONDS = 2.0


class Verified:
    """The journal of one store: lines of `line_of`."""

    def __init__(self, fs: FileSystem, layout: Layout, writer: Writer) -> None:
        self._fs, self._layout, self._writer = fs, layout, writer

    def read(self) -> frozenset[str]:
        """The lines; none where there is no journal that can be used."""
        try:
            head, _, body = self._fs.read(self._layout.verified).partition(b"\n")
        except OSError:
            return frozenset()
        if head != HEAD + sha256_hex(body).encode():
            return frozenset()
        return frozenset(body.decode("ascii").splitlines())

    def write(self, lines: Iterable[str]) -> None:
        """Replace the journal; a store that cannot be written is verified in full the next time."""
        wanted = frozenset(lines)
        if wanted == self.read():
            return
        body = "\n".join(sorted(wanted)).encode("ascii")
        with contextlib.suppress(StoreError):
            self._writer.replace(self._layout.verified, HEAD + sha256_hex(body).encode() + b"\n" + body, durable=False)


def line_of(digest: str, stat: FileStat) -> str:
    """The line of bytes whose file was verified when it looked so."""
    return f"{digest} {mark_of(stat)}"


def is_settled(stat: FileStat, now: float) -> bool:
    """Whether a file's times would tell of a write after `now`, in seconds since the epoch."""
    return now - stat.ctime_ns / 1e9 > TICK_SECONDS


def mark_of(stat: FileStat) -> str:
    """What tells a file from every later one of the same name, and from itself written or renamed since."""
    return f"{stat.size}.{stat.mtime_ns}.{stat.ctime_ns}.{stat.inode}"


def content_of(stat: FileStat) -> tuple[int, int, int]:
    """The same but for renaming: what tells whether a file under another name is still the one that was judged."""
    return stat.size, stat.mtime_ns, stat.inode
