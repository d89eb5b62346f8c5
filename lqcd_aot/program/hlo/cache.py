"""Lowered programs kept on disk, so that a second plan neither imports torch nor exports a graph.

One file a program: settings.cache_dir()/hlo/<pre-key>. The pre-key is the digest of the spec, of every source file that takes
part in lowering, and of the versions of torch and protobuf; so a change of any of them is a miss. Content: the SHA-256 of the
bytes, then the bytes; a file that does not match itself is a miss and is written anew. The cache decides no key: keys are made of
the program's bytes. A folder that cannot be written or read costs time, never an error.
"""

from __future__ import annotations

import contextlib
import os
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from lqcd_aot.settings import cache_dir
from lqcd_runtime.digest import sha256_hex, tagged_sha256
from lqcd_runtime.signature import Spec

CACHE_TAG = "lqcd-aot/hlo-cache/v1"
_DIGEST_BYTES = 32


def pre_key(spec: Spec) -> str:
    """Name of a spec's file."""
    return tagged_sha256(CACHE_TAG, {"spec": spec.as_dict(), "lowering": lowering_digest()})


@lru_cache(maxsize=1)
def lowering_digest() -> str:
    """Digest of everything that decides how a spec becomes a program. Read once a process."""
    import lqcd_runtime

    runtime = Path(lqcd_runtime.__file__).parent
    sources = [
        *Path(__file__).parent.rglob("*.py"),
        *(runtime / f"{n}.py" for n in ("conventions", "signature", "split_binding")),
    ]
    files = sorted(sha256_hex(path.read_bytes()) for path in sources)
    return tagged_sha256(CACHE_TAG, {"files": files, "torch": version("torch"), "protobuf": version("protobuf")})


def load(spec: Spec) -> bytes | None:
    """The program of a spec, or None."""
    try:
        content = _path(spec).read_bytes()
    except OSError:
        return None
    digest, hlo = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return hlo if bytes.fromhex(sha256_hex(hlo)) == digest else None


def save(spec: Spec, hlo: bytes) -> None:
    """Keep a program where the folder allows it. Written under a private name and renamed, so that readers see all or nothing."""
    path = _path(spec)
    private = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(8).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        private.write_bytes(bytes.fromhex(sha256_hex(hlo)) + hlo)
        private.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            private.unlink()


def _path(spec: Spec) -> Path:
    return cache_dir() / "hlo" / pre_key(spec)
