"""Every byte of a bundle file that is not payload: ZIP headers, padding, order of members, binary index.

    local header | padding to 4096 | data      once per member, members in the order below
    central directory | (ZIP64 end) | end record with the comment "lqcd-manifest-sha256:<hex>"

    order    index.bin, manifest.json, entries.jsonl, members.json, records/<build_key>.json.., blobs/<sha256>.., documents/..,
             signatures/..
             (each group sorted by name)
    padding  one extra field of zeros, id 0xD935 (what Android's zipalign uses), so that data begin on a page
    fixed    stored, no flags, DOS time 1980-01-01 00:00, version 20 (45 with ZIP64), no attributes

All of it is a pure function of (name, size, crc32) of the members, so a writer gives equal bytes for equal contents and a
verifier regenerates the bytes and compares. Knows no JSON, no digest, no lattice.
Source: PKWARE APPNOTE 6.3.10, sections 4.3.7, 4.3.12, 4.3.14-16, 4.5.3.
"""

from __future__ import annotations

import struct

from lqcd_runtime.errors import CorruptError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

PAGE = 4096
HEAD = ("index.bin", "manifest.json", "entries.jsonl", "members.json")
GROUPS = ("records/", "blobs/", "documents/", "signatures/")
SIGNATURES = GROUPS[-1]
_GROUP_PLACE = {group: len(HEAD) + i for i, group in enumerate(GROUPS)}
COMMENT = b"lqcd-manifest-sha256:"
COMMENT_SIZE = len(COMMENT) + 64

_LOCAL = struct.Struct("<4s5HIIIHH")
_PADDING = struct.Struct("<HH")
_WIDE = struct.Struct("<HHQQ")
_CENTRAL = struct.Struct("<4s6HIIIHHHHHII")
_END = struct.Struct("<4s4HIIH")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR = struct.Struct("<4sIQI")
_LOCAL_MAGIC, _CENTRAL_MAGIC, _END_MAGIC, _END64_MAGIC, _LOCATOR_MAGIC = (
    b"PK\3\4", b"PK\1\2", b"PK\5\6", b"PK\6\6", b"PK\6\7",
)  # fmt: skip
_DATE = 1 << 5 | 1
_PADDING_ID = 0xD935
CENTRAL_SIZE, LOCAL_SIZE = _CENTRAL.size, _LOCAL.size
_ZEROS = bytes(PAGE)
_MAX32, _MAX16 = 0xFFFFFFFF, 0xFFFF

INDEX_MAGIC = b"LQCDIDX1"
INDEX_HEAD = struct.Struct("<8sII")
INDEX_RECORD = struct.Struct("<32s32sQII")


class Member:
    """Name, size, crc32 of one member and where it lies: `start` of its local header, `data` of its first byte, `end`."""

    __slots__ = ("crc32", "data", "end", "name", "size", "start")

    def __init__(self, name: str, size: int, crc32: int, start: int) -> None:
        self.name, self.size, self.crc32, self.start = name, size, crc32, start
        header = start + LOCAL_SIZE + len(name) + (_WIDE.size if size >= _MAX32 else 0)
        gap = -header % PAGE
        # The padding's own field takes four bytes, or there is none.
        self.data = data = header + (gap + PAGE if 0 < gap < 4 else gap)
        self.end = data + size

    def local_header(self) -> bytes:
        """Local header with name, ZIP64 sizes where needed, and padding: its end is a multiple of PAGE."""
        name, size, version = self.name.encode("ascii"), self.size, 20
        extra = self.data - self.start - LOCAL_SIZE - len(name)
        gap, wide = extra, b""
        if size >= _MAX32:
            wide, gap, version = _WIDE.pack(1, 16, size, size), extra - _WIDE.size, 45
            size = _MAX32
        fixed = _LOCAL.pack(_LOCAL_MAGIC, version, 0, 0, 0, _DATE, self.crc32, size, size, len(name), extra)
        return fixed + name + wide + (_PADDING.pack(_PADDING_ID, gap - 4) + _ZEROS[: gap - 4] if gap else b"")

    def central_header(self) -> bytes:
        """Entry of the central directory."""
        name, size, start, version, extra = self.name.encode("ascii"), self.size, self.start, 20, b""
        if size >= _MAX32 or start >= _MAX32:
            wide = [size, size] if size >= _MAX32 else []
            wide += [start] if start >= _MAX32 else []
            extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide)
            size, start, version = min(size, _MAX32), min(start, _MAX32), 45
        fixed = _CENTRAL.pack(
            _CENTRAL_MAGIC, version, version, 0, 0, 0, _DATE, self.crc32, size, size, len(name), len(extra), 0, 0, 0, 0, start
        )
        return fixed + name + extra


