"""Signatures and documents written by earlier releases are understood for ever: the file here is never written again."""

from __future__ import annotations

import json
from pathlib import Path

from lqcd_aot.ship.closure import import_bundle
from lqcd_aot.ship.content import content_of, opened
from lqcd_aot.ship.documents import PROVENANCE, SBOM
from lqcd_aot.store import open_store
from lqcd_aot.trust import Policy, PublicKey, Trusted
from lqcd_runtime import ed25519
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.signatures import members, signatures, signed_bytes
from tests.golden.make_signed import code

FILE = Path(__file__).parent / "signed-v1.lqcd"
DIGEST = "c9108e98bb72ffafcfa2891619636140e97a5693de9c95f0fcdadc9aa383321f"
KEY = PublicKey(
    "golden",
    "2d210074e563d6f307ea7dd3ce802835cd898726c45a99c608fdd7160495a780",
    "3db3d6888c794119a90745eeddf6b097632dafe72082310afa4665a026500ae0",
)


def test_the_file_is_as_it_was() -> None:
    assert sha256_hex(FILE.read_bytes()) == DIGEST, "a golden file must never change"


def test_its_signatures_are_right_and_trusted(tmp_path: Path) -> None:
    trusted = Trusted(tmp_path)
    trusted.add(KEY)
    with opened(FILE) as bundle:
        assert [(s.kind, s.problem, s.key_id) for s in signatures(bundle)] == [
            ("records", None, KEY.key_id),
            ("manifest", None, KEY.key_id),
        ]
        assert Policy(trusted).judge(bundle).by == ("golden",)


def test_its_signature_is_right_by_hand() -> None:
    """The envelope taken apart without our code, its signature checked with integers."""
    import base64

    with opened(FILE) as bundle:
        envelope = json.loads(members(bundle)[f"signatures/{KEY.key_id}.sig"])
        manifest = bundle.bytes_of("manifest.json")
    payload = base64.b64decode(envelope["payload"])
    assert json.loads(payload) == {
        "schema": "lqcd-aot/signature/v1",
        "manifest_sha256": sha256_hex(manifest),
        "public_key": KEY.public_key,
    }
    kind = "application/vnd.lqcd-aot.manifest+json"
    message = b"DSSEv1 38 " + kind.encode() + b" %d " % len(payload) + payload
    assert len(kind) == 38 and message == signed_bytes(kind, payload)
    signature = base64.b64decode(envelope["signatures"][0]["sig"])
    assert ed25519.verify_with_integers(bytes.fromhex(KEY.public_key), signature, message)
    assert sha256_hex(b"lqcd-aot/ed25519-key/v1\0" + bytes.fromhex(KEY.public_key)) == KEY.key_id


def test_its_documents_and_records_are_understood(tmp_path: Path) -> None:
    trusted = Trusted(tmp_path / "trusted")
    trusted.add(KEY)
    store = open_store(tmp_path / "store", create=True)
    assert import_bundle(FILE, store, Policy(trusted)).published == 2
    for key in store.list_build_keys():
        record = store.record(key)
        assert record is not None
        assert store.read_blob(record["outputs"]["code"]["sha256"]) == code(record["target"])
    with opened(FILE) as bundle:
        documents = content_of(bundle).documents
    assert json.loads(documents[PROVENANCE])["predicate"]["runDetails"]["metadata"]["finishedOn"] == "1970-01-01T00:00:00Z"
    assert json.loads(documents[SBOM])["specVersion"] == "1.6"
