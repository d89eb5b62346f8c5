"""Write-once bytes under their SHA-256.

Owns blobs/sha256/. Knows nothing of what the bytes are. A blob that exists is complete; reading it verifies every byte.
"""

from __future__ import annotations

import time

from lqcd_aot.store.corrupt import Quarantine
from lqcd_aot.store.fs import FileStat, FileSystem, looks
from lqcd_aot.store.layout import Layout, is_key
from lqcd_aot.store.problems import Problems
from lqcd_aot.store.writer import Writer
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CorruptError

# Bytes that are stored again are written anew when they are older than this: much less than any grace window of garbage
# collection that is meant to run beside builders.
FRESH_SECONDS = 1.0


class Blobs:
    """The bytes of one store."""

    def __init__(self, fs: FileSystem, layout: Layout, writer: Writer, quarantine: Quarantine, problems: Problems) -> None:
        self._fs, self._layout, self._writer = fs, layout, writer
        self._quarantine, self._problems = quarantine, problems

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest. Safe to repeat. What stands under the digest with other content is put aside.

        Errors: StoreError where the store cannot be written.
        """
        digest = sha256_hex(data)
        path = self._layout.blob(digest)
        if self._writer.create(path, data):
            return digest
        content = self._content(digest)
        if content == data and is_old(self._fs, path):
            # Nothing may refer to it, and garbage collection be about to remove it: a new file of this age is left alone.
            self._writer.replace(path, data)
        elif content != data:
            if content is not None:
                self.put_aside(digest, "content did not match its name")
            # Replacing is safe under a digest, and right even where a network file system hides another writer's entry from us.
            self._writer.replace(path, data)
        return digest

    def renew(self, digest: str, size: int) -> bool:
        """Whether right bytes of this size are there already; if so they are young from now on, so that a record may name them
        while garbage collection runs. Errors: StoreError."""
        if self.size(digest) != size:
            return False
        path = self._layout.blob(digest)
        content, found = self._found(digest)
        if content is None or found != digest:
            return False
        if is_old(self._fs, path):
            self._writer.replace(path, content)
        return True

    def size(self, digest: str) -> int | None:
        """Size of the stored bytes, None where there are none."""
        try:
            return self._fs.stat(self._layout.blob(digest)).size
        except OSError:
            return None

    def read(self, digest: str) -> bytes:
        """The bytes, verified. Errors: CorruptError where they are absent or do not match their name."""
        data, found = self._found(digest)
        if data is None:
            raise CorruptError(f"blob {digest[:16]}: is absent from store {self._layout.root}", hint="lqcd-aot build RECIPE")
        if found != digest:
            self._problems.add("blob", digest, "content does not match its name")
            raise CorruptError(
                f"blob {digest[:16]}: content does not match its name",
                expected=digest,
                found=f"{found} ({len(data)} bytes)",
                hint=f"lqcd-aot store verify --store {self._layout.root}",
            )
        return data

    def is_sound(self, digest: str) -> bool:
        """Whether the bytes are there and match their name."""
        for _ in looks():
            try:
                if self._fs.sha256(self._layout.blob(digest)) == digest:
                    return True
            except OSError:
                return False
        return False

    def put_aside(self, digest: str, fact: str) -> None:
        """Move bytes that do not match their name into corrupt/, so that the next build makes them again."""
        self._quarantine.put_aside("blob", digest, self._layout.blob(digest), fact, self.is_sound)

    def sizes(self) -> dict[str, int]:
        """{digest: size} of every blob."""
        return {digest: stat.size for digest, stat in self.stats().items()}

    def stats(self) -> dict[str, FileStat]:
        """{digest: size and age} of every blob, in sorted order: one look at each fan-out folder."""
        base = self._layout.folder("blobs/sha256")
        found = {}
        for fan in listed(self._fs, base):
            found.update({name: stat for name, stat in scanned(self._fs, f"{base}/{fan}") if is_key(name) and name[:2] == fan})
        return found

    def digests(self) -> list[str]:
        """Digests of every blob, sorted; names that are no digest are left out."""
        base = self._layout.folder("blobs/sha256")
        found = []
        for fan in listed(self._fs, base):
            found += [name for name in listed(self._fs, f"{base}/{fan}") if is_key(name) and name[:2] == fan]
        return found

    def _content(self, digest: str) -> bytes | None:
        return self._found(digest)[0]

    def _found(self, digest: str) -> tuple[bytes | None, str]:
        """(what stands under a digest, its true digest); (None, "") where nothing does."""
        data, found = b"", ""
        for _ in looks():
            try:
                data = self._fs.read(self._layout.blob(digest))
            except OSError:
                return None, ""
            found = sha256_hex(data)
            if found == digest:
                break
        return data, found


def listed(fs: FileSystem, path: str) -> list[str]:
    """Names in a folder; an absent folder has none, a file neither."""
    try:
        return fs.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def scanned(fs: FileSystem, path: str) -> list[tuple[str, FileStat]]:
    """(name, stat) of everything in a folder; an absent folder has nothing, a file neither."""
    try:
        return fs.scan(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_old(fs: FileSystem, path: str) -> bool:
    """Whether a file is old enough that a garbage collection under way may have set eyes on it; one that is gone is."""
    try:
        return time.time() - fs.stat(path).mtime > FRESH_SECONDS
    except OSError:
        return True
