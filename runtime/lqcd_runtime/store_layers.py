"""A user's store over read-only system stores: the first store that has an artifact gives it. Never writes.

Owns the order, and the reading of the file `layers` (one absolute path a line; artifacts/README.md). Every layer is a
`StoreFolder` of its own; what is absent or invalid in one is looked for in the next.
"""

from __future__ import annotations

import os

from lqcd_runtime.digest import canonical_json
from lqcd_runtime.errors import CorruptError
from lqcd_runtime.select import nearest_spec
from lqcd_runtime.store_reader import StoreFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.select import Rejected
    from lqcd_runtime.signature import Spec

    T = TypeVar("T")


def open_layers(path: str) -> StoreFolder | LayeredFolder:
    """The store at `path`, over those its file `layers` names. Errors: StoreError where one of them is none, TooNewError."""
    top = StoreFolder(path)
    try:
        with open(f"{path}/layers", "rb") as f:
            names = [os.fsdecode(line.strip()) for line in f.read().splitlines()]
    except FileNotFoundError:
        return top
    below = [name for name in dict.fromkeys(names) if name and name != os.path.abspath(path)]
    return LayeredFolder((top, *map(StoreFolder, below))) if below else top


class LayeredFolder:
    """Several stores as one; answers as `StoreFolder` does."""

    kind = "store"

    def __init__(self, layers: tuple[StoreFolder, ...]) -> None:
        self.layers = layers
        self.path = layers[0].path
        self.where = f"store {self.path} over {', '.join(layer.path for layer in layers[1:])}"

    def find(self, spec: Spec) -> list[Entry]:
        """Valid entries of a spec, one per target."""
        return self.candidates(spec)[0]

    def candidates(self, spec: Spec) -> tuple[list[Entry], list[Rejected]]:
        """(valid entries, why the others cannot be used)."""
        entries: dict[str, Entry] = {}
        rejected: list[Rejected] = []
        for layer in self.layers:
            found, bad = layer.candidates(spec)
            rejected += bad
            for entry in found:
                entries.setdefault(entry.target, entry)
        return list(entries.values()), rejected

    def entries(self) -> Iterator[Entry]:
        """All valid entries, sorted by (spec_key, target)."""
        found: dict[str, Entry] = {}
        for layer in self.layers:
            for entry in layer.entries():
                found.setdefault(entry.build_key, entry)
        return iter(sorted(found.values(), key=lambda e: (e.spec_key, e.target, e.build_key)))

    def layer_of(self, build_key: str) -> str:
        """The folder of the store that gives a record. Errors: CorruptError."""
        return self._first(lambda layer: (layer.record(build_key), layer.path)[1])

    def record(self, build_key: str) -> bytes:
        """Canonical JSON of a build record. Errors: CorruptError."""
        return self._first(lambda layer: layer.record(build_key))

    def read_blob(self, sha256: str) -> bytes:
        """The bytes with this digest. Errors: CorruptError."""
        return self._first(lambda layer: layer.read_blob(sha256))

    def nearest(self, spec: Spec) -> Entry | None:
        """The entry whose spec differs least."""
        found = [entry for layer in self.layers if (entry := layer.nearest(spec)) is not None]
        return nearest_spec(spec, ((entry, canonical_json(entry.spec.as_dict())) for entry in found))

    def verify(self) -> int:
        """Read every record and every blob that a record names; the number of bytes. Errors: CorruptError with all issues."""
        return sum(layer.verify() for layer in self.layers)

    def close(self) -> None:
        """Nothing is held open."""

    def _first(self, ask: Callable[[StoreFolder], T]) -> T:
        first: CorruptError | None = None
        for layer in self.layers:
            try:
                return ask(layer)
            except CorruptError as error:
                first = first or error
        assert first is not None
        raise first
