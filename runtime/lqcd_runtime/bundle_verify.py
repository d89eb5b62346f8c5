"""Byte-exact verification of a bundle: one changed, missing or added byte anywhere is refused, with its place.

Every header and padding byte is made again by `bundle_layout` and compared; every payload byte is compared with its digest;
then index, entries and records must say the same. Signature members are compared with the CRC in the directory only: whether
a signature is right is a question to the one who trusts. Reads the map once, writes nothing.
"""

from __future__ import annotations

import zlib

from lqcd_runtime.bundle_layout import HEAD, SIGNATURES, Member, place, read_central, sort_key, tail
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CorruptError, UsageError
from lqcd_runtime.manifest import CODE, Entry, entry_dict, parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.bundle_file import BundleFile


def verify(bundle: BundleFile) -> int:
    """The number of bytes compared, which is the size of the file. Errors: CorruptError naming member and offset."""
    listed = bundle.members()
    members = _expected_members(bundle, listed)
    view, where = bundle.view, bundle.where
    if members[-1].end != bundle.central:
        raise CorruptError(f"{where}: has the wrong size", expected=members[-1].end, found=bundle.central)
    for member in members:
        _compare(view, member.start, member.local_header(), f"{where}: the header of {member.name}")
        data = view[member.data : member.end]
        if member.name in listed and sha256_hex(data) != listed[member.name]["sha256"]:
            raise CorruptError(
                f"{where}: {member.name} does not match its digest",
                expected=listed[member.name]["sha256"],
                found=sha256_hex(data),
                details=[f"bytes {member.data} to {member.end}"],
            )
        if member.name not in listed and zlib.crc32(data) != member.crc32:
            raise CorruptError(f"{where}: {member.name} does not match its CRC", details=[f"bytes from {member.data}"])
    at = bundle.central
    for piece in tail(members, bundle.manifest_sha256):
        _compare(view, at, piece, f"{where}: the central directory")
        at += len(piece)
    if at != len(view):
        raise CorruptError(f"{where}: has the wrong size", expected=at, found=len(view))
    _compare_entries(bundle, listed, {member.name: member for member in members})
    return len(view)


def _expected_members(bundle: BundleFile, listed: dict[str, dict[str, Any]]) -> list[Member]:
    """All members as the manifest says, plus manifest.json itself and the signatures that the directory names."""
    try:
        sized = {name: (int(f["size"]), int(f["crc32"], 16)) for name, f in listed.items()}
    except ValueError as err:
        raise CorruptError(f"{bundle.where}: its list of members has a CRC that is no number", found=err) from err
    manifest = bundle.bytes_of("manifest.json")
    sized["manifest.json"] = (len(manifest), zlib.crc32(manifest))
    at = bundle.central
    for _ in range(bundle.member_count):
        name, start, size, following = read_central(bundle.view, at, bundle.where)
        if name.startswith(SIGNATURES):
            sized[name] = (size, zlib.crc32(bundle.view[start : start + size]))
        at = following
    if not sized.keys() >= set(HEAD):
        raise CorruptError(f"{bundle.where}: its manifest does not list {sorted(set(HEAD) - sized.keys())}")
    try:
        return place((name, *sized[name]) for name in sorted(sized, key=sort_key))
    except UsageError as err:
        raise CorruptError(f"{bundle.where}: lists a member that has no place in a bundle", found=err.fact) from err


def _compare(view: memoryview, at: int, expected: bytes, what: str) -> None:
    found = view[at : at + len(expected)]
    if found == expected:
        return
    first = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), len(found))
    raise CorruptError(
        f"{what} is not as written, first at byte {at + first} of the file",
        expected=expected[first : first + 8].hex(),
        found=bytes(found[first : first + 8]).hex() or "the end of the file",
    )


def _compare_entries(bundle: BundleFile, listed: dict[str, dict[str, Any]], places: dict[str, Member]) -> None:
    """Index, entries, records and blobs must agree, and the index must be sorted, or a binary search would miss."""
    last: tuple[bytes, int] | None = None
    at = 0
    for i in range(bundle.count):
        entry = bundle.entry(i)
        key, _, offset, length, target = bundle.row(i)
        rank = (key, _target_id(target))
        if last is not None and rank <= last:
            raise CorruptError(f"{bundle.where}: index row {i} is out of order")
        last = rank
        if offset != at:
            raise CorruptError(f"{bundle.where}: entry {i} is not where the one before ends", expected=at, found=offset)
        at += length + 1
        record = places.get(f"records/{entry.build_key}.json")
        if record is None:
            raise CorruptError(f"{bundle.where}: has no record of {entry.name}")
        # The bytes were compared with their digest before.
        _compare_entry(bundle, listed, entry, parse_object(bytes(bundle.view[record.data : record.end]), record.name))
    if at != len(bundle.bytes_of("entries.jsonl")):
        raise CorruptError(f"{bundle.where}: entries.jsonl has lines that no index row names")


def _compare_entry(bundle: BundleFile, listed: dict[str, dict[str, Any]], entry: Entry, record: dict[str, Any]) -> None:
    if entry_dict(record) != entry.as_dict():
        raise CorruptError(f"{bundle.where}: the record of {entry.name} differs from its entry")
    for role, output in entry.outputs.items():
        blob = listed.get(f"blobs/{output['sha256']}")
        if blob is None or blob["size"] != output["size"]:
            raise CorruptError(f"{bundle.where}: {role} of {entry.name} is not among the blobs", expected=output)
    if CODE not in entry.outputs:
        raise CorruptError(f"{bundle.where}: {entry.name} has no code")


def _target_id(target: str) -> int:
    from lqcd_runtime.target import TARGETS

    return TARGETS.index(target)
