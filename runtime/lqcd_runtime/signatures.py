"""Signatures in a bundle: their form, and whether they are right. Whether a signer is trusted is not decided here.

    signatures/<key id>.sig            DSSE envelope over the digest of manifest.json: covers every byte of the bundle
    signatures/<key id>.records.json   one signature for each record: survives slim, merge and extract, where manifests change

    key id     SHA-256 of "lqcd-aot/ed25519-key/v1" 0x00 and the 32 bytes of the public key, in hex
    signed     "DSSEv1 <len> <payload type> <len> <payload>", payload = canonical JSON; the payload type keeps the kinds apart

Both are deterministic: equal key and content give equal bytes. Source: DSSE 1.0 (secure-systems-lab), RFC 8032. Reads JSON and
base64 of bounded size and nothing else. The key that made a signature stands beside it, so anybody can check the arithmetic;
only a list of trusted keys (lqcd_aot.trust) says whose it is.
"""

from __future__ import annotations

from lqcd_runtime.bundle_layout import read_central
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.errors import CorruptError
from lqcd_runtime.manifest import check_schema, parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from lqcd_runtime.bundle_file import BundleFile

KEY_TAG = b"lqcd-aot/ed25519-key/v1\0"
SIGNATURE_SCHEMA = "lqcd-aot/signature/v1"
RECORDS_SCHEMA = "lqcd-aot/record-signatures/v1"
MANIFEST_TYPE = "application/vnd.lqcd-aot.manifest+json"
RECORD_TYPE = "application/vnd.lqcd-aot.record+json"
FOLDER = "signatures/"
LARGEST = 64 << 20  # a signature of 100,000 records has 20 MB
MOST = 64


class Signature:
    """One checked signature. key_id, public_key (hex); kind: "manifest" or "records"; problem: None where it is right, else one
    sentence; covers: build keys of the records signed, empty for a manifest (which covers all).
    """

    __slots__ = ("covers", "key_id", "kind", "problem", "public_key")

    def __init__(self, key_id: str, public_key: str, kind: str, problem: str | None, covers: Iterable[str] = ()) -> None:
        self.key_id, self.public_key, self.kind, self.problem = key_id, public_key, kind, problem
        self.covers = frozenset(covers)

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {"key_id": self.key_id, "kind": self.kind, "problem": self.problem, "records": len(self.covers)}

    def __str__(self) -> str:
        what = "all of the bundle" if self.kind == "manifest" else f"{len(self.covers)} records"
        return f"signature by {self.key_id[:16]} over {what}: {self.problem or 'right'}"


def key_id_of(public_key: bytes) -> str:
    """The name of a public key (32 bytes)."""
    return sha256_hex(KEY_TAG + public_key)


def signed_bytes(payload_type: str, payload: bytes) -> bytes:
    """What is signed: DSSE's pre-authentication encoding."""
    kind = payload_type.encode("ascii")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def manifest_payload(manifest_sha256: str, public_key: str) -> bytes:
    """The payload of a manifest's signature; public_key in hex."""
    return canonical_json({"schema": SIGNATURE_SCHEMA, "manifest_sha256": manifest_sha256, "public_key": public_key})


def record_payload(build_key: str, record_sha256: str, public_key: str) -> bytes:
    """The payload of a record's signature; record_sha256: of the record's canonical JSON without its seal."""
    return canonical_json(
        {"schema": SIGNATURE_SCHEMA, "build_key": build_key, "record_sha256": record_sha256, "public_key": public_key}
    )


def members(bundle: BundleFile) -> dict[str, bytes]:
    """{member name: bytes} below signatures/. Errors: CorruptError for too many or too large ones."""
    found: dict[str, bytes] = {}
    at = bundle.central
    for _ in range(bundle.member_count):
        name, start, size, at = read_central(bundle.view, at, bundle.where)
        if name.startswith(FOLDER):
            if size > LARGEST or len(found) >= MOST:
                raise CorruptError(f"{bundle.where}: has more signatures than can be", expected=f"{MOST} of {LARGEST} bytes")
            found[name] = bytes(bundle.view[start : start + size])
    return found


