"""records/ and divergences/: the build records of one store.

Owns: the first writer of a build key wins, a second writer with other bytes is a recorded divergence, and a record that cannot
be used (broken, or naming absent bytes) is a miss. Reading never writes; the next publish of the key puts the bad entry aside.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

from lqcd_aot.store.blobs import Blobs, is_old, listed
from lqcd_aot.store.corrupt import Quarantine
from lqcd_aot.store.fs import FileStat, FileSystem, looks
from lqcd_aot.store.layout import Layout, is_key
from lqcd_aot.store.listing import Glance, Listing, Outputs
from lqcd_aot.store.problems import Problems
from lqcd_aot.store.record_format import (
    DIVERGENCE_SCHEMA,
    RECORD_SCHEMA,
    NewerSchema,
    Published,
    Record,
    check_outputs,
    check_record,
    parse_record,
)
from lqcd_aot.store.sealed import is_intact, seal
from lqcd_aot.store.writer import Writer, translated
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.errors import StoreError

PUBLISH_ATTEMPTS = 3
# How young a record in use is kept: much less than anybody's keep_seconds, and at most one write a day.
USE_SECONDS = 24 * 3600.0
_OUTPUTS = b'"outputs":'
# Canonical JSON sorts names, so these follow each other; inside a string the quotes would be escaped.
_SPEC = re.compile(
    b'"schema":"' + RECORD_SCHEMA.encode("ascii") + rb'","seal":"[0-9a-f]{64}","spec":({[^\n]*?}),'
    rb'"spec_key":"([0-9a-f]{64})","target":"([^"\\]*)"'
)
_DECODER = json.JSONDecoder()


class Records:
    """The build records of one store."""

    def __init__(
        self, fs: FileSystem, layout: Layout, writer: Writer, quarantine: Quarantine, problems: Problems, blobs: Blobs
    ) -> None:
        self._fs, self._layout, self._writer = fs, layout, writer
        self._quarantine, self._problems, self._blobs = quarantine, problems, blobs
        self.listing = Listing(fs, layout, writer, self.quick)

    def get(self, build_key: str) -> Record | None:
        """The record, or None where there is none that can be used; what is wrong with it is then among the problems."""
        record, fact = self.examine(build_key)
        if fact is not None:
            self._problems.add("record", build_key, fact)
        return record

    def examine(self, build_key: str) -> tuple[Record | None, str | None]:
        """(record, None), (None, None) where there is none, or (None, what is wrong with it)."""
        path, fact = self._layout.entry("records", build_key), None
        for _ in looks():
            try:
                record = parse_record(self._fs.read(path), build_key)
            except FileNotFoundError:
                return None, None
            except NewerSchema:
                return None, None
            except (ValueError, OSError) as error:
                fact = _sentence(error)
                continue
            fact = self._bytes_fact(record)
            if fact is None:
                return record, None
        return None, fact

    def is_there(self, build_key: str) -> bool:
        """Whether a file has the name of this record. Errors: StoreError where that cannot be told."""
        try:
            with translated(self._layout.root):
                self._fs.stat(self._layout.entry("records", build_key))
        except FileNotFoundError:
            return False
        return True

    def usable(self, blobs: dict[str, FileStat] | None = None) -> dict[str, Outputs]:
        """{build key: (digest, size) of each output} of intact records whose bytes are there with the right size, sorted.

        One look at each folder (blobs: what it gave); records are read only where the listing does not know their file (see
        listing.py): a plan of 10,000 variants asks this. The bytes themselves are judged by inventory.py.
        """
        stats = self._blobs.stats() if blobs is None else blobs
        there = {digest: stat.size for digest, stat in stats.items()}.items()
        found = {}
        for build_key, one in self.listing.look()[0].items():
            if one.outputs is not None and there >= set(one.outputs):
                found[build_key] = one.outputs
                continue
            record = self.get(build_key)  # notes what is wrong, or that a blob came after the listing
            if record is not None:
                found[build_key] = glance_of(record).outputs
        return found

    def all_keys(self) -> list[str]:
        """Every build key that has a file in records/, usable or not."""
        base = self._layout.folder("records")
        return [
            name[:-5]
            for fan in listed(self._fs, base)
            for name in listed(self._fs, f"{base}/{fan}")
            if name.endswith(".json") and is_key(name[:-5]) and name[:2] == fan
        ]

    def publish(self, record: Record) -> Published:
        """Add a record whose bytes are stored already. See `Published` for what can happen.

        Errors: ValueError for a record that is not one or whose bytes are absent (a mistake of the caller); StoreError.
        """
        check_record(record)
        fact = self._bytes_fact(record) and self._bytes_fact(record)  # twice: a network file system may show a name late
        if fact is not None:
            raise ValueError(f"record {record['build_key'][:16]}: {fact}; bytes are stored before the record that names them")
        build_key = record["build_key"]
        path, data = self._layout.entry("records", build_key), seal(record)
        for _ in range(PUBLISH_ATTEMPTS):
            if self._writer.create(path, data):
                return Published(record, "published")
            winner, fact = self.examine(build_key)
            if winner is not None:
                return self._compare(record, winner)
            if fact is not None:
                self.put_aside(build_key, fact)
        if fact is None:
            # The name is taken, yet not visible here (a network file system's negative cache, or a later schema): our own
            # bytes are good, and whoever reads the other record finds its bytes too.
            return Published(record, "reused")
        raise StoreError(
            f"record {build_key[:16]}: other processes keep writing a broken one in store {self._layout.root}",
            found=fact,
            hint=f"lqcd-aot store verify --store {self._layout.root}",
        )

    def used(self, build_key: str) -> None:
        """Say that a record is in use: garbage collection counts its days from now. Errors: StoreError."""
        path = self._layout.entry("records", build_key)
        try:
            with translated(self._layout.root):
                young = time.time() - self._fs.stat(path).mtime < USE_SECONDS
        except FileNotFoundError:
            return
        record = None if young else self.get(build_key)
        if record is not None:
            self._writer.replace(path, seal(record))

    def put_aside(self, build_key: str, fact: str) -> None:
        """Move a record that cannot be used into corrupt/."""
        path = self._layout.entry("records", build_key)
        self._quarantine.put_aside("record", build_key, path, fact, lambda key: self.examine(key)[0] is not None)

    def divergences(self) -> list[str]:
        """Names (<build_key>-<digest>) of the recorded divergences, sorted."""
        base = self._layout.folder("divergences")
        return [
            name[:-5] for fan in listed(self._fs, base) for name in listed(self._fs, f"{base}/{fan}") if name.endswith(".json")
        ]

    def _compare(self, record: Record, winner: Record) -> Published:
        mine, theirs = _digests(record), _digests(winner)
        if mine == theirs:
            path = self._layout.entry("records", record["build_key"])
            if is_old(self._fs, path):
                # Garbage collection goes by age: what was just built again is as good as new.
                self._writer.replace(path, seal(winner))
            return Published(winner, "reused")
        divergence: dict[str, Any] = {
            "schema": DIVERGENCE_SCHEMA,
            "build_key": record["build_key"],
            "kept": winner["outputs"],
            "other": record["outputs"],
            "other_provenance": record["provenance"],
        }
        digest = sha256_hex(repr(mine).encode())
        self._writer.create(self._layout.divergence(record["build_key"], digest), seal(divergence))
        return Published(winner, "diverged")

    def _bytes_fact(self, record: Record) -> str | None:
        for name, output in record["outputs"].items():
            size = self._blobs.size(output["sha256"])
            if size is None:
                return f"output {name} names blob {output['sha256'][:16]}, which is absent"
            if size != output["size"]:
                return f"output {name} has {output['size']} bytes, its blob {output['sha256'][:16]} has {size}"
        return None

    def quick(self, build_key: str) -> Glance | None:
        """What the listing holds of an intact record, without reading all of its JSON."""
        try:
            data = self._fs.read(self._layout.entry("records", build_key))
            at = data.find(_OUTPUTS)
            spec = _SPEC.search(data, max(at, 0))
            # Canonical JSON sorts names, so the record's own key comes first: a record under another's name is none.
            if at < 0 or not data.startswith(b'{"build_key":"%b"' % build_key.encode()) or not is_intact(data) or spec is None:
                return None
            outputs, _ = _DECODER.raw_decode(data[at + len(_OUTPUTS) :].decode("ascii"))
            check_outputs(outputs)
        except (OSError, ValueError):
            return None
        found = tuple((output["sha256"], output["size"]) for output in outputs.values())
        return Glance(found, spec[2].decode("ascii"), spec[1].decode("ascii"), spec[3].decode("ascii"))


def glance_of(record: Record) -> Glance:
    """The same as `Records.quick`, of a record that was read."""
    outputs = tuple((output["sha256"], output["size"]) for output in record["outputs"].values())
    return Glance(outputs, record["spec_key"], canonical_json(record["spec"]).decode("ascii"), record["target"])


def _digests(record: Record) -> list[tuple[str, str]]:
    return sorted((name, output["sha256"]) for name, output in record["outputs"].items())


def _sentence(error: Exception) -> str:
    return f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
