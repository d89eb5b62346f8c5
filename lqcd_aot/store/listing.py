"""The disposable list of what records/ holds, so that a plan of 10,000 variants, or a miss, does not read 10,000 files.

Owns the file `listing`: one line per record with the mark of its file, its spec and its outputs; then, after an empty line, one
per spec with its canonical JSON. A line counts only while the file it describes has the same mark; everything else is read. So
the list may be absent, old or broken at any time. Builders, imports and garbage collection write it; readers never do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

from lqcd_aot.store.blobs import listed, scanned
from lqcd_aot.store.fs import FileStat, FileSystem
from lqcd_aot.store.layout import Layout, is_key
from lqcd_aot.store.verified import mark_of
from lqcd_aot.store.writer import Writer
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import StoreError

HEAD = b"lqcd-aot listing v3 "
# So many records may be read afresh before a builder writes the list anew.
TOLERATED = 100

Outputs = tuple[tuple[str, int], ...]


class Glance(NamedTuple):
    """What can be had of an intact record without reading all of it: (digest, size) of each output, its spec, the spec's key and
    the target, which the list does not hold."""

    outputs: Outputs
    spec_key: str
    spec: str
    target: str = ""


class Listed(NamedTuple):
    """One record file. outputs: None where the record is not intact; spec_key, spec: "" there."""

    stat: FileStat
    outputs: Outputs | None
    spec_key: str
    spec: str


class Listing:
    """The records of one store at a glance."""

    def __init__(self, fs: FileSystem, layout: Layout, writer: Writer, read: Callable[[str], Glance | None]) -> None:
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
                    found[key] = Listed(stat, *line[1][:3])
                    continue
                if not (name.endswith(".json") and is_key(key) and key[:2] == fan):
                    continue
                if before is not None and key in before and before[key].stat == stat:
                    found[key] = before[key]
                    continue
                read += 1
                found[key] = Listed(stat, *(self._read(key) or (None, "", ""))[:3])
        return found, read

    def refresh(self) -> None:
        """Write the list anew where much of it is old."""
        found, read = self.look()
        if read > TOLERATED:
            self.write(found)

    def write(self, found: dict[str, Listed]) -> None:
        """Write the list; without it in a store that cannot be written, records are read one by one."""
        intact = [(key, one, one.outputs) for key, one in found.items() if one.outputs is not None]
        lines = [
            f"{key} {mark_of(one.stat)} {one.spec_key} {' '.join(f'{digest} {size}' for digest, size in outputs)}"
            for key, one, outputs in intact
        ]
        specs = {one.spec_key: one.spec for _, one, _ in intact}
        lines += ["", *(f"{key} {spec}" for key, spec in sorted(specs.items()))]
        body = "\n".join(lines).encode("ascii")
        with contextlib.suppress(StoreError):
            self._writer.replace(self._layout.listing, HEAD + sha256_hex(body).encode() + b"\n" + body, durable=False)

    def _known(self) -> dict[str, tuple[str, Glance]]:
        try:
            head, _, body = self._fs.read(self._layout.listing).partition(b"\n")
        except OSError:
            return {}
        if head != HEAD + sha256_hex(body).encode():
            return {}
        # A list without records begins with the empty line.
        records, _, specs = body.decode("ascii").partition("\n\n") if body[:1] != b"\n" else ("", "", "")
        spelled = {line[:64]: line[65:] for line in specs.split("\n")}
        known = {}
        for line in records.split("\n") if records else ():
            key, mark, spec_key, digest, size, *rest = line.split(" ")
            more = zip(rest[::2], map(int, rest[1::2]), strict=True) if rest else ()
            known[key] = mark, Glance(((digest, int(size)), *more), spec_key, spelled[spec_key])
        return known
