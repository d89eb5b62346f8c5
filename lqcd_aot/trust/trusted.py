"""The signers a user trusts: a folder of public keys, one file <key id>.pub for each.

Owns adding, listing, removing. A file that is not what its name says is an error, never skipped: a list of trust that reads
differently from what it shows is worse than none.
"""

from __future__ import annotations

import os
from pathlib import Path

from lqcd_aot.store.outfile import write_bytes
from lqcd_aot.trust.keys import PublicKey, read_public_key
from lqcd_runtime.errors import CorruptError, UsageError


class Trusted:
    """The trusted keys in one folder, which need not exist yet."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def all(self) -> list[PublicKey]:
        """All of them, by name. Errors: CorruptError, TrustError for a file that is no key or another one."""
        found = []
        for file in sorted(self.folder.glob("*.pub")) if self.folder.is_dir() else []:
            key = read_public_key(file)
            if file.stem != key.key_id:
                raise CorruptError(f"trusted key {file}: is another key", expected=file.stem, found=key.key_id)
            found.append(key)
        return sorted(found)

    def add(self, key: PublicKey) -> Path:
        """Trust a key; again is as good. Errors: UsageError where another key is trusted under this name, StoreError."""
        self.check_name(key)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.folder / f"{key.key_id}.pub"
        write_bytes(path, key.as_bytes(), what="trusted key")
        return path

    def check_name(self, key: PublicKey) -> None:
        """Errors: UsageError where another key is trusted under the name of this one."""
        for other in self.all():
            if other.name == key.name and other.key_id != key.key_id:
                raise UsageError(
                    f"trusted key {key.name}: is another key already",
                    expected=other.key_id,
                    found=key.key_id,
                    hint=f"lqcd-aot trust remove {other.key_id[:16]} first, if the signer has changed keys",
                )

    def remove(self, which: str) -> PublicKey:
        """No longer trust a key, named by its name or the start of its id. Errors: UsageError for none or several."""
        found = [key for key in self.all() if key.name == which or (len(which) >= 8 and key.key_id.startswith(which))]
        if len(found) != 1:
            raise UsageError(
                f"trusted key {which}: names {len(found)} keys",
                details=[f"{key.key_id}  {key.name}" for key in found],
                hint="lqcd-aot trust list",
            )
        (self.folder / f"{found[0].key_id}.pub").unlink()
        return found[0]
