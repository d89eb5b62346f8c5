"""Signing: the envelope of a manifest, the signatures of records, and a bundle with them added.

Owns the making; the form is lqcd_runtime.signatures'. A bundle is signed by writing it anew beside itself: everything up to the
signatures keeps its bytes and its place, and the manifest keeps its digest.
"""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO

from lqcd_aot.store.fs import FileSystem
from lqcd_aot.store.outfile import write_file
from lqcd_runtime.bundle_file import BundleFile
from lqcd_runtime.bundle_layout import place, tail
from lqcd_runtime.digest import canonical_json
from lqcd_runtime.signatures import (
    FOLDER,
    MANIFEST_TYPE,
    RECORD_TYPE,
    RECORDS_SCHEMA,
    manifest_payload,
    members,
    record_payload,
    signed_bytes,
)

if TYPE_CHECKING:
    from lqcd_aot.trust.keys import SigningKey


def sign_manifest(manifest_sha256: str, key: SigningKey) -> tuple[str, bytes]:
    """(member name, envelope) of a signature over a manifest."""
    payload = manifest_payload(manifest_sha256, key.public.public_key)
    signature = key.sign(signed_bytes(MANIFEST_TYPE, payload))
    envelope = {
        "payload": _base64(payload),
        "payloadType": MANIFEST_TYPE,
        "signatures": [{"keyid": key.public.key_id, "sig": _base64(signature)}],
    }
    return f"{FOLDER}{key.public.key_id}.sig", canonical_json(envelope)


def sign_records(records: Mapping[str, str], key: SigningKey) -> tuple[str, bytes]:
    """(member name, list of signatures) over records, {build key: SHA-256 of the canonical record}."""
    lines = {}
    for build_key, digest in records.items():
        payload = record_payload(build_key, digest, key.public.public_key)
        lines[build_key] = _base64(key.sign(signed_bytes(RECORD_TYPE, payload)))
    return records_member(key.public.key_id, key.public.public_key, lines)


def records_member(key_id: str, public_key: str, lines: Mapping[str, str]) -> tuple[str, bytes]:
    """(member name, bytes) of signatures of records that were made before, {build key: base64}."""
    value = {"schema": RECORDS_SCHEMA, "key_id": key_id, "public_key": public_key, "signatures": dict(lines)}
    return f"{FOLDER}{key_id}.records.json", canonical_json(value)


def sign_bundle(
    path: str | os.PathLike[str],
    key: SigningKey,
    *,
    records: bool = True,
    out: str | os.PathLike[str] | None = None,
    fs: FileSystem | None = None,
) -> None:
    """Add a key's signatures to a bundle (in place, or as `out`); those of other keys stay. All bytes are verified before.

    records: sign every record too, so that what `slim`, `merge` and `extract` make of it can still be trusted.
    Errors: CorruptError for a bundle that is not sound: nobody signs what does not verify; StoreError.
    """
    bundle = BundleFile(os.fspath(path))
    try:
        bundle.verify()
        added = dict([sign_manifest(bundle.manifest_sha256, key)])
        if records:
            added |= dict([sign_records(record_digests(bundle), key)])
        with_signatures(bundle, members(bundle) | added, out or path, fs=fs)
    finally:
        bundle.close()


def record_digests(bundle: BundleFile) -> dict[str, str]:
    """{build key: SHA-256 of the canonical record} of a bundle."""
    return {n[8:-5]: facts["sha256"] for n, facts in bundle.members().items() if n.startswith("records/")}


def with_signatures(
    bundle: BundleFile, signatures: Mapping[str, bytes], out: str | os.PathLike[str], *, fs: FileSystem | None = None
) -> None:
    """Write a bundle as `out` with exactly these signature members in place of its own. Errors: StoreError, CorruptError."""
    listed = bundle.members()
    manifest = bundle.bytes_of("manifest.json")
    sized = {name: (int(f["size"]), int(f["crc32"], 16)) for name, f in listed.items()}
    sized["manifest.json"] = (len(manifest), zlib.crc32(manifest))
    sized |= {name: (len(data), zlib.crc32(data)) for name, data in signatures.items()}
    placed = place(sized)

    def write(sink: BinaryIO) -> None:
        start = min((m.start for m in placed if m.name in signatures), default=placed[-1].end)
        sink.write(bundle.view[:start])
        for member in placed:
            if member.name in signatures:
                sink.write(member.local_header())
                sink.write(signatures[member.name])
        for piece in tail(placed, bundle.manifest_sha256):
            sink.write(piece)

    write_file(out, write, what="bundle", check=_verify, fs=fs)


def _verify(path: str) -> None:
    written = BundleFile(path)
    try:
        written.verify()
    finally:
        written.close()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
