"""Writes a bundle: records and blobs in, one deterministic file out.

Owns the making of index, entries, members list and manifest. Equal records and blobs give equal bytes, whatever their order
at the call. Knows nothing of stores, temporary names or durability: the caller owns the file.
"""

from __future__ import annotations

import zlib

from lqcd_runtime.bundle_layout import index_bytes, place, tail
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.errors import CorruptError, UsageError
from lqcd_runtime.manifest import BUNDLE_SCHEMA, Entry, entry_dict
from lqcd_runtime.target import TARGETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, BinaryIO


def write_bundle(
    out: BinaryIO,
    *,
    name: str,
    recipe: Mapping[str, str],
    records: Iterable[Mapping[str, Any]],
    read_blob: Callable[[str], bytes],
    documents: Mapping[str, bytes] | None = None,
    signatures: Mapping[str, bytes] | None = None,
) -> dict[str, Any]:
    """Write a bundle to `out` (opened for binary writing, at position 0) and return {"manifest_sha256", "size", "count"}.

    recipe: {"name": .., "sha256": ..} of the recipe file. records: build records (artifacts/README.md), at most one for each
    (spec, target). read_blob: sha256 -> bytes, called twice per distinct blob, one blob in memory at a time. documents:
    {member name below documents/: bytes}, e.g. provenance. signatures: {member name below signatures/: bytes}, made over the
    manifest digest; they are not in the manifest.
    Errors: UsageError for no records or two records of one variant, CorruptError where a blob is not what its record says.
    """
    ordered = _in_order(records)
    small = _small_members(name, recipe, ordered, read_blob, documents or {})
    blobs = small.pop("blobs")
    for label, data in (signatures or {}).items():
        small[label] = data
    sized = {label: (len(data), zlib.crc32(data)) for label, data in small.items()} | blobs
    members = place(sized)
    manifest_sha256 = sha256_hex(small["manifest.json"])
    for member in members:
        out.write(member.local_header())
        data = small[member.name] if member.name in small else read_blob(member.name.removeprefix("blobs/"))
        if len(data) != member.size or zlib.crc32(data) != member.crc32:
            raise CorruptError(f"bundle {name}: {member.name} changed while it was packed")
        out.write(data)
    size = members[-1].end
    for piece in tail(members, manifest_sha256):
        out.write(piece)
        size += len(piece)
    return {"manifest_sha256": manifest_sha256, "size": size, "count": len(ordered)}


def _in_order(records: Iterable[Mapping[str, Any]]) -> list[tuple[Entry, dict[str, Any]]]:
    """(entry, record) sorted by (spec_key, target id), each checked by reading it as the runtime will."""
    seen: dict[tuple[str, int], tuple[Entry, dict[str, Any]]] = {}
    for each in records:
        record = {k: v for k, v in each.items() if k != "seal"}
        entry = Entry.from_dict(entry_dict(record), f"record {str(record.get('build_key'))[:12]}")
        if entry.target not in TARGETS:
            raise UsageError(f"record {entry.name}: has an unknown target", expected=", ".join(TARGETS))
        key = (entry.spec_key, TARGETS.index(entry.target))
        if key in seen:
            raise UsageError(f"bundle: has two records of {entry.name}", found=f"{seen[key][0].build_key}, {entry.build_key}")
        seen[key] = (entry, record)
    if not seen:
        raise UsageError("bundle: would be empty", expected="at least one record")
    return [seen[key] for key in sorted(seen)]


def _small_members(
    name: str,
    recipe: Mapping[str, str],
    ordered: list[tuple[Entry, dict[str, Any]]],
    read_blob: Callable[[str], bytes],
    documents: Mapping[str, bytes],
) -> dict[str, Any]:
    """{member: bytes} of all but the blobs, and {"blobs": {member: (size, crc32)}}."""
    members: dict[str, Any] = dict(documents)
    lines, rows, at = [], [], 0
    listed: dict[str, dict[str, Any]] = {}
    blobs: dict[str, tuple[int, int]] = {}
    for entry, record in ordered:
        line = canonical_json(entry.as_dict())
        rows.append((entry.spec_key, sha256_hex(line), at, len(line), TARGETS.index(entry.target)))
        lines.append(line + b"\n")
        at += len(line) + 1
        members[f"records/{entry.build_key}.json"] = canonical_json(record)
        for output in entry.outputs.values():
            label = f"blobs/{output['sha256']}"
            if label not in blobs:
                data = read_blob(output["sha256"])
                if sha256_hex(data) != output["sha256"] or len(data) != output["size"]:
                    raise CorruptError(
                        f"blob {output['sha256'][:12]}: is not what record {entry.name} says",
                        expected=f"{output['sha256']} ({output['size']} bytes)",
                        found=f"{sha256_hex(data)} ({len(data)} bytes)",
                    )
                blobs[label] = (len(data), zlib.crc32(data))
                listed[label] = {"sha256": output["sha256"], "size": len(data), "crc32": f"{blobs[label][1]:08x}"}
    members["index.bin"] = index_bytes(rows)
    members["entries.jsonl"] = b"".join(lines)
    listed |= {label: _facts(data) for label, data in members.items() if label.startswith(("records/", "documents/"))}
    members["members.json"] = canonical_json(listed)
    members["manifest.json"] = canonical_json(
        {
            "schema": BUNDLE_SCHEMA,
            "name": name,
            "conventions": ordered[0][1]["conventions"],
            "recipe": dict(recipe),
            "count": len(ordered),
            # Records and blobs are listed in members.json, so that opening reads a few hundred bytes of JSON, not megabytes.
            "members": {label: _facts(members[label]) for label in ("index.bin", "entries.jsonl", "members.json")},
        }
    )
    members["blobs"] = blobs
    return members


def _facts(data: bytes) -> dict[str, Any]:
    return {"sha256": sha256_hex(data), "size": len(data), "crc32": f"{zlib.crc32(data):08x}"}
