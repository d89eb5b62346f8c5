"""Canonical JSON and SHA-256: how every identity in the project is made.

Owns the one encoding that is hashed. Refuses what has no single spelling: NaN, infinities, plain floats, non-string keys,
sets. Floats enter as `float.hex()` strings (see `hex_float`), so 0.1 has one spelling on every machine.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_encode: Callable[[Any], str] | None = None
_PLAIN = frozenset((str, bool, type(None), int))
_EXACT = 2**53


def hex_float(value: float) -> str:
    """The exact spelling of a float in canonical JSON, e.g. 0.1 -> '0x1.999999999999ap-4'. -0.0 is spelled as 0.0."""
    value = float(value)
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"a key cannot hold {value}")
    return (value + 0.0).hex()


def canonical_json(value: Any) -> bytes:
    """Canonical JSON (RFC 8785 for the types we allow): sorted keys, no spaces, ASCII, integers and strings only.

    Raises TypeError for floats, sets, bytes and non-string keys.
    """
    global _encode
    if _encode is None:
        import json

        _encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode
    if not _is_plain(value):
        _check(value, "$")
    return _encode(value).encode("ascii")


def _is_plain(value: Any) -> bool:
    """Whether a value is allowed at first sight: the quick answer for nearly all; `_check` judges the rest and says where."""
    kind = type(value)
    if kind in _PLAIN:
        return kind is not int or -_EXACT < value < _EXACT
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or not key.isascii() or (type(item) is not str and not _is_plain(item)):
                return False
        return True
    return (kind is list or kind is tuple) and all(map(_is_plain, value))


def _check(value: Any, where: str) -> None:
    if value is None or isinstance(value, (bool, str)):
        return
    if isinstance(value, int):
        if abs(value) >= _EXACT:
            raise TypeError(f"{where}: integer {value} is not exact in every JSON reader; spell it as a string")
        return
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _check(item, f"{where}[{i}]")
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or not key.isascii():
                raise TypeError(f"{where}: key {key!r} is not an ASCII string")
            _check(item, f"{where}.{key}")
        return
    raise TypeError(f"{where}: {type(value).__name__} has no canonical spelling (floats enter as hex_float strings)")


def sha256_hex(data: Any) -> str:
    """SHA-256 of bytes-like data, 64 hex digits."""
    import hashlib

    return hashlib.sha256(data).hexdigest()


def tagged_sha256(tag: str, value: Any) -> str:
    """SHA-256 over `tag`, a zero byte, then the canonical JSON of `value`: the domain tag keeps key kinds apart."""
    return tagged_sha256_of_text(tag, canonical_json(value))


def tagged_sha256_of_text(tag: str, text: bytes) -> str:
    """The same of a value that is canonical JSON already."""
    return sha256_hex(tag.encode("ascii") + b"\0" + text)


def sha256_file(path: str) -> tuple[str, int]:
    """(hex digest, size) of a file, read in 1 MiB pieces."""
    import hashlib

    h, size = hashlib.sha256(), 0
    with open(path, "rb") as f:
        while piece := f.read(1 << 20):
            h.update(piece)
            size += len(piece)
    return h.hexdigest(), size
