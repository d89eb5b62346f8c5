"""A store folder: open it, and the few verbs others use.

Owns opening, VERSION and the wiring of the parts. Knows bytes, digests and records, no recipe, program or compiler.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

from lqcd_aot.store.blobs import Blobs, listed
from lqcd_aot.store.condemned import Condemned
from lqcd_aot.store.corrupt import Quarantine
from lqcd_aot.store.failures import Failure, Failures
from lqcd_aot.store.fs import FileSystem, RealFileSystem, Retrying
from lqcd_aot.store.inventory import Inventory
from lqcd_aot.store.layers import layered
from lqcd_aot.store.layout import FOLDERS, VERSION, VERSION_TEXT, Layout
from lqcd_aot.store.leases import Lease, Leases
from lqcd_aot.store.owner import this_process
from lqcd_aot.store.problems import Problem, Problems
from lqcd_aot.store.record_format import Published, Record
from lqcd_aot.store.records import Records
from lqcd_aot.store.roots import Roots
from lqcd_aot.store.specs import Specs
from lqcd_aot.store.temporaries import sweep
from lqcd_aot.store.verified import Verified
from lqcd_aot.store.verify import VerifyReport, verify
from lqcd_aot.store.writer import Writer, translated
from lqcd_runtime.errors import CorruptError, StoreError, TooNewError

PROBE_BYTES = 1 << 16


class Store:
    """A content-addressed store, correct for any number of processes and hosts with no lock at all.

    Reading writes nothing. Every entry that is not what its name says is a miss; `problems` tells which, and the next publish of
    that key puts it aside in corrupt/. Use `open_store`.
    """

    def __init__(self, root: str | os.PathLike[str], fs: FileSystem | None = None, lower: tuple[Store, ...] = ()) -> None:
        """lower: stores that are looked in, in this order, for what is not here; nothing is ever written to them."""
        self.layout = Layout(root)
        self.lower = lower
        self.fs = Retrying(fs or RealFileSystem())
        self.writer = Writer(self.fs, self.layout)
        self._problems = Problems()
        quarantine = Quarantine(self.layout, self.writer, self._problems)
        self.blobs = Blobs(self.fs, self.layout, self.writer, quarantine, self._problems)
        self.records = Records(self.fs, self.layout, self.writer, quarantine, self._problems, self.blobs)
        self.leases = Leases(self.fs, self.layout, self.writer)
        self.specs = Specs(self.fs, self.layout, self.writer, self.leases)
        self.roots = Roots(self.fs, self.layout, self.writer)
        self.condemned = Condemned(self.fs, self.layout, self.writer)
        self.verified = Verified(self.fs, self.layout, self.writer)
        self.failures = Failures(self.fs, self.layout, self.writer)

    def __repr__(self) -> str:
        return f"Store({self.root!r})"

    @property
    def root(self) -> str:
        """The folder, absolute."""
        return self.layout.root

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What this process found wrong so far, each entry once."""
        return self._problems.all()

    def record(self, build_key: str) -> Record | None:
        """The record of a build key, or None where there is none that can be used."""
        found = self.records.get(build_key)
        for layer in self.lower if found is None else ():
            found = found or layer.record(build_key)
        return found

    def layer_of(self, build_key: str) -> str | None:
        """The folder of the store that `record` takes it from."""
        return next((s.root for s in (self, *self.lower) if s.records.get(build_key) is not None), None)

    def spec_index(self, spec_key: str) -> dict[str, str]:
        """{target: build_key}, the latest build of each target; what this store has goes before what is in the layers below."""
        found: dict[str, str] = {}
        for store in reversed((self, *self.lower)):
            found.update(store.specs.get(spec_key))
        return found

    def spec_keys(self) -> frozenset[str]:
        """Every spec key that has an index."""
        return frozenset(key for store in (self, *self.lower) for key in store.specs.all_keys())

    def records_of_spec(self, spec_key: str) -> dict[str, Record]:
        """{target: record} for every target of a spec, the latest build of each; what cannot be used is left out."""
        found: dict[str, Record] = {}
        for store in reversed((self, *self.lower)):
            records = {target: store.records.get(key) for target, key in sorted(store.specs.get(spec_key).items())}
            found.update({target: record for target, record in records.items() if record is not None})
        return dict(sorted(found.items()))

    def failure(self, build_key: str) -> Failure | None:
        """The remembered failure of a build key, if any."""
        return self.failures.get(build_key)

    def record_failure(self, failure: Failure) -> None:
        """Remember a failure. Errors: ValueError for interruptions and timeouts, which are never recorded; StoreError."""
        self.failures.put(failure)

    def put_blob(self, data: bytes) -> str:
        """Store bytes, return their SHA-256."""
        return self.blobs.put(data)

    def read_blob(self, digest: str) -> bytes:
        """Bytes by digest, verified. Errors: CorruptError."""
        try:
            return self.blobs.read(digest)
        except CorruptError:
            for layer in self.lower:
                with contextlib.suppress(CorruptError):
                    return layer.read_blob(digest)
            raise

    def publish(self, record: Record) -> Published:
        """Add a record whose blobs are stored, name it in its spec's index, forget the key's failure.

        Order: blobs (by the caller), the index where it has nothing for this target yet, the record, the index where it named an
        older one. So a writer killed anywhere leaves no record that its spec does not lead to, and hides no older one.
        """
        self.specs.announce(record)
        published = self.records.publish(record)
        self.specs.add(published.record)
        self.failures.forget(record["build_key"])
        return published

    def used(self, build_keys: Iterable[str]) -> None:
        """Say that artifacts without a root are in use, so that `keep_seconds` of garbage collection counts from now.

        For builders; readers write nothing. A store that cannot be written is left as it is: its owner collects there.
        """
        with contextlib.suppress(StoreError):
            for build_key in build_keys:
                self.records.used(build_key)

    def list_build_keys(self) -> list[str]:
        """Build keys that can be used (record intact, bytes there), sorted; made for plans of 10,000 variants."""
        return sorted({key for store in (self, *self.lower) for key in store.records.usable()})

    def inventory(self) -> Inventory:
        """What can be reused, and whether its bytes are right. Errors: StoreError."""
        with translated(self.root):
            return Inventory(self)

    def sound_record(self, build_key: str) -> Record | None:
        """As `record`, after reading every byte of it; wrong bytes of this store are put aside for the next writer.

        Errors: StoreError.
        """
        for store in (self, *self.lower):
            record = store.records.get(build_key)
            if record is None:
                continue
            wrong = [o["sha256"] for o in record["outputs"].values() if not store.blobs.is_sound(o["sha256"])]
            if not wrong:
                return record
            for digest in wrong if store is self else ():
                self.blobs.put_aside(digest, "content does not match its name")
        return None

    def lease(self, build_key: str, *, seconds: float) -> Lease | None:
        """The right to build a key, or None while another live process has it. Only saves work."""
        return self.leases.acquire(build_key, seconds=seconds)

    def verify(self, *, repair: bool = False, quick: bool = False) -> VerifyReport:
        """Read every byte and judge it. repair: put aside what is wrong, and make the spec indices anew. quick: bytes whose
        file has the size, times and inode it had when they were last verified are not read again."""
        with translated(self.root):
            return verify(self, repair=repair, quick=quick)

    def sweep_temporaries(self) -> int:
        """Remove temporary files of dead writers; returns how many."""
        return sweep(self.fs, self.layout)

    def check_writable(self) -> None:
        """Write and remove a small file, so that a full or read-only store is known before hours of compiling.

        Errors: StoreError.
        """
        self._make_folders()
        path = f"{self.layout.tmp}/{this_process().temp_name()}"
        self.writer.replace(path, bytes(PROBE_BYTES))
        self.writer.remove(path)

    def create(self) -> None:
        """Make the folders and VERSION where they are not yet there; many processes may do so at once. Errors: StoreError."""
        self._make_folders()
        if not self._version_text():
            self.writer.create(self.layout.version, VERSION_TEXT)
        self.check_version()

    def check_version(self) -> None:
        """Errors: StoreError where this is no store, TooNewError for one of a later release."""
        text = self._version_text()
        if text == VERSION_TEXT:
            return
        number = text.removeprefix(b"lqcd-aot store ").strip()
        if text.startswith(b"lqcd-aot store ") and number.isdigit() and int(number) > VERSION:
            raise TooNewError(
                f"store {self.root}: is of a later release",
                expected=f"version {VERSION}",
                found=f"version {number.decode()}",
                hint="upgrade lqcd-aot, or name another folder with --store",
            )
        raise StoreError(
            f"store {self.root}: is not a store",
            expected=f"a file VERSION with {VERSION_TEXT.decode().strip()!r}",
            found=f"{text[:40]!r}" if text else "no such file",
            hint="lqcd-aot build RECIPE --store FOLDER makes one",
        )

    def is_foreign(self) -> bool:
        """Whether the folder holds things, and they are not a store's."""
        with translated(self.root):
            names = set(listed(self.fs, self.root))
        return "VERSION" not in names and bool(names - {"layers", *(f for f in FOLDERS if "/" not in f)})

    def _version_text(self) -> bytes:
        try:
            with translated(self.root):
                return self.fs.read(self.layout.version)
        except FileNotFoundError:
            return b""

    def _make_folders(self) -> None:
        for name in FOLDERS:
            self.writer.folder(self.layout.folder(name))


def open_store(
    root: str | os.PathLike[str],
    *,
    create: bool = False,
    fs: FileSystem | None = None,
    layers: Sequence[str | os.PathLike[str]] = (),
) -> Store:
    """Open a store folder; with `create`, make it where it does not exist or is empty.

    layers: read-only stores below it, beside those its file `layers` names; with `create` they are added to that file.
    Errors: StoreError where there is none, where the folder holds something else, or where it cannot be made; TooNewError.
    """
    store = Store(root, fs)
    if create and store.is_foreign():
        raise StoreError(
            f"store {store.root}: is not a store and not empty",
            found=", ".join(listed(store.fs, store.root)[:5]),
            hint="--store FOLDER names an empty or new folder",
        )
    try:
        store.check_version()
    except StoreError:
        if not create:
            raise
        store.create()
    below = layered(store, layers, write=create)
    return Store(root, fs, tuple(open_single(path, fs) for path in below)) if below else store


def open_single(root: str | os.PathLike[str], fs: FileSystem | None = None) -> Store:
    """A store without its layers. Errors: StoreError, TooNewError."""
    store = Store(root, fs)
    store.check_version()
    return store
