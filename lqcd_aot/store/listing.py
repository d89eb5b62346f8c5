"""The disposable list of what records/ holds, so that a plan of 10,000 variants does not read 10,000 records.

Owns the file `listing`: one line per record with size, mtime and inode of its file, its spec and its outputs. A line counts only
while the file it describes has the same size, mtime and inode; everything else is read. So the list may be absent, old or
broken at any time. Builders and garbage collection write it; readers never do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lqcd_aot.store.blobs import listed, scanned
from lqcd_aot.store.fs import FileStat, FileSystem
from lqcd_aot.store.layout import Layout, is_key
from lqcd_aot.store.verified import mark_of
from lqcd_aot.store.writer import Writer
from lqcd_runtime.digest import sha256_hex

HEAD = b"lqcd-aot listing v2 "
# So many records may be read afresh before a builder that publishes nothing writes the list anew.
TOLERATED = 100

Outputs = tuple[tuple[str, int], ...]


class Listed(NamedTuple):
    """One record file. outputs: (digest, size) of each output, None where the record is not intact; spec_key: "" there."""

    stat: FileStat
    outputs: Outputs | None
    spec_key: str


class Listing:
    """The records of one store at a glance."""

    def __init__(self, fs: FileSystem, layout: Layout, writer: Writer, read: Callable[[str], tuple[Outputs, str] | None]) -> None:
        self._fs, self._layout, self._writer, self._read = fs, layout, writer, read

    def look(self, before: dict[str, Listed] | None = None) -> tuple[dict[str, Listed], int]:
        """({build key: record file} in sorted order, how many of them had to be read).

        before: what an earlier look of this process found, in place of the file.
        """
        known = self._known() if before is None else {}
        found: dict[str, Listed] = {}
        read = 0
        base = self._layout.folder("records")
        for fan in listed(self._fs, base):
            for name, stat in scanned(self._fs, f"{base}/{fan}"):
                key = name[:-5]
                line = known.get(key)  # the common case first
                if line is not None and line[0] == mark_of(stat) and name[64:] == ".json" and name[:2] == fan:
                    found[key] = Listed(stat, line[1], line[2])
                    continue
                if not (name.endswith(".json") and is_key(key) and key[:2] == fan):
                    continue
                if before is not None and key in before and before[key].stat == stat:
                    found[key] = before[key]
                    continue
                read += 1
                outputs, spec_key = self._read(key) or (None, "")
                found[key] = Listed(stat, outputs, spec_key)
        return found, read

    def refresh(self) -> None:
        """Write the list anew where much of it is old. Errors: StoreError."""
        found, read = self.look()
        if read > TOLERATED:
            self.write(found)

    def write(self, found: dict[str, Listed]) -> None:
        """Write the list. Errors: StoreError."""
        lines = [
            f"{key} {mark_of(one.stat)} {one.spec_key} {' '.join(f'{digest} {size}' for digest, size in one.outputs)}"
            for key, one in found.items()
            if one.outputs is not None
        ]
        body = "\n".join(lines).encode("ascii")
        self._writer.replace(self._layout.listing, HEAD + sha256_hex(body).encode() + b"\n" + body, durable=False)

    def _known(self) -> dict[str, tuple[str, Outputs, str]]:
        try:
            head, _, body = self._fs.read(self._layout.listing).partition(b"\n")
        except OSError:
            return {}
        if head != HEAD + sha256_hex(body).encode():
            return {}
        known = {}
        for line in body.decode("ascii").split("\n") if body else ():
            key, mark, spec_key, digest, size, *rest = line.split(" ")
            more = zip(rest[::2], map(int, rest[1::2]), strict=True) if rest else ()
            known[key] = mark, ((digest, int(size)), *more), spec_key
        return known