def sort_key(name: str) -> tuple[int, str]:
    """Position of a member: HEAD in its order, then the groups, each by name. Errors: UsageError for a foreign name."""
    folder, slash, rest = name.partition("/")
    at = _GROUP_PLACE.get(folder + slash)
    if at is not None and rest.isascii() and "/" not in rest and "\\" not in rest and rest not in ("", ".", ".."):
        return at, name
    if name in HEAD:
        return HEAD.index(name), ""
    raise UsageError(f"bundle member {name!r}: has no place in a bundle", expected=f"{', '.join(HEAD)} or {GROUPS}")


def place(sized: Mapping[str, tuple[int, int]]) -> list[Member]:
    """Members in their order with their offsets, from {name: (size, crc32)}. Errors: UsageError for a foreign name."""
    out: list[Member] = []
    at = 0
    for name in sorted(sized, key=sort_key):
        size, crc32 = sized[name]
        member = Member(name, size, crc32, at)
        out.append(member)
        at = member.end
    return out


def tail(members: Sequence[Member], manifest_sha256: str) -> Iterator[bytes]:
    """Central directory, end records and comment, in pieces."""
    start = members[-1].end
    size = 0
    for member in members:
        header = member.central_header()
        size += len(header)
        yield header
    count = len(members)
    if count >= _MAX16 or size >= _MAX32 or start >= _MAX32:
        yield _END64.pack(_END64_MAGIC, 44, 45, 45, 0, 0, count, count, size, start)
        yield _LOCATOR.pack(_LOCATOR_MAGIC, 0, start + size, 1)
    small = min(count, _MAX16)
    yield _END.pack(_END_MAGIC, 0, 0, small, small, min(size, _MAX32), min(start, _MAX32), COMMENT_SIZE)
    yield COMMENT + manifest_sha256.encode("ascii")


def read_end(data: memoryview | bytes, where: str) -> tuple[int, int, str]:
    """(offset of the central directory, number of members, manifest digest) from the end of the file.

    Errors: CorruptError where the end record is not exactly where a whole bundle has it.
    """
    at = len(data) - COMMENT_SIZE - _END.size
    end = bytes(data[max(at, 0) :])
    if at < 0 or end[:4] != _END_MAGIC or end[_END.size : -64] != COMMENT:
        raise CorruptError(
            f"{where}: is truncated, has bytes appended, or is no bundle",
            expected=f"an end record with {COMMENT.decode()}<hex> as the last {COMMENT_SIZE + _END.size} bytes",
            found=f"{len(data)} bytes that end in {end[-16:]!r}",
        )
    _, _, _, _, count, size, start, _ = _END.unpack_from(end)
    if max(count / _MAX16, size / _MAX32, start / _MAX32) >= 1:
        at -= _LOCATOR.size + _END64.size
        if at < 0 or data[at : at + 4] != _END64_MAGIC:
            raise CorruptError(f"{where}: has no ZIP64 end record where one must be")
        count, size, start = _END64.unpack_from(data, at)[-3:]
    if start + size != at:
        raise CorruptError(f"{where}: its central directory is not before its end record", expected=at, found=f"{start} + {size}")
    return start, count, end[-64:].decode("ascii", "replace")


def read_central(data: memoryview | bytes, at: int, where: str) -> tuple[str, int, int, int]:
    """(name, offset of the data, size, offset of the next entry) of the central directory entry at `at`.

    Only what a reader needs; every byte that is not read here is compared by `verify`. Errors: CorruptError.
    """
    try:
        magic, _, _, _, method, _, _, _, packed, size, name_size, extra_size, comment, _, _, _, start = _CENTRAL.unpack_from(
            data, at
        )
        name_at = at + _CENTRAL.size
        name = bytes(data[name_at : name_at + name_size]).decode("ascii", "replace")
        wide_at = name_at + name_size + 4
        if size == _MAX32:
            size, packed = struct.unpack_from("<QQ", data, wide_at)
            wide_at += 16
        if start == _MAX32:
            (start,) = struct.unpack_from("<Q", data, wide_at)
        local = _LOCAL.unpack_from(data, start)
    except struct.error as err:
        raise CorruptError(f"{where}: the central directory at byte {at} points out of the file") from err
    data_at = start + _LOCAL.size + local[-2] + local[-1]
    sound = magic == _CENTRAL_MAGIC and local[0] == _LOCAL_MAGIC and method == 0 and packed == size and comment == 0
    if not sound or data_at + size > len(data):
        raise CorruptError(f"{where}: the central directory at byte {at} describes no stored member", found=name[:80])
    return name, data_at, size, name_at + name_size + extra_size


def index_bytes(rows: Iterable[tuple[str, str, int, int, int]]) -> bytes:
    """index.bin from (spec_key hex, entry sha256 hex, offset, length, target id), sorted by (spec_key, target id)."""
    packed = sorted(
        (bytes.fromhex(key), target, INDEX_RECORD.pack(bytes.fromhex(key), bytes.fromhex(digest), offset, length, target))
        for key, digest, offset, length, target in rows
    )
    return INDEX_HEAD.pack(INDEX_MAGIC, len(packed), INDEX_RECORD.size) + b"".join(p for _, _, p in packed)
