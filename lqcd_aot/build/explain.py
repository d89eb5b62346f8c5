"""Why an artifact has to be built: the nearest record of the same spec, and every component in which it differs.

Owns the sentences; both values stand in each. Reads records, decides nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from lqcd_aot.keys import Change, Key, differences

if TYPE_CHECKING:
    from lqcd_aot.store import Store

NOTHING = "(none)"
LONGEST, ENDS = 160, 32


class Explainer:
    """Explains misses against one store. usable: the build keys that can be reused."""

    def __init__(self, store: Store | None, usable: frozenset[str]) -> None:
        self.store, self.usable = store, usable

    @cached_property
    def known(self) -> frozenset[str]:
        """The specs that have an index; a plan without a miss does not look."""
        return frozenset(self.store.spec_keys() if self.store else ())

    def explain(self, spec_key: str, key: Key, target: str) -> tuple[str, tuple[Change, ...]]:
        """(reason, changes) for a key that is not usable."""
        latest = self.store.spec_index(spec_key) if self.store and spec_key in self.known else {}
        if self.store is None or not latest:
            return "no artifact of this spec", ()
        old = latest.get(target)
        if old is None:
            return f"no artifact of this spec for {target}, only for {', '.join(sorted(latest))}", ()
        if old not in self.usable:
            return f"artifact {old[:12]} is named by the spec's index, but its record or bytes cannot be used", ()
        record = self.store.record(old)
        if record is None:
            return f"artifact {old[:12]} was there a moment ago and is gone", ()
        changes = tuple(differences(record["components"], key.components))
        return "; ".join(sentence(change) for change in changes), changes


def sentence(change: Change) -> str:
    """One change in words: 'compiler version 0.16.0 -> 0.17.1'."""
    section, _, name = change.component.partition(".")
    old, new = change.old, change.new
    if section == "flags":
        old, new = _only_differing(old or [], new or [])
    what = {
        "program": "program changed:",
        "flags": "flags changed:",
        "salt": "salt changed:",
        "target": "target changed:",
        "toolchain": "compiler" if name == "compiler" else f"compiler {name.replace('_', ' ')}",
        "conventions": f"convention {name} changed:",
    }.get(section, f"{change.component} changed:")
    return f"{what} {transition(old, new)}"


def transition(old: Any, new: Any) -> str:
    """Two values, "old -> new"; of a long one its ends and its length; where that hides the difference, where it begins."""
    a, b = _spell(old), _spell(new)
    short_a, short_b = _cut(a), _cut(b)
    where = ""
    if a != b and short_a == short_b:
        first = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        where = f", differing from character {first + 1} on"
    return f"{short_a} -> {short_b}{where}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:ENDS]}...{text[-ENDS:]} ({len(text)} characters)"


def _only_differing(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """The flags only one side has; both lists whole where they differ in order or number alone."""
    gone, come = [f for f in old if f not in new], [f for f in new if f not in old]
    return (gone, come) if gone or come else (old, new)


def _spell(value: Any) -> str:
    if value is None or value in ("", []):
        return NOTHING
    if isinstance(value, list):
        return " ".join(str(v) for v in value)
    text = str(value)
    is_digest = len(text) == 64 and all(c in "0123456789abcdef" for c in text)
    return text[:12] if is_digest else text
