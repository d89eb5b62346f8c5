"""The values a recipe may hold: axis words, lattices, quantities with units.

Owns their parsing and the sentence that explains a refusal. A refusal is a ValueError with one sentence; the caller adds
file, line and column. Knows nothing of TOML or pydantic.
"""

from __future__ import annotations

import re
from typing import Any

from lqcd_runtime.geometry import Extents, format_extents
from lqcd_runtime.signature import DTYPES, HALVES, OPERATORS, TWO_ROWS, suggest
from lqcd_runtime.target import TARGETS

AUTO = "auto"
AS_COMPUTED = "dtype"
STORAGES = (AS_COMPUTED, *HALVES, *TWO_ROWS.values())
TIME_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
MEMORY_UNITS = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
QUANTITY = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) *(?P<unit>[A-Za-z]+)")
LATTICE = re.compile(r"[0-9]{1,6}(?:x[0-9]{1,6}){3}")


def word(value: Any, noun: str, known: Any) -> str:
    """A word out of `known`. Errors: ValueError naming the nearest word and all words."""
    if not isinstance(value, str):
        raise ValueError(f"{noun} {spell(value)} is not a string")
    if value not in known:
        raise ValueError(f"unknown {noun} {value!r}{suggest(value, known)} (known: {', '.join(known)})")
    return value


def operator(value: Any) -> str:
    """A name of lqcd_runtime.signature.OPERATORS."""
    return word(value, "operator", OPERATORS)


def dtype(value: Any) -> str:
    """A name of lqcd_runtime.signature.DTYPES: the type of arithmetic, gauge links and spinors."""
    return word(value, "dtype", DTYPES)


def storage(value: Any) -> str:
    """How an artifact stores links and vectors: "dtype" for what it computes in, halves, or two rows of a link."""
    return word(value, "storage", STORAGES)


def target(value: Any) -> str:
    """A name of lqcd_runtime.target.TARGETS. "host" is refused: it means another thing on every machine."""
    if value == "host":
        raise ValueError("target 'host' is not reproducible; name targets here and narrow with `build --target host`")
    return word(value, "target", TARGETS)


def lattice(value: Any) -> Extents:
    """Extents (T,Z,Y,X), all >= 2, from "TxZxYxX" or an array of four integers."""
    if isinstance(value, str):
        parts: list[Any] = [int(p) for p in value.split("x")] if LATTICE.fullmatch(value) else []
    else:
        parts = list(value) if isinstance(value, (list, tuple)) else []
    if len(parts) != 4 or not all(type(n) is int for n in parts):
        raise ValueError(f'lattice {spell(value)} is not four extents: write "TxZxYxX", e.g. "16x8x8x8", or [16, 8, 8, 8]')
    if min(parts) < 2 or max(parts) > 999999:
        raise ValueError(f"lattice {format_extents(parts)} has an extent below 2 or above 999999")
    return parts[0], parts[1], parts[2], parts[3]


def count(value: Any) -> int:
    """An integer >= 1: batch and iterations."""
    if type(value) is not int or value < 1:
        raise ValueError(f"{spell(value)} is not an integer >= 1")
    return value


def shards(value: Any) -> int | str:
    """An integer >= 1, or "auto"."""
    if value == AUTO:
        return AUTO
    if type(value) is not int or value < 1:
        raise ValueError(f'{spell(value)} is not an integer >= 1 or "auto"')
    return value


def fused(value: Any) -> bool | str:
    """true, false or "auto"."""
    if value == AUTO:
        return AUTO
    if type(value) is not bool:
        raise ValueError(f'{spell(value)} is not true, false or "auto"')
    return value


def seconds(value: Any) -> float:
    """A time > 0 in seconds, from "120 s", "2 min", "0.5 h" or "500 ms"."""
    return _quantity(value, "time", TIME_UNITS, "120 s")


def memory(value: Any) -> int:
    """A size > 0 in whole bytes, from "2 GiB", "512 MiB" and so on."""
    size = _quantity(value, "memory", MEMORY_UNITS, "2 GiB")
    if size != int(size):
        raise ValueError(f"memory {value!r} is not a whole number of bytes")
    return int(size)


def _quantity(value: Any, dimension: str, units: dict[str, Any], example: str) -> float:
    match = QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'{spell(value)} is not a {dimension}: write a number and a unit, e.g. "{example}"')
    unit = match["unit"]
    if unit not in units:
        near = suggest(unit, units)
        raise ValueError(f"unit {unit!r} is not a unit of {dimension}{near} (known: {', '.join(units)})")
    amount = float(match["number"]) * float(units[unit])
    if amount <= 0:
        raise ValueError(f"{dimension} {value!r} is not above zero")
    return amount


def spell(value: Any) -> str:
    """A value as TOML spells it, for messages and for rules a user may copy."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple) and len(value) == 4:
        return f'"{format_extents(value)}"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(spell(v) for v in value)}]"
    return repr(value)
