"""Reads one bundle file through a memory map: find an entry, read a blob, nothing else; never writes.

Owns the chain of trust on the reading side: comment -> manifest -> index and members list -> entry line and blob. What is
returned was compared with a digest first; bytes that nobody asked for are left to `bundle_verify`. One open, no folder walk.
"""

from __future__ import annotations

import contextlib
import mmap
import os

from lqcd_runtime.bundle_layout import CENTRAL_SIZE, HEAD, INDEX_HEAD, INDEX_MAGIC, INDEX_RECORD, read_central, read_end
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CorruptError, LqcdError
from lqcd_runtime.manifest import BUNDLE_SCHEMA, Entry, check_conventions, check_schema, parse_object
from lqcd_runtime.target import TARGETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from lqcd_runtime.select import Rejected
    from lqcd_runtime.signature import Spec


class BundleFile:
    """An open bundle. `manifest`: its JSON; `manifest_sha256`: its identity; `path` for messages."""

    kind = "bundle"

    def __init__(self, path: str) -> None:
        """Map the file and check end record, size, manifest and index.

        Errors: LqcdError where there is no such file, CorruptError, TooNewError.
        """
        self.path = path
        self.where = f"bundle {path}"
        self._map: mmap.mmap | None = _map(path, self.where)
        self._view = memoryview(self._map)
        self._listed: dict[str, dict[str, Any]] | None = None
        self._places: dict[str, tuple[int, int]] = {}
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        at, self.member_count, self.manifest_sha256 = read_end(self._view, self.where)
        self._central = at
        self._head: dict[str, tuple[int, int]] = {}
        for expected in HEAD:
            name, data, size, at = read_central(self._view, at, self.where)
            if name != expected:
                raise CorruptError(f"{self.where}: its members are out of order", expected=expected, found=name[:80])
            self._head[name] = (data, size)
        raw = self.bytes_of("manifest.json")
        self._same(sha256_hex(raw), self.manifest_sha256, "manifest.json")
        self.manifest = parse_object(raw, f"{self.where}: manifest.json")
        check_schema(self.manifest.get("schema"), BUNDLE_SCHEMA, self.where)
        check_conventions(self.manifest.get("conventions"), self.where)
        self._check_head("index.bin")
        self._read_index_head()

    def _read_index_head(self) -> None:
        start, size = self._head["index.bin"]
        magic, self.count, step = INDEX_HEAD.unpack_from(self._view, start) if size >= INDEX_HEAD.size else (b"", 0, 0)
        self._rows = start + INDEX_HEAD.size
        whole = INDEX_HEAD.size + self.count * INDEX_RECORD.size
        if magic != INDEX_MAGIC or step != INDEX_RECORD.size or whole != size or self.count != self.manifest.get("count"):
            raise CorruptError(f"{self.where}: index.bin is not an index of {self.manifest.get('count')} entries")

    def _check_head(self, name: str) -> None:
        """Compare one of the head members with the manifest."""
        start, size = self._head[name]
        try:
            expected = self.manifest["members"][name]["sha256"]
        except (KeyError, TypeError) as err:
            raise CorruptError(f"{self.where}: its manifest does not list {name}") from err
        self._same(sha256_hex(self._view[start : start + size]), expected, name)

    def _same(self, found: str, expected: object, member: str) -> None:
        if found != expected:
            raise CorruptError(
                f"{self.where}: {member} does not match its digest",
                expected=expected,
                found=found,
                hint=f"copy the bundle again; python -m lqcd_runtime {self.path} verify",
            )

    def bytes_of(self, name: str) -> bytes:
        """The bytes of a head member, unchecked."""
        start, size = self._head[name]
        return bytes(self._view[start : start + size])

    def row(self, i: int) -> tuple[bytes, bytes, int, int, str]:
        """(spec_key, entry sha256, offset, length, target) of index row i."""
        key, digest, offset, length, target = INDEX_RECORD.unpack_from(self._view, self._rows + i * INDEX_RECORD.size)
        if target >= len(TARGETS):
            raise CorruptError(f"{self.where}: index row {i} names target {target}, there are {len(TARGETS)}")
        return key, digest, offset, length, TARGETS[target]

    def rows(self) -> Iterator[tuple[bytes, bytes, int, int, int]]:
        """(spec_key, entry sha256, offset, length, position in TARGETS) of every index row, unchecked."""
        return INDEX_RECORD.iter_unpack(self._view[self._rows : self._rows + self.count * INDEX_RECORD.size])

    def line(self, i: int) -> bytes:
        """The entry line of index row i, compared with its digest."""
        _, digest, offset, length, _ = self.row(i)
        start, size = self._head["entries.jsonl"]
        line = bytes(self._view[start + offset : start + min(offset + length, size)])
        self._same(sha256_hex(line), digest.hex(), f"entries.jsonl at byte {offset}")
        return line

    def entry(self, i: int) -> Entry:
        """The entry of index row i. Errors: CorruptError, TooNewError."""
        where = f"{self.where}: entry {i}"
        entry = Entry.from_dict(parse_object(self.line(i), where), where)
        key, _, _, _, target = self.row(i)
        if entry.spec_key != key.hex() or entry.target != target:
            raise CorruptError(f"{self.where}: index row {i} points at {entry.name}", expected=f"{key.hex()} {target}")
        return entry

    def entries(self) -> Iterator[Entry]:
        """All entries, sorted by (spec_key, target)."""
        return (self.entry(i) for i in range(self.count))

    def find(self, spec: Spec) -> list[Entry]:
        """The entries of a spec, one per target: binary search in the index."""
        key = bytes.fromhex(spec.key)
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            at = self._rows + middle * INDEX_RECORD.size
            if bytes(self._view[at : at + 32]) < key:
                low = middle + 1
            else:
                high = middle
        found = []
        while low < self.count and self.row(low)[0] == key:
            found.append(self.entry(low))
            low += 1
        return found

    def candidates(self, spec: Spec) -> tuple[list[Entry], list[Rejected]]:
        """(entries of a spec, nothing rejected): in a bundle an unusable entry is an error, not a decision."""
        return self.find(spec), []

    def nearest(self, spec: Spec) -> Entry | None:
        """The entry whose spec differs least."""
        from lqcd_runtime.select import nearest_spec

        found = nearest_spec(spec, self._spec_texts())
        return None if found is None else self.entry(found)

    def _spec_texts(self) -> Iterator[tuple[int, bytes]]:
        """(row, canonical JSON) of every spec, cut out of its first line unparsed: the compact data of a nearest search.

        Not compared with digests; what is shown of the winner is read by `entry`.
        """
        if self._map is None:
            return
        start, size = self._head["entries.jsonl"]
        last = b""
        for i, (key, _, offset, length, _) in enumerate(self.rows()):
            if key == last:  # rows are sorted: the same spec for another target
                continue
            last = key
            line, end = start + offset, start + min(offset + length, size)
            first = self._map.find(b'"spec":{', line, end) + 7
            behind = self._map.find(b',"spec_key":"', first, end)
            if first < 7 or behind < 0:
                raise CorruptError(f"{self.where}: entry {i} at byte {line} has no spec")
            yield i, self._map[first:behind]

    def read_blob(self, sha256: str) -> bytes:
        """The bytes with this digest, a private copy made before the comparison.

        Errors: CorruptError where the bundle has no such blob or its bytes are wrong.
        """
        data = self._member(f"blobs/{sha256}")
        self._same(sha256_hex(data), sha256, f"blobs/{sha256}")
        return data

    def members(self) -> dict[str, dict[str, Any]]:
        """{member: {"sha256", "size", "crc32"}} of all members but manifest.json and signatures. To be read only."""
        if self._listed is not None:
            return self._listed
        self._check_head("members.json")
        where = f"{self.where}: members.json"
        listed = {**self.manifest["members"], **parse_object(self.bytes_of("members.json"), where)}
        for name, facts in listed.items():
            try:
                sound = type(facts["sha256"]) is str and type(facts["size"]) is int and type(facts["crc32"]) is str
            except (KeyError, TypeError):
                sound = False
            if not sound:
                raise CorruptError(f"{where}: does not describe {name}")
        self._listed = listed
        return listed

    def record(self, build_key: str) -> bytes:
        """The whole build record (pre-image of the key, provenance), compared with its digest. Errors: CorruptError."""
        return self.document(f"records/{build_key}.json")

    def document(self, name: str) -> bytes:
        """A listed member (a record, or a document such as provenance), compared with its digest. Errors: CorruptError."""
        listed = self.members()
        if name not in listed:
            raise CorruptError(f"{self.where}: has no {name}")
        data = self._member(name)
        self._same(sha256_hex(data), listed[name]["sha256"], name)
        return data

    def layer_of(self, build_key: str) -> str:
        """Where a record comes from: this file."""
        return self.path

    def _member(self, name: str) -> bytes:
        """A private copy of a member found by its name in the central directory, unchecked."""
        if name in self._places:
            start, size = self._places[name]
            return bytes(self._view[start : start + size])
        at = self._map.find(name.encode("ascii"), self._central) if self._map is not None else -1
        if at < 0:
            raise CorruptError(f"{self.where}: has no {name}" if self._map is not None else f"{self.where}: is closed")
        found, start, size, _ = read_central(self._view, at - CENTRAL_SIZE, self.where)
        if found != name:
            raise CorruptError(f"{self.where}: the central directory at byte {at} is not as written", expected=name, found=found)
        return bytes(self._view[start : start + size])

    @property
    def view(self) -> memoryview:
        """The whole file."""
        return self._view

    @property
    def central(self) -> int:
        """Offset of the central directory."""
        return self._central

    def verify(self) -> int:
        """Compare every byte with what a writer would have written; the number of bytes. Errors: CorruptError."""
        from lqcd_runtime.bundle_verify import verify

        # Whoever verifies is about to read more than one member: no more searching in the directory.
        self._places = verify(self)
        return len(self._view)

    def close(self) -> None:
        """Unmap. Loaded artifacts stay usable: they hold copies."""
        if self._map is not None:
            self._view.release()
            with contextlib.suppress(BufferError):  # a slice in a traceback still points into it; it goes with the slice
                self._map.close()
            self._map = None


def _map(path: str, where: str) -> mmap.mmap:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as err:
        raise LqcdError(f"{where}: cannot be opened", found=err.strerror) from err
    try:
        return mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
    except (ValueError, OSError) as err:
        raise CorruptError(f"{where}: cannot be mapped", expected="a regular file that is not empty", found=err) from err
    finally:
        os.close(fd)
