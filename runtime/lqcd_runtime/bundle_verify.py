"""Byte-exact verification of a bundle: one changed, missing or added byte anywhere is refused, with its place.

Every header and padding byte is made again by `bundle_layout` and compared; every payload byte is compared with its digest;
then index, entries and records must say the same. Signature members are compared with the CRC in the directory only: whether
a signature is right is a question to the one who trusts. Reads the map once, writes nothing.
"""

from __future__ import annotations

import hashlib
import zlib

from lqcd_runtime.bundle_layout import HEAD, SIGNATURES, Member, place, read_central, tail
from lqcd_runtime.entry_lines import LineReader
from lqcd_runtime.errors import CorruptError, UsageError
from lqcd_runtime.target import TARGETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.bundle_file import BundleFile

_NEWLINE = ord("\n")


def verify(bundle: BundleFile) -> dict[str, tuple[int, int]]:
    """{member: (offset, size) of its bytes} after every byte of the file was compared.

    Errors: CorruptError naming member and offset.
    """
    listed = bundle.members()
    members = _expected_members(bundle, listed)
    view, where = bundle.view, bundle.where
    if members[-1].end != bundle.central:
        raise CorruptError(f"{where}: has the wrong size", expected=members[-1].end, found=bundle.central)
    sha256 = hashlib.sha256
    for member in members:
        header = member.local_header()
        if view[member.start : member.data].tobytes() != header:
            _refuse(view, member.start, header, f"{where}: the header of {member.name}")
        data = view[member.data : member.end]
        facts = listed.get(member.name)
        if facts is None:
            if zlib.crc32(data) != member.crc32:
                raise CorruptError(f"{where}: {member.name} does not match its CRC", details=[f"bytes from {member.data}"])
            continue
        found = sha256(data).hexdigest()
        if found != facts["sha256"]:
            raise CorruptError(
                f"{where}: {member.name} does not match its digest",
                expected=facts["sha256"],
                found=found,
                details=[f"bytes {member.data} to {member.end}"],
            )
    end = b"".join(tail(members, bundle.manifest_sha256))
    if view[bundle.central : bundle.central + len(end)].tobytes() != end:
        _refuse(view, bundle.central, end, f"{where}: the central directory")
    if bundle.central + len(end) != len(view):
        raise CorruptError(f"{where}: has the wrong size", expected=bundle.central + len(end), found=len(view))
    _compare_entries(bundle, listed, {member.name: member for member in members})
    return {member.name: (member.data, member.size) for member in members}


def _expected_members(bundle: BundleFile, listed: dict[str, dict[str, Any]]) -> list[Member]:
    """All members as the manifest says, plus manifest.json itself and the signatures that the directory names."""
    try:
        sized = {name: (int(f["size"]), int(f["crc32"], 16)) for name, f in listed.items()}
    except ValueError as err:
        raise CorruptError(f"{bundle.where}: its list of members has a CRC that is no number", found=err) from err
    for name, (size, crc32) in sized.items():
        if size < 0 or not 0 <= crc32 <= 0xFFFFFFFF:
            raise CorruptError(f"{bundle.where}: its list of members has no size or CRC of {name}", found=f"{size}, {crc32:x}")
    manifest = bundle.bytes_of("manifest.json")
    sized["manifest.json"] = (len(manifest), zlib.crc32(manifest))
    at = bundle.central
    # Without the word in the directory there is nothing to look for; where it is elsewhere than in a name, comparing finds it.
    for _ in range(bundle.member_count if SIGNATURES.encode("ascii") in bundle.view[at:].tobytes() else 0):
        name, start, size, following = read_central(bundle.view, at, bundle.where)
        if name.startswith(SIGNATURES):
            sized[name] = (size, zlib.crc32(bundle.view[start : start + size]))
        at = following
    if not sized.keys() >= set(HEAD):
        raise CorruptError(f"{bundle.where}: its manifest does not list {sorted(set(HEAD) - sized.keys())}")
    try:
        return place(sized)
    except UsageError as err:
        raise CorruptError(f"{bundle.where}: lists a member that has no place in a bundle", found=err.fact) from err


def _refuse(view: memoryview, at: int, expected: bytes, what: str) -> None:
    """Errors: CorruptError with the first byte that differs."""
    found = view[at : at + len(expected)].tobytes()
    first = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), len(found))
    raise CorruptError(
        f"{what} is not as written, first at byte {at + first} of the file",
        expected=expected[first : first + 8].hex(),
        found=found[first : first + 8].hex() or "the end of the file",
    )


def _compare_entries(bundle: BundleFile, listed: dict[str, dict[str, Any]], places: dict[str, Member]) -> None:
    """Index, entries, records and blobs must agree, and the index must be sorted, or a binary search would miss."""
    view, where, sha256 = bundle.view, bundle.where, hashlib.sha256
    lines = view[places["entries.jsonl"].data : places["entries.jsonl"].end]
    last: tuple[bytes, int] | None = None
    reader, used = LineReader(), set[str]()
    at = 0
    for i, (key, digest, offset, length, target) in enumerate(bundle.rows()):
        if last is not None and (key, target) <= last:
            raise CorruptError(f"{where}: index row {i} is out of order")
        last = key, target
        if offset != at or target >= len(TARGETS):
            raise CorruptError(
                f"{where}: index row {i} does not name the entry after the one before, or no target",
                expected=f"byte {at}, a target below {len(TARGETS)}",
                found=f"byte {offset}, target {target}",
            )
        text = lines[at : at + length].tobytes()
        at += length + 1
        if at > len(lines) or lines[at - 1] != _NEWLINE:
            raise CorruptError(f"{where}: entry {i} does not end with its line")
        if sha256(text).digest() != digest:
            raise CorruptError(f"{where}: entry {i} does not match its digest in the index", expected=digest.hex())
        line = reader.read(text, key.hex(), TARGETS[target], f"{where}: entry {i}")
        record = places.get(f"records/{line.build_key}.json")
        if record is None:
            raise CorruptError(f"{where}: has no record of {line.name}")
        # The bytes were compared with their digest before.
        if not line.is_cut_from(view[record.data : record.end].tobytes(), f"{where}: {record.name}"):
            raise CorruptError(f"{where}: the record of {line.name} differs from its entry")
        used.add(record.name)
        for role, output in line.outputs.items():
            used.add(_blob_of(output, listed, f"{where}: {role} of {line.name}"))
    if at != len(lines):
        raise CorruptError(f"{where}: entries.jsonl has lines that no index row names")
    unused = [name for name in listed if name.startswith(("records/", "blobs/")) and name not in used]
    if unused:
        raise CorruptError(f"{where}: has members that no entry names", found=unused[:3])


def _blob_of(output: Any, listed: dict[str, dict[str, Any]], what: str) -> str:
    """The member with the bytes of an output: named by their digest, and listed with it."""
    try:
        name = f"blobs/{output['sha256']}"
        facts = listed.get(name)
        sound = facts is not None and facts["size"] == output["size"] and facts["sha256"] == output["sha256"]
    except (KeyError, TypeError):
        sound = False
    if not sound:
        raise CorruptError(f"{what}: is not among the blobs", expected=output)
    return name
