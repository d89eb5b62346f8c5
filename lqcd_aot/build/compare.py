"""Two records, or the contents of two bundles, side by side: what is the same and exactly what differs.

Owns the sentences of `lqcd-aot diff`; those of key components are explain.py's. Reads what it is given, decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.build.explain import sentence
from lqcd_aot.keys import Change, differences

if TYPE_CHECKING:
    from lqcd_runtime.manifest import Entry

# Attributes of a record that are compared beside the components of its key. Provenance says how it was made, not what it is.
OUTSIDE_THE_KEY = ("target", "conventions", "outputs", "witness", "witness_status")


class Difference(NamedTuple):
    """One differing thing: its dotted name, both values (None where a side has none), and the sentence."""

    name: str
    a: Any
    b: Any
    text: str

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return self._asdict()


def compare_records(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    """Everything in which two build records differ: components of the key first, then what the key does not cover."""
    found = [_difference(change) for change in differences(a["components"], b["components"])]
    for name in OUTSIDE_THE_KEY:
        changes = differences({name: a[name]}, {name: b[name]})
        found += [_difference(c) for c in changes if not any(c.component == one.name for one in found)]
    return found


def compare_entries(a: Iterable[Entry], b: Iterable[Entry]) -> list[Difference]:
    """Which variants only one side has, and which both have with other build keys or other bytes."""
    mine, theirs = {entry.name: entry for entry in a}, {entry.name: entry for entry in b}
    found = []
    for name in sorted(mine.keys() | theirs.keys()):
        one, other = mine.get(name), theirs.get(name)
        if one is None or other is None:
            side = "the second" if one is None else "the first"
            found.append(Difference(name, one and one.build_key, other and other.build_key, f"{name}: only in {side}"))
        elif one.build_key != other.build_key:
            keys = f"{one.build_key[:12]} -> {other.build_key[:12]}"
            found.append(Difference(name, one.build_key, other.build_key, f"{name}: build key {keys}"))
        elif one.code["sha256"] != other.code["sha256"]:
            text = f"{name}: other bytes under one build key {one.code['sha256'][:12]} -> {other.code['sha256'][:12]}"
            found.append(Difference(name, one.code["sha256"], other.code["sha256"], text))
    return found


def _difference(change: Change) -> Difference:
    return Difference(change.component, change.old, change.new, sentence(change))
