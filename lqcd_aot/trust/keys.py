"""Key pairs: making, storing and reading them.

Owns the two files: NAME.key, the secret key (PKCS#8 PEM, mode 0600, never printed), and NAME.pub, the public one (canonical JSON,
to hand to whoever shall trust it). Secret arithmetic is `cryptography`'s, loaded when a key is used.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lqcd_aot.store.outfile import write_bytes
from lqcd_runtime.digest import canonical_json
from lqcd_runtime.errors import CorruptError, TrustError, UsageError
from lqcd_runtime.manifest import check_schema, parse_object
from lqcd_runtime.signatures import key_id_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PUBLIC_SCHEMA = "lqcd-aot/public-key/v1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}")
LARGEST_KEY_FILE = 4096


class PublicKey(NamedTuple):
    """name: what people call its holder; key_id: SHA-256 under its tag; public_key: 64 hex digits."""

    name: str
    key_id: str
    public_key: str

    def as_bytes(self) -> bytes:
        """The content of a .pub file."""
        return canonical_json({"schema": PUBLIC_SCHEMA, **self._asdict()}) + b"\n"


class SigningKey:
    """A secret key, ready to sign. `public`: its other half."""

    def __init__(self, private: Ed25519PrivateKey, name: str) -> None:
        self._private = private
        raw = private.public_key().public_bytes_raw()
        self.public = PublicKey(name, key_id_of(raw), raw.hex())

    def __repr__(self) -> str:
        return f"SigningKey({self.public.name}, {self.public.key_id[:16]})"

    def sign(self, message: bytes) -> bytes:
        """64 bytes; the same for the same message."""
        return self._private.sign(message)

    @classmethod
    def generate(cls, name: str) -> SigningKey:
        """A new key from the system's random numbers."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate(), checked_name(name))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SigningKey:
        """From a .key file. Errors: TrustError where there is none, where others may read it, or where it is no Ed25519 key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        file = Path(path)
        try:
            mode = file.stat().st_mode & 0o777
            data = file.read_bytes()
        except OSError as error:
            hint = f"lqcd-aot keygen {file.stem} makes one"
            raise TrustError(f"key {file}: cannot be read", found=error.strerror, hint=hint) from error
        if mode & 0o077:
            raise TrustError(f"key {file}: others may read it", expected="mode 0600", found=f"{mode:04o}", hint="chmod 600")
        try:
            private = load_pem_private_key(data, password=None)
        except (ValueError, TypeError) as error:
            raise TrustError(f"key {file}: is no secret key", expected="an unencrypted PKCS#8 PEM file") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise TrustError(f"key {file}: is of another kind", expected="Ed25519", found=type(private).__name__)
        return cls(private, file.stem)

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write NAME.key and NAME.pub; their paths. Errors: UsageError where the name is taken, StoreError."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        secret, public = place / f"{self.public.name}.key", place / f"{self.public.name}.pub"
        pem = self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_bytes(secret, pem, what="key", mode=0o600, replace=False)
        write_bytes(public, self.public.as_bytes(), what="key")
        return secret, public


def checked_name(name: str) -> str:
    """The name itself. Errors: UsageError where it could not be a file name everywhere."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"key name {name!r}: cannot be used", expected="letters, digits and . _ @ + -, at most 64")
    return name


def read_public_key(path: str | os.PathLike[str]) -> PublicKey:
    """From a .pub file. Errors: TrustError where it cannot be read, CorruptError, TooNewError."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_KEY_FILE + 1)
    except OSError as error:
        raise TrustError(f"public key {path}: cannot be read", found=error.strerror) from error
    return parse_public_key(data, f"public key {path}")


def parse_public_key(data: bytes, where: str) -> PublicKey:
    """From the bytes of a .pub file. Errors: CorruptError, TooNewError."""
    if len(data) > LARGEST_KEY_FILE:
        raise CorruptError(f"{where}: is too large", expected=f"at most {LARGEST_KEY_FILE} bytes")
    value = parse_object(data, where)
    check_schema(value.get("schema"), PUBLIC_SCHEMA, where)
    try:
        raw, name, claimed = bytes.fromhex(value["public_key"]), str(value["name"]), value["key_id"]
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptError(f"{where}: is no public key") from error
    if len(raw) != 32 or key_id_of(raw) != claimed:
        raise CorruptError(f"{where}: its key id is not that of its key", expected=key_id_of(raw), found=claimed)
    if not _NAME.fullmatch(name):
        raise CorruptError(f"{where}: has a name that cannot be shown", found=repr(name[:80]))
    return PublicKey(name, key_id_of(raw), raw.hex())
