"""Sealed JSON: canonical JSON that carries the SHA-256 of itself, so that any changed or missing byte is noticed on reading.

    {"build_key":"..", ..., "seal":"<sha256 of the canonical JSON without this member>", ...}

Owns the seal. Refuses to know what the members mean. A reader that does not care may read the file as plain JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any

from lqcd_runtime.digest import canonical_json, sha256_hex

_SEAL = re.compile(rb',"seal":"([0-9a-f]{64})"')


def seal(value: dict[str, Any]) -> bytes:
    """The bytes to store for an object with at least one member that sorts before "seal". Errors: TypeError as canonical_json."""
    if "seal" in value or not value or min(value) > "seal":
        raise TypeError("a sealed object has a member before 'seal' and none of that name")
    digest = sha256_hex(canonical_json(value))
    return canonical_json({**value, "seal": digest})


def is_intact(data: bytes) -> bool:
    """Whether the bytes are exactly what `seal` made; reads no JSON."""
    # The member itself never stands inside a string (quotes are escaped there), but an inner object may have one of that name:
    # any that fits is proof enough.
    return any(sha256_hex(data[: found.start()] + data[found.end() :]) == found[1].decode() for found in _SEAL.finditer(data))


def unseal(data: bytes) -> dict[str, Any]:
    """The object without its seal. Errors: ValueError with one sentence of what is wrong."""
    if not data:
        raise ValueError("is empty")
    if not is_intact(data):
        raise ValueError("does not match its own seal")
    value = json.loads(data)
    if not isinstance(value, dict) or "seal" not in value:
        raise ValueError("is not a sealed object")
    del value["seal"]
    return value
