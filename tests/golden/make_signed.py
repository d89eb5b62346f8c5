"""Makes a golden signed bundle with documents: python -m tests.golden.make_signed tests/golden/signed-vN.lqcd

As make_bundle.py: run once per version of the signature or document formats, never again for a name that exists. The machine code
is arbitrary bytes (the other golden bundle has real code); the key is made from a fixed seed and protects nothing.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lqcd_aot.ship.documents import PROVENANCE, SBOM, provenance, sbom
from lqcd_aot.ship.origin import Origin
from lqcd_aot.trust import SigningKey
from lqcd_aot.trust.sign import sign_bundle
from lqcd_runtime.bundle_writer import write_bundle
from lqcd_runtime.signature import Spec
from tests.real_keys import keyed_record

SPEC = Spec("wilson", (4, 4, 4, 4))
TARGETS = ("x86-64-v2", "aarch64")
RECIPE = {"name": "golden", "sha256": "11" * 32}


def code(target: str) -> bytes:
    """What stands for machine code."""
    return f"golden code for {target}\n".encode()


def make(path: Path) -> None:
    """Errors: FileExistsError."""
    records = [keyed_record(SPEC, target, code(target)) for target in TARGETS]
    blobs = {r["outputs"]["code"]["sha256"]: code(r["target"]) for r in records}
    by_key = {r["build_key"]: r for r in records}
    documents = {
        PROVENANCE: provenance(by_key, RECIPE, Origin("22" * 20, False), "0.1.0", epoch=0),
        SBOM: sbom(by_key, "golden", epoch=0),
    }
    out = io.BytesIO()
    write_bundle(out, name="golden", recipe=RECIPE, records=records, read_blob=blobs.__getitem__, documents=documents)
    with path.open("xb") as file:
        file.write(out.getvalue())
    sign_bundle(path, SigningKey(Ed25519PrivateKey.from_private_bytes(b"golden key, of no use to anybody"), "golden"))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
