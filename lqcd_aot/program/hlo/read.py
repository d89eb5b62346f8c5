"""HloModuleProto bytes -> plain values, with the standard library alone: the wire format and the table of schema.py.

Owns reading and nothing else; what a module must hold to is validate.py's. Fields that the table does not name are skipped and
counted, so that a canonical module can be told from one that carries more.
"""

from __future__ import annotations

import struct
from typing import Any

from lqcd_aot.program.hlo.schema import MESSAGES

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
MAX_DEPTH = 16


class WireError(ValueError):
    """Bytes that are no protocol buffer of this table."""


class Message:
    """A parsed message: every field of the table by attribute; `unknown` counts fields that the table lacks."""

    def __init__(self, kind: str) -> None:
        self.unknown = 0
        for name, (_, base) in MESSAGES[kind].items():
            setattr(
                self, name, [] if base.endswith("*") else {"string": "", "float": 0.0}.get(base, 0 if "int" in base else None)
            )

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def parse(data: bytes, kind: str = "Module", depth: int = 0) -> Message:
    """A message of the table. Errors: WireError for truncated, overlong, too deep or mistyped input."""
    if depth > MAX_DEPTH:
        raise WireError("messages are nested too deeply")
    message, at = Message(kind), 0
    fields = {number: (name, base) for name, (number, base) in MESSAGES[kind].items()}
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value, at = _skip(data, at, wire)
        if number not in fields:
            message.unknown += 1
            continue
        name, base = fields[number]
        repeated, base = base.endswith("*"), base.rstrip("*")
        values = _values(value, wire, base, depth)
        if repeated:
            getattr(message, name).extend(values)
        elif len(values) == 1:
            setattr(message, name, values[0])
        else:
            raise WireError(f"field {kind}.{name} has {len(values)} values")
    return message


def _values(value: Any, wire: int, base: str, depth: int) -> list[Any]:
    if base in ("int32", "int64"):
        if wire == _BYTES:
            return _packed_varints(value)
        if wire == _VARINT:
            return [_signed(value)]
    elif base == "float":
        if wire == _FIXED32 or (wire == _BYTES and len(value) % 4 == 0):
            return [v for (v,) in struct.iter_unpack("<f", value)]
    elif wire == _BYTES:
        if base != "string":
            return [parse(value, base, depth + 1)]
        try:
            return [value.decode("utf-8")]
        except UnicodeDecodeError as err:
            raise WireError("a string is not UTF-8") from err
    raise WireError(f"a field of type {base} has wire type {wire}")


def _packed_varints(data: bytes) -> list[int]:
    out, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        out.append(_signed(value))
    return out


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise WireError("the bytes end within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, at
    raise WireError("a number is longer than 64 bits")


def _skip(data: bytes, at: int, wire: int) -> tuple[Any, int]:
    """The raw value of a field and the place after it."""
    if wire == _VARINT:
        return _varint(data, at)
    if wire == _BYTES:
        size, at = _varint(data, at)
    elif wire in (_FIXED32, _FIXED64):
        size = 4 if wire == _FIXED32 else 8
    else:
        raise WireError(f"wire type {wire} is not known")
    if at + size > len(data):
        raise WireError("the bytes end within a field")
    return data[at : at + size], at + size
