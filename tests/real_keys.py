"""Records whose build keys are those of their components, with arbitrary bytes as machine code: what an import accepts."""

from __future__ import annotations

from typing import Any

from lqcd_aot.keys import build_key
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.signature import Spec
from tests.made import record

TOOLCHAIN = {"compiler": "none", "version": "1", "binary_sha256": sha256_hex(b"none")}


def keyed_record(spec: Spec, target: str, code: bytes) -> dict[str, Any]:
    """A build record with its true build key."""
    made = build_key(spec, sha256_hex(spec.name.encode()), TOOLCHAIN, ["-O3"], target)
    return {**record(spec, target, code), "build_key": made.hex, "components": made.components}
