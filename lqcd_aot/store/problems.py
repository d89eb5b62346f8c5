"""What was found wrong in a store: a list of facts, each reported once. A problem is a value, never an exception."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """kind: record, blob, spec, failure; name: its key or digest; fact: one sentence in lower case."""

    kind: str
    name: str
    fact: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name[:16]}: {self.fact}"

    def as_dict(self) -> dict[str, str]:
        """For --json."""
        return dict(self._asdict())


class Problems:
    """The problems this process met, in order, each (kind, name) once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], Problem] = {}

    def add(self, kind: str, name: str, fact: str) -> None:
        self._seen.setdefault((kind, name), Problem(kind, name, fact))

    def all(self) -> tuple[Problem, ...]:
        return tuple(self._seen.values())
