"""What can be reused from a store and the layers below it, at one look, and whether its bytes are still what they were.

Owns the judgement of bytes that are to be reused: those whose file is as it was when they were last verified (verified.py) are
taken for right, all others are hashed. So a plan of 10,000 variants reads no bytes, and the next plan finds a changed blob.
Writes nothing but the journal, and that only where it is asked to.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lqcd_aot.store.verified import is_settled, line_of
from lqcd_aot.store.writer import translated

if TYPE_CHECKING:
    from lqcd_aot.store.fs import FileStat
    from lqcd_aot.store.listing import Outputs
    from lqcd_aot.store.store import Store


def read_again(store: Store, build_keys: Iterable[str]) -> None:
    """Compare what was just published, or reused, with its digest where the journal does not know it, so that the next plan need
    not; and bring the listing up to date. Errors: StoreError."""
    with translated(store.root):
        store.records.listing.refresh()
        inventory = Inventory(store)
        for build_key in build_keys:
            if build_key in inventory.where:
                inventory.wrong(build_key)
        inventory.remember(store)


class Inventory:
    """The usable artifacts of a store over its layers; a store goes before those below it.

    where: {build key: the store that has it}.
    """

    def __init__(self, store: Store) -> None:
        self.where: dict[str, Store] = {}
        self._outputs: dict[str, Outputs] = {}
        self._stats: dict[str, dict[str, FileStat]] = {}
        self._known: set[str] = set()
        self._fresh: set[str] = set()
        self._wrong: dict[tuple[str, str], bool] = {}
        for layer in reversed((store, *store.lower)):
            stats = self._stats[layer.root] = layer.blobs.stats()
            usable = layer.records.usable(stats)
            self._outputs.update(usable)
            self.where.update(dict.fromkeys(usable, layer))
            self._known |= layer.verified.read()

    def wrong(self, build_key: str) -> str | None:
        """None where the bytes of a usable artifact are right, else one sentence."""
        layer = self.where[build_key]
        for digest, _ in self._outputs[build_key]:
            stat = self._stats[layer.root].get(digest)
            if (stat is None or line_of(digest, stat) not in self._known) and self._is_wrong(layer, digest, stat):
                return f"its blob {digest[:12]} does not match its digest"
        return None

    def remember(self, store: Store) -> None:
        """Put what was hashed into the journal of a store, and take out what is no more as it was."""
        if self._fresh:
            there = {line_of(digest, stat) for stats in self._stats.values() for digest, stat in stats.items()}
            store.verified.write((store.verified.read() | self._fresh) & there)
            self._fresh.clear()

    def _is_wrong(self, layer: Store, digest: str, stat: FileStat | None) -> bool:
        asked = layer.root, digest
        if asked not in self._wrong:
            now = time.time()
            self._wrong[asked] = not layer.blobs.is_sound(digest)
            if stat is not None and not self._wrong[asked] and is_settled(stat, now):
                self._known.add(line_of(digest, stat))
                self._fresh.add(line_of(digest, stat))
        return self._wrong[asked]
