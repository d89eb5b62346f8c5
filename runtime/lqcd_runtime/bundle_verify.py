"""Byte-exact verification of a bundle: one changed, missing or added byte anywhere is refused, with its place.

Every header and padding byte is made again by `bundle_layout` and compared; every payload byte is compared with its digest;
then index, entries and records must say the same. Signature members are compared with the CRC in the directory only: whether
a signature is right is a question to the one who trusts. Reads the map once, writes nothing.
"""

from __future__ import annotations

import hashlib
import json
import zlib

from lqcd_runtime.bundle_layout import HEAD, SIGNATURES, Member, place, read_central, sort_key, tail
from lqcd_runtime.errors import CorruptError, UsageError
from lqcd_runtime.manifest import CODE, RECORD_SCHEMA, Entry, entry_dict, parse_object
from lqcd_runtime.target import TARGETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.bundle_file import BundleFile
    from lqcd_runtime.signature import Spec

_decode = json.JSONDecoder().decode
# What canonical JSON has at the places where a record has more than its entry (artifacts/README.md, "Record").
_BUILD_KEY = b'{"build_key":"'
_COMPONENTS = b',"components":{'
_CONVENTIONS = b',"conventions":{'
_PROVENANCE = b',"provenance":{'
_SCHEMA = b',"schema":"' + RECORD_SCHEMA.encode("ascii") + b'","spec":{'


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
        return place((name, *sized[name]) for name in sorted(sized, key=sort_key))
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
    view, where = bundle.view, bundle.where
    lines = bundle.bytes_of("entries.jsonl")
    last: tuple[bytes, int] | None = None
    specs = _Specs()
    at = 0
    for i, (key, digest, offset, length, target) in enumerate(bundle.rows()):
        if last is not None and (key, target) <= last:
            raise CorruptError(f"{where}: index row {i} is out of order")
        last = key, target
        if offset != at:
            raise CorruptError(f"{where}: entry {i} is not where the one before ends", expected=at, found=offset)
        line = lines[at : at + length]
        at += length + 1
        if hashlib.sha256(line).digest() != digest:
            raise CorruptError(f"{where}: entry {i} does not match its digest in the index", expected=digest.hex())
        entry = specs.entry(_parsed(line, where, i), f"{where}: entry {i}")
        if entry.spec_key != key.hex() or target >= len(TARGETS) or entry.target != TARGETS[target]:
            raise CorruptError(f"{where}: index row {i} points at {entry.name}", expected=f"{key.hex()}, target {target}")
        record = places.get(f"records/{entry.build_key}.json")
        if record is None:
            raise CorruptError(f"{where}: has no record of {entry.name}")
        # The bytes were compared with their digest before.
        data = view[record.data : record.end].tobytes()
        if not _is_cut_from(line, data) and entry_dict(parse_object(data, f"{where}: {record.name}")) != entry.as_dict():
            raise CorruptError(f"{where}: the record of {entry.name} differs from its entry")
        _compare_blobs(where, listed, entry)
    if at != len(lines):
        raise CorruptError(f"{where}: entries.jsonl has lines that no index row names")


def _parsed(line: bytes, where: str, i: int) -> dict[str, Any]:
    try:
        value: object = _decode(line.decode("ascii"))
    except (ValueError, RecursionError) as err:
        raise CorruptError(f"{where}: entry {i} is not JSON", found=err) from err
    if not isinstance(value, dict):
        raise CorruptError(f"{where}: entry {i} is not a JSON object", found=type(value).__name__)
    return value


def _is_cut_from(line: bytes, record: bytes) -> bool:
    """Whether an entry is, byte for byte, a record without components and provenance; False also where that takes parsing.

    Three quarters of the time of parsing go into what an entry leaves out. Both cuts begin and end where canonical JSON has these
    members; a cut that ended anywhere else in a record that is JSON would leave an entry that is none, and entries are parsed.
    """
    first, last = line.find(_CONVENTIONS), line.rfind(_SCHEMA)
    back = len(line) - last
    cut = record.rfind(_PROVENANCE, 0, -back)
    return (
        line.startswith(_BUILD_KEY)
        and first == len(_BUILD_KEY) + 65
        and last > first
        and cut >= 0
        and record.startswith(line[:first] + _COMPONENTS)
        and record.endswith(b"}" + line[last:])
        and record.endswith(b"}" + line[first:last], 0, cut)
    )


class _Specs:
    """Makes entries; the variants of one spec follow each other, so their spec is made once."""

    def __init__(self) -> None:
        self._raw: object = None
        self._key = ""
        self._spec: Spec | None = None

    def entry(self, raw: dict[str, Any], where: str) -> Entry:
        """As `Entry.from_dict`."""
        if self._spec is not None and raw.get("spec_key") == self._key and raw.get("spec") == self._raw:
            return Entry.of_spec(raw, self._spec, where)
        entry = Entry.from_dict(raw, where)
        self._raw, self._spec, self._key = raw["spec"], entry.spec, entry.spec_key
        return entry


def _compare_blobs(where: str, listed: dict[str, dict[str, Any]], entry: Entry) -> None:
    for role, output in entry.outputs.items():
        blob = listed.get(f"blobs/{output['sha256']}")
        if blob is None or blob["size"] != output["size"]:
            raise CorruptError(f"{where}: {role} of {entry.name} is not among the blobs", expected=output)
    if CODE not in entry.outputs:
        raise CorruptError(f"{where}: {entry.name} has no code")
