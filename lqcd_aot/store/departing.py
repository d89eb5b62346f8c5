"""gc/: where records and bytes are between losing their name and their end, so that a removal can be taken back.

Owns the names in gc/ but for condemned.json. The system has no call that removes a file only if it still is the one that was
judged; so it is renamed first, looked at under the new name, and given its own name back where somebody had written it anew in
between. What a killed run leaves here the next one gives back.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from lqcd_aot.store.blobs import scanned
from lqcd_aot.store.fs import FileStat, FileSystem
from lqcd_aot.store.layout import Layout, is_key
from lqcd_aot.store.owner import of_temp_name, this_host, this_process
from lqcd_aot.store.temporaries import OLD_SECONDS
from lqcd_aot.store.verified import content_of
from lqcd_aot.store.writer import Writer
from lqcd_runtime.digest import sha256_hex

RECORD, BYTES = "record", "bytes"


class Departing:
    """What one run of garbage collection is removing."""

    def __init__(self, fs: FileSystem, layout: Layout, writer: Writer) -> None:
        self._fs, self._layout, self._writer = fs, layout, writer
        self._base = layout.folder("gc")
        self._owner = this_process().temp_name()

    def take_record(self, build_key: str, judged: FileStat) -> bool:
        """Take a record's name away; False where it is gone or is not the file that was judged."""
        path, aside = self._layout.entry("records", build_key), self._aside(build_key)
        found = self._renamed(path, aside, lambda stat: content_of(stat) == content_of(judged))
        if found is None or content_of(found) == content_of(judged):
            return found is not None
        self._writer.place(aside, path)
        return False

    def give_back(self, build_key: str) -> None:
        """Give a taken record its name again."""
        with contextlib.suppress(FileNotFoundError):
            self._writer.place(self._aside(build_key), self._layout.entry("records", build_key))

    def end_record(self, build_key: str) -> bool:
        """Remove a taken record for good; False where another run gave it back."""
        try:
            self._fs.unlink(self._aside(build_key))
        except FileNotFoundError:
            # Given back by another run; or a removal that was reported as failed, and made again, had taken effect.
            with contextlib.suppress(FileNotFoundError):
                self._fs.stat(self._layout.entry("records", build_key))
                return False
        return True

    def take_bytes(self, digest: str, since: float) -> bool:
        """Remove bytes that were written before `since`; False where they are gone or younger."""
        path, aside = self._layout.blob(digest), f"{self._base}/{BYTES}-{self._owner}"
        found = self._renamed(path, aside, lambda stat: stat.mtime <= since)
        if found is None:
            return False
        if found.mtime > since:
            self._writer.place(aside, path)
            return False
        # Before the next one takes this name: renaming over a file makes some file systems write its bytes out first.
        with contextlib.suppress(FileNotFoundError):
            self._fs.unlink(aside)
        return True

    def _renamed(self, path: str, aside: str, may_go: Callable[[FileStat], bool]) -> FileStat | None:
        """What now stands under the name `aside`, None where nothing was renamed."""
        try:
            before = self._fs.stat(path)
        except FileNotFoundError:
            return None
        if not may_go(before):
            return None
        try:
            self._fs.rename(path, aside)
        except FileNotFoundError:
            # Gone; or a rename that was reported as failed, and made again, had taken effect the first time.
            with contextlib.suppress(FileNotFoundError):
                after = self._fs.stat(aside)
                return after if content_of(after) == content_of(before) or not may_go(after) else None
            return None
        return self._fs.stat(aside)

    def recover(self) -> None:
        """Give back what a dead run has taken."""
        for name, stat in scanned(self._fs, self._base):
            kind, _, rest = name.partition("-")
            if kind not in (RECORD, BYTES):
                continue
            key = rest[:64] if kind == RECORD else ""
            owner = of_temp_name(rest[65:] if kind == RECORD else rest)
            if owner is None:
                continue
            old = time.time() - stat.mtime > OLD_SECONDS and owner.host != this_host()
            if not (owner.is_dead() or old):
                continue
            with contextlib.suppress(FileNotFoundError):
                path = f"{self._base}/{name}"
                digest = sha256_hex(self._fs.read(path)) if kind == BYTES else ""
                if kind == BYTES:
                    self._writer.place(path, self._layout.blob(digest))
                elif is_key(key):
                    self._writer.place(path, self._layout.entry("records", key))

    def _aside(self, build_key: str) -> str:
        return f"{self._base}/{RECORD}-{build_key}-{self._owner}"
