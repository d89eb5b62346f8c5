"""Records and bundles made on the spot, with arbitrary bytes as machine code: for tests of the formats."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from lqcd_runtime.bundle_writer import write_bundle
from lqcd_runtime.conventions import CONVENTIONS
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.manifest import RECORD_SCHEMA
from lqcd_runtime.signature import Spec

RECIPE = {"name": "made", "sha256": sha256_hex(b"made")}


def code_of(spec: Spec, target: str) -> bytes:
    """Bytes that differ from variant to variant."""
    return f"code of {spec.name}@{target}\n".encode() * 5


def record(spec: Spec, target: str, code: bytes | None = None, witness: dict[str, Any] | None = None) -> dict[str, Any]:
    """A build record whose build key is a digest of spec, target and code."""
    data = code_of(spec, target) if code is None else code
    build_key = sha256_hex(f"{spec.key} {target} {sha256_hex(data)}".encode())
    return {
        "schema": RECORD_SCHEMA,
        "build_key": build_key,
        "spec_key": spec.key,
        "spec": spec.as_dict(),
        "target": target,
        "components": {"spec_key": spec.key, "target": target, "salt": ""},
        "conventions": CONVENTIONS,
        "outputs": {"code": {"sha256": sha256_hex(data), "size": len(data), "media_type": "application/x-sharedlib"}},
        "witness": witness,
        "witness_status": "passed" if witness else "unchecked: made by a test",
        "provenance": {"compile_ms": 12},
    }


def bundle_bytes(records: Iterable[dict[str, Any]], blobs: Iterable[bytes] = (), **options: Any) -> bytes:
    """A bundle of records; `blobs` are the codes that `code_of` does not make."""
    records = list(records)
    known = {sha256_hex(b): b for b in blobs}
    for each in records:
        made = code_of(Spec.from_dict(each["spec"]), each["target"])
        known.setdefault(sha256_hex(made), made)
    out = io.BytesIO()
    write_bundle(out, name="made", recipe=RECIPE, records=records, read_blob=known.__getitem__, **options)
    return out.getvalue()


def small_bundle(**options: Any) -> bytes:
    """Two specs, three targets: four variants."""
    wilson = Spec("wilson", "4x4x4x4", "float64")
    return bundle_bytes(
        [
            record(wilson, "x86-64-v2"),
            record(wilson, "x86-64-v3"),
            record(wilson, "aarch64"),
            record(Spec("plaquette", "4x4x4x4", "float32"), "x86-64-v2"),
        ],
        **options,
    )
