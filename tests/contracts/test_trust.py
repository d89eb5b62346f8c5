"""Keys, signatures and the policy: right ones pass, every changed one is refused, unsigned and unknown are refused by default."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from lqcd_aot.trust import Policy, SigningKey, Trusted
from lqcd_aot.trust.keys import parse_public_key, read_public_key
from lqcd_aot.trust.sign import sign_bundle
from lqcd_runtime import ed25519
from lqcd_runtime.bundle_file import BundleFile
from lqcd_runtime.errors import CorruptError, TrustError, UsageError
from lqcd_runtime.signatures import members, signatures
from tests.made import small_bundle

# RFC 8032, section 7.1: (secret, public, message, signature).
RFC_VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]
BASE = bytes.fromhex("58" + "66" * 31)


def key(seed: int = 1, name: str = "alice") -> SigningKey:
    return SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32), name)


def policy(tmp_path: Path, *keys: SigningKey, **allow: bool) -> Policy:
    trusted = Trusted(tmp_path / "trusted")
    for each in keys:
        trusted.add(each.public)
    return Policy(trusted, **allow)


@pytest.fixture
def bundle_path(tmp_path: Path) -> Path:
    path = tmp_path / "b.lqcd"
    path.write_bytes(small_bundle())
    return path


@pytest.mark.parametrize("vector", RFC_VECTORS, ids=["empty", "one-byte"])
def test_verification_agrees_with_the_rfc(vector: tuple[str, str, str, str]) -> None:
    secret, public, message, signature = map(bytes.fromhex, vector)
    assert Ed25519PrivateKey.from_private_bytes(secret).sign(message) == signature
    for check in (ed25519.verify, ed25519.verify_with_integers):
        assert check(public, signature, message)
        assert not check(public, signature, message + b"x")


@settings(max_examples=25, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=64), st.integers(0, 64 * 8 - 1))
def test_integers_and_library_judge_alike(seed: bytes, message: bytes, bit: int) -> None:
    """Right signatures, and ones with a single changed bit (in R, in S, beyond the order of the group)."""
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public, good = private.public_key().public_bytes_raw(), private.sign(message)
    bad = bytearray(good)
    bad[bit // 8] ^= 1 << bit % 8
    assert ed25519.verify(public, good, message) and ed25519.verify_with_integers(public, good, message)
    assert not ed25519.verify(public, bytes(bad), message) and not ed25519.verify_with_integers(public, bytes(bad), message)


def test_malleable_and_misshapen_inputs_are_a_no() -> None:
    _, public, message, signature = map(bytes.fromhex, RFC_VECTORS[1])
    s = int.from_bytes(signature[32:], "little") + ed25519.ORDER  # the same point, another spelling
    assert not ed25519.verify(public, signature[:32] + s.to_bytes(32, "little"), message)
    assert not ed25519.verify_with_integers(public, signature[:32] + s.to_bytes(32, "little"), message)
    assert not ed25519.verify(public[:31], signature, message)
    assert not ed25519.verify(public, signature[:63], message)
    not_reduced = (ed25519.P + 1).to_bytes(32, "little")  # y = 1 spelled with y >= p
    assert not ed25519.verify(not_reduced, signature, message)
    assert ed25519._encode(ed25519._base()) == BASE  # RFC 8032, 5.1: y = 4/5


def test_a_machine_without_the_library_still_checks(bundle_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_bundle(bundle_path, key())
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    found = signatures(BundleFile(str(bundle_path)))
    assert [(s.kind, s.problem, len(s.covers)) for s in found] == [("records", None, 4), ("manifest", None, 0)]


def test_signing_is_deterministic_and_changes_nothing_else(bundle_path: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.lqcd", tmp_path / "2.lqcd"
    sign_bundle(bundle_path, key(), out=first)
    sign_bundle(bundle_path, key(), out=second)
    assert first.read_bytes() == second.read_bytes()
    sign_bundle(first, key())  # again: the same signature in the same place
    assert first.read_bytes() == second.read_bytes()
    plain, signed = BundleFile(str(bundle_path)), BundleFile(str(first))
    assert signed.verify() == first.stat().st_size
    assert signed.manifest_sha256 == plain.manifest_sha256
    assert bytes(signed.view[: plain.central]) == bytes(plain.view[: plain.central])


def test_two_signers_stand_side_by_side(bundle_path: Path, tmp_path: Path) -> None:
    sign_bundle(bundle_path, key(1), records=False)
    sign_bundle(bundle_path, key(2, "bob"), records=False)
    bundle = BundleFile(str(bundle_path))
    assert {s.key_id for s in signatures(bundle)} == {key(1).public.key_id, key(2).public.key_id}
    verdict = policy(tmp_path, key(2, "bob")).judge(bundle)
    assert verdict.trusted and verdict.by == ("bob",)


def test_unsigned_and_unknown_are_refused_unless_allowed_and_then_said(bundle_path: Path, tmp_path: Path) -> None:
    with pytest.raises(TrustError, match="is not signed") as refused:
        policy(tmp_path).judge(BundleFile(str(bundle_path)))
    assert refused.value.exit_code == 13
    verdict = policy(tmp_path, allow_unsigned=True).judge(BundleFile(str(bundle_path)))
    assert not verdict.trusted and "IS NOT SIGNED" in verdict.fact
    sign_bundle(bundle_path, key())
    bundle = BundleFile(str(bundle_path))
    for allowed in ({}, {"allow_unsigned": True}):
        with pytest.raises(TrustError, match="no trusted key vouches for 4 of its 4 records"):
            policy(tmp_path, **allowed).judge(bundle)
    assert "UNKNOWN KEYS" in policy(tmp_path, allow_unknown=True).judge(bundle).fact
    assert policy(tmp_path, key()).judge(bundle).by == ("alice",)


@pytest.mark.parametrize("what", ["sig", "payload", "keyid", "records", "renamed", "other manifest"])
def test_a_wrong_signature_is_refused_whatever_is_allowed(bundle_path: Path, tmp_path: Path, what: str) -> None:
    from lqcd_aot.trust.sign import sign_manifest, with_signatures

    sign_bundle(bundle_path, key())
    bundle = BundleFile(str(bundle_path))
    found = members(bundle)
    name, records_name = f"signatures/{key().public.key_id}.sig", f"signatures/{key().public.key_id}.records.json"
    envelope = json.loads(found[name])
    if what == "sig":
        envelope["signatures"][0]["sig"] = "A" + envelope["signatures"][0]["sig"][1:]
    elif what == "payload":
        envelope["payload"] = "A" + envelope["payload"][1:]
    elif what == "keyid":
        envelope["signatures"][0]["keyid"] = "0" * 64
    found[name] = json.dumps(envelope).encode()
    if what == "records":
        lines = json.loads(found[records_name])
        lines["signatures"] = dict(zip(lines["signatures"], reversed(lines["signatures"].values()), strict=True))
        found[records_name] = json.dumps(lines).encode()
    elif what == "renamed":
        found[f"signatures/{'1' * 64}.sig"] = found.pop(name)
    elif what == "other manifest":
        found[name] = sign_manifest("0" * 64, key())[1]
    bad = tmp_path / "bad.lqcd"
    with_signatures(bundle, found, bad)
    with pytest.raises((TrustError, CorruptError)):
        policy(tmp_path, key(), allow_unsigned=True, allow_unknown=True).judge(BundleFile(str(bad)))


def test_a_record_signature_does_not_pass_for_a_manifest(bundle_path: Path) -> None:
    """The payload type is signed too, so nothing signed for one purpose serves another."""
    from lqcd_runtime.signatures import MANIFEST_TYPE, RECORD_TYPE, signed_bytes

    assert signed_bytes(MANIFEST_TYPE, b"x") != signed_bytes(RECORD_TYPE, b"x")
    # Lengths are framed: moving bytes between type and payload gives other bytes.
    assert signed_bytes("ab", b"c") != signed_bytes("a", b"bc")


def test_key_files(tmp_path: Path) -> None:
    made = SigningKey.generate("carol")
    secret, public = made.save(tmp_path / "keys")
    assert secret.stat().st_mode & 0o777 == 0o600
    assert SigningKey.load(secret).public == made.public == read_public_key(public)
    with pytest.raises(UsageError, match="exists already"):
        SigningKey.generate("carol").save(tmp_path / "keys")
    secret.chmod(0o644)
    with pytest.raises(TrustError, match="others may read it"):
        SigningKey.load(secret)
    secret.chmod(0o600)
    secret.write_bytes(b"nonsense")
    with pytest.raises(TrustError, match="is no secret key"):
        SigningKey.load(secret)
    with pytest.raises(TrustError, match="cannot be read"):
        SigningKey.load(tmp_path / "absent.key")
    with pytest.raises(UsageError, match="cannot be used"):
        SigningKey.generate("../up")


@pytest.mark.parametrize(
    "change", [{"key_id": "0" * 64}, {"public_key": "00"}, {"name": "../x"}, {"schema": "lqcd-aot/other/v1"}, {"public_key": 3}]
)
def test_public_key_files_that_are_none(change: dict[str, object]) -> None:
    value = json.loads(key().public.as_bytes()) | change
    with pytest.raises(CorruptError):
        parse_public_key(json.dumps(value).encode(), "key")
    assert parse_public_key(key().public.as_bytes(), "key") == key().public


def test_the_list_of_trusted_signers(tmp_path: Path) -> None:
    trusted = Trusted(tmp_path / "trusted")
    assert trusted.all() == []
    trusted.add(key(1).public)
    trusted.add(key(1).public)
    with pytest.raises(UsageError, match="is another key already"):
        trusted.add(key(2).public)
    trusted.add(key(2, "bob").public)
    assert [k.name for k in trusted.all()] == ["alice", "bob"]
    with pytest.raises(UsageError, match="names 0 keys"):
        trusted.remove("a")
    assert trusted.remove(key(1).public.key_id[:12]).name == "alice"
    (tmp_path / "trusted" / f"{'0' * 64}.pub").write_bytes(key(3, "mallory").public.as_bytes())
    with pytest.raises(CorruptError, match="is another key"):
        trusted.all()
