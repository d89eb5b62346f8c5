"""Records for store tests: any bytes will do, the store knows no physics."""

from __future__ import annotations

from typing import Any

from lqcd_aot.store import Published, Store
from lqcd_runtime.digest import sha256_hex


def key(name: str) -> str:
    """A 64-digit key for a readable name."""
    return sha256_hex(name.encode())


def make_record(name: str, code: bytes, *, spec: str = "spec", target: str = "x86-64-v3", **changes: Any) -> dict[str, Any]:
    """A record of `code` under key(name)."""
    record: dict[str, Any] = {
        "schema": "lqcd-aot/record/v1",
        "build_key": key(name),
        "spec_key": key(spec),
        "spec": {"operator": spec},
        "target": target,
        "components": {"name": name},
        "conventions": {"axis_order": "TZYX"},
        "outputs": {"code": {"sha256": sha256_hex(code), "size": len(code), "media_type": "application/x-sharedlib"}},
        "witness": None,
        "witness_status": "unchecked: bytes of a test",
        "provenance": {"compile_ms": 3},
    }
    return {**record, **changes}


def publish(store: Store, name: str, code: bytes = b"", **changes: Any) -> Published:
    """Store code, then its record."""
    code = code or f"code of {name}".encode() * 9
    store.put_blob(code)
    return store.publish(make_record(name, code, **changes))
