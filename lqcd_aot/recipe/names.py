"""From a readable name back to what it names: the inverse of `Spec.name` and `Variant.name`.

    wilson-8x4x4x4-f64-b12-fused-s2@x86-64-v3

Owns the reading of names; their writing belongs to `Spec`.
"""

from __future__ import annotations

from typing import Any

from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import DTYPES, Spec
from lqcd_runtime.target import TARGETS

LETTERS = {"b": "batch", "s": "shards", "k": "iterations"}
LONG = {short: dtype for dtype, short in DTYPES.items()}


def parse_name(name: str) -> tuple[Spec, str | None]:
    """(spec, target or None) of a variant's name. Errors: UsageError where it is not one, naming the part that is wrong."""
    text, at, target = name.partition("@")
    if at and target not in TARGETS:
        raise UsageError(f"variant {name!r}: has no known target", expected=", ".join(TARGETS), found=target)
    operator, *parts = text.split("-")
    if len(parts) < 2 or parts[1] not in LONG:
        raise UsageError(
            f"variant {name!r}: is not a variant's name",
            expected="OPERATOR-TxZxYxX-f32|f64|bf16[-bN][-fused][-sN][-kN][@TARGET]",
            hint="lqcd-aot ls prints the names of what is there, lqcd-aot plan RECIPE those of what could be",
        )  # fmt: skip
    attributes: dict[str, Any] = {}
    baked: dict[str, float] = {}
    for part in parts[2:]:
        try:
            _read(part, attributes, baked)
        except ValueError:
            raise UsageError(
                f"variant {name!r}: {part!r} says nothing", expected="bN, fused, sN, kN, ncN, store.DTYPE or VALUE.x"
            ) from None
    spec = Spec(operator, parts[0], LONG[parts[1]], baked=baked, **attributes)
    if spec.name != text:
        raise UsageError(f"variant {name!r}: is spelled in another order", expected=spec.name, found=text)
    return spec, target or None


def _read(part: str, attributes: dict[str, Any], baked: dict[str, float]) -> None:
    word, dot, value = part.partition(".")
    if part == "fused":
        attributes["fused"] = True
    elif dot and word == "store":
        attributes["storage"] = value
    elif dot:
        baked[word] = float(value)
    elif part.startswith("nc"):
        attributes["nc"] = int(part[2:])
    elif part[:1] in LETTERS:
        attributes[LETTERS[part[0]]] = int(part[1:])
    else:
        raise ValueError(part)
