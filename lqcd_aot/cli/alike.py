"""Many lines that say one thing, as one line with their number: notes of a plan, reasons why variants are blocked.

Owns when two lines are alike: they differ in the variant's name, or in the numbers of the reason. Knows no plan; --json has all
lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

# "inf2: shards = 1 for NAME: the whole lattice fits": what was chosen and why, without NAME.
_NAME = re.compile(r" for [^\s:]+: ")
# A number of a reason; a chosen value, "= 2", is no such number.
_NUMBER = re.compile(r"(?<![\d.\w])(?<!= )\d[\d.,]*(?:e[+-]?\d+)?")


def merged_notes(notes: Iterable[str]) -> list[str]:
    """One line for the notes that are alike, in the order of the first of each."""
    groups: dict[str, list[str]] = {}
    for note in notes:
        groups.setdefault(_NUMBER.sub("#", _NAME.sub(": ", note)), []).append(note)
    return [_merged(group) for group in groups.values()]


def _merged(notes: list[str]) -> str:
    first = notes[0]
    if len(notes) == 1:
        return first
    unnamed = {_NAME.sub(": ", note) for note in notes}
    if len(unnamed) == 1:
        return f"{unnamed.pop()}; {len(notes)} variants"
    return f"{first}; so too, with other numbers, {len(notes) - 1} more"


def counted_reasons(reasons: Iterable[str]) -> list[tuple[str, int]]:
    """Each distinct reason with the number of variants that have it, in the order of the first of each."""
    return list(Counter(reasons).items())
