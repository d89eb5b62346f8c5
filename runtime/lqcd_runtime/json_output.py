"""How `--json` spells what JSON has no word for; one rule for every verb of both command lines and for report files.

    NaN, inf, -inf    the strings "nan", "inf", "-inf", which `float()` of Python and NumPy read back; null is for what is absent
    complex           [re, im]
    arrays, tuples    arrays; keys are strings

Owns the rule only: results that enter a key or a digest are `digest`'s, which refuses such numbers.
"""

from __future__ import annotations

import json
import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def dumps(value: Any, indent: int | None = None) -> str:
    """The JSON text of a value, strict (RFC 8259)."""
    return json.dumps(plain(value), indent=indent, allow_nan=False)


def plain(value: Any) -> Any:
    """The value in what JSON has: dict, list, str, int, float, bool, None."""
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "__iter__"):
        return [plain(v) for v in value]
    return str(value)
