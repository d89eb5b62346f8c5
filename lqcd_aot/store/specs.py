"""specs/: from a spec to its records, the latest build of each target.

Owns the index files. They are a convenience: every fact in them can be had again from records/, so an absent or broken one is
made anew, and a writer looks again after writing because another one may have replaced the file in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lqcd_aot.store.blobs import listed, scanned
from lqcd_aot.store.fs import FileStat, FileSystem
from lqcd_aot.store.layout import Layout, is_key
from lqcd_aot.store.leases import Leases
from lqcd_aot.store.record_format import SPEC_SCHEMA, Record, parse_index
from lqcd_aot.store.sealed import seal, unseal
from lqcd_aot.store.writer import Writer

ATTEMPTS = 8
LEASE_SECONDS = 30


class Specs:
    """The spec indices of one store."""

    def __init__(self, fs: FileSystem, layout: Layout, writer: Writer, leases: Leases) -> None:
        self._fs, self._layout, self._writer, self._leases = fs, layout, writer, leases
        # What this process wrote, and need not be synchronised once more. Whoever else writes synchronises bytes before names.
        self._durable: dict[str, dict[str, str]] = {}

    def get(self, spec_key: str) -> dict[str, str]:
        """{target: build_key}; empty where there is no usable index."""
        try:
            return parse_index(self._fs.read(self._layout.entry("specs", spec_key)), spec_key)
        except (OSError, ValueError):
            return {}

    def announce(self, record: Record) -> None:
        """Name a record that is about to be published, where its spec has none for this target. Errors: StoreError."""
        if record["target"] not in self.get(record["spec_key"]):
            self.add(record)

    def add(self, record: Record) -> None:
        """Name this record as the latest of its spec and target. Errors: StoreError."""
        self.merge(record["spec_key"], record["spec"], {record["target"]: record["build_key"]})

    def merge(self, spec_key: str, spec: dict[str, Any], records: dict[str, str]) -> None:
        """Put these {target: build_key} into the index, keeping what other writers put there for other targets."""
        path = self._layout.entry("specs", spec_key)
        for _ in range(ATTEMPTS):
            lease = self._leases.wait(spec_key, seconds=LEASE_SECONDS)
            try:
                now = self.get(spec_key)
                if records.items() <= now.items():
                    if self._durable.get(path) != now:
                        self._writer.settle(path)
                    return
                index = {"schema": SPEC_SCHEMA, "spec_key": spec_key, "spec": spec, "records": {**now, **records}}
                self._writer.replace(path, seal(index))
                self._durable[path] = {**now, **records}
            finally:
                lease.release()

    def forget(self, spec_key: str, is_there: Callable[[str], bool]) -> None:
        """Take records that are gone out of an index; without any left, the index goes too. Errors: StoreError.

        is_there(build_key) is asked before and after: a record that was published again meanwhile stays named.
        """
        now = self.get(spec_key)
        rest = {target: key for target, key in now.items() if is_there(key)}
        if rest == now:
            return
        path = self._layout.entry("specs", spec_key)
        try:
            spec = unseal(self._fs.read(path))["spec"]
        except FileNotFoundError:
            return  # another collection was faster
        if rest:
            lease = self._leases.wait(spec_key, seconds=LEASE_SECONDS)
            try:
                self._writer.replace(path, seal({"schema": SPEC_SCHEMA, "spec_key": spec_key, "spec": spec, "records": rest}))
            finally:
                lease.release()
        else:
            self._writer.remove(path)
        # Another writer may have published between the look and the change, and found itself named still.
        later = self.get(spec_key)
        for target, key in now.items():
            if target not in later and is_there(key):
                self.merge(spec_key, spec, {target: key})

    def stats(self) -> dict[str, FileStat]:
        """{spec key: size and age} of every index file."""
        base = self._layout.folder("specs")
        return {
            name[:-5]: stat
            for fan in listed(self._fs, base)
            for name, stat in scanned(self._fs, f"{base}/{fan}")
            if name.endswith(".json") and is_key(name[:-5])
        }

    def all_keys(self) -> list[str]:
        """Every spec key that has an index file."""
        base = self._layout.folder("specs")
        return [
            name[:-5]
            for fan in listed(self._fs, base)
            for name in listed(self._fs, f"{base}/{fan}")
            if name.endswith(".json") and is_key(name[:-5])
        ]