def signatures(bundle: BundleFile) -> list[Signature]:
    """Every signature of a bundle, checked against its manifest and records. Errors: CorruptError for what is no signature."""
    out = []
    for name, data in members(bundle).items():
        if name.endswith(".records.json"):
            listed = {n[8:-5]: f["sha256"] for n, f in bundle.members().items() if n.startswith("records/")}
            out.append(check_records(data, listed, f"{bundle.where}: {name}"))
        else:
            out.append(check_manifest(data, bundle.manifest_sha256, f"{bundle.where}: {name}"))
        if name.removeprefix(FOLDER).partition(".")[0] != out[-1].key_id:
            raise CorruptError(f"{bundle.where}: {name} holds a signature of another key", found=out[-1].key_id)
    return out


def check_manifest(data: bytes, manifest_sha256: str, where: str) -> Signature:
    """The signature of a manifest from its envelope. Errors: CorruptError where this is no envelope of ours."""
    envelope = parse_object(data, where)
    try:
        payload, (line,) = _unbase64(envelope["payload"]), envelope["signatures"]
        signature, claimed = _unbase64(line["sig"]), line["keyid"]
        kind = envelope["payloadType"]
    except (KeyError, TypeError, ValueError) as err:
        raise CorruptError(f"{where}: is no signature", found=f"{type(err).__name__}: {err}") from err
    body = parse_object(payload, where)
    check_schema(body.get("schema"), SIGNATURE_SCHEMA, where)
    public = _public_key(body, claimed, where)
    problem = None
    if kind != MANIFEST_TYPE:
        problem = f"signs something of type {kind}"
    elif payload != manifest_payload(manifest_sha256, public):
        problem = f"signs another manifest, {str(body.get('manifest_sha256'))[:16]}"
    elif not _is_right(public, signature, MANIFEST_TYPE, payload):
        problem = "does not match its own key"
    return Signature(str(claimed), public, "manifest", problem)


def check_records(data: bytes, records: Mapping[str, str], where: str) -> Signature:
    """The signatures of records; records: {build key: SHA-256}. What is signed beyond them is of no interest.

    Errors: CorruptError where this is no list of signatures.
    """
    value = parse_object(data, where)
    check_schema(value.get("schema"), RECORDS_SCHEMA, where)
    public = _public_key(value, value.get("key_id"), where)
    lines = value.get("signatures")
    if not isinstance(lines, dict):
        raise CorruptError(f"{where}: lists no signatures")
    covered: list[str] = []
    wrong: list[str] = []
    for build_key, digest in records.items():
        if build_key not in lines:
            continue
        try:
            signature = _unbase64(lines[build_key])
        except (TypeError, ValueError):
            signature = b""
        right = _is_right(public, signature, RECORD_TYPE, record_payload(build_key, digest, public))
        (covered if right else wrong).append(build_key)
    problem = f"does not match {len(wrong)} of the records, first {wrong[0][:16]}" if wrong else None
    return Signature(str(value["key_id"]), public, "records", problem, covered)


def _public_key(value: dict[str, Any], claimed: object, where: str) -> str:
    try:
        public = bytes.fromhex(value["public_key"])
    except (KeyError, TypeError, ValueError) as err:
        raise CorruptError(f"{where}: names no public key") from err
    if len(public) != 32 or key_id_of(public) != claimed:
        raise CorruptError(f"{where}: its key id is not that of its key", expected=key_id_of(public), found=claimed)
    return public.hex()


def _is_right(public: str, signature: bytes, kind: str, payload: bytes) -> bool:
    from lqcd_runtime.ed25519 import verify

    return verify(bytes.fromhex(public), signature, signed_bytes(kind, payload))


def _unbase64(text: object) -> bytes:
    import base64

    if not isinstance(text, str):
        raise TypeError("is not text")
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode("ascii") != text:
        raise ValueError("is not the one base64 spelling of its bytes")
    return data
