"""failures/: compiles that failed, with class, attempts and the digest of their log.

Owns what is worth remembering: only a deterministic failure sticks, and as the build key holds the toolchain, only for that
toolchain. An interrupted or timed-out compile says nothing of the variant and is refused here.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from lqcd_aot.store.blobs import listed
from lqcd_aot.store.fs import FileSystem
from lqcd_aot.store.layout import Layout, is_key
from lqcd_aot.store.sealed import seal, unseal
from lqcd_aot.store.writer import Writer

FAILURE_SCHEMA = "lqcd-aot/failure/v1"
STICKING = frozenset({"deterministic"})
RECORDED = frozenset({"deterministic", "resource", "witness", "unknown"})


class Failure(NamedTuple):
    """A remembered failure. sticks: a build does not try again by itself. toolchain: its identity, named strings."""

    build_key: str
    name: str
    failure_class: str
    attempts: int
    fact: str
    log_sha256: str | None
    toolchain: dict[str, str]

    @property
    def sticks(self) -> bool:
        return self.failure_class in STICKING

    def as_dict(self) -> dict[str, Any]:
        """The stored form, and what --json shows."""
        return {"schema": FAILURE_SCHEMA, **self._asdict()}


class Failures:
    """The failures of one store."""

    def __init__(self, fs: FileSystem, layout: Layout, writer: Writer) -> None:
        self._fs, self._layout, self._writer = fs, layout, writer

    def get(self, build_key: str) -> Failure | None:
        """The remembered failure of a build key; a broken entry is none."""
        try:
            value = unseal(self._fs.read(self._layout.entry("failures", build_key)))
            if value.pop("schema") != FAILURE_SCHEMA:
                return None
            failure = Failure(**value)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return failure if failure.build_key == build_key else None

    def put(self, failure: Failure) -> None:
        """Remember a failure, in place of an earlier one. Errors: ValueError for a class that is never recorded; StoreError."""
        if failure.failure_class not in RECORDED:
            raise ValueError(f"a failure of class {failure.failure_class} is never recorded")
        self._writer.replace(self._layout.entry("failures", failure.build_key), seal(failure.as_dict()))

    def forget(self, build_key: str) -> None:
        """The key was built, or shall be tried again."""
        path = self._layout.entry("failures", build_key)
        with contextlib.suppress(OSError):
            self._fs.stat(path)
            self._writer.remove(path)

    def all_keys(self) -> list[str]:
        """Every build key with a remembered failure, sorted."""
        base = self._layout.folder("failures")
        return [
            name[:-5]
            for fan in listed(self._fs, base)
            for name in listed(self._fs, f"{base}/{fan}")
            if name.endswith(".json") and is_key(name[:-5])
        ]
