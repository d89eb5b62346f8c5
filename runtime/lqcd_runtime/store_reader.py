"""A store folder that answers the same questions as a bundle file. Never writes: no lock, no touch, no quarantine.

Order of reading is the writers' order backwards: specs/ab/<spec_key>.json names records, a record names blobs. What is absent
or invalid is a miss with a reason, never an error of its own; `verify` alone complains. The tree is specified in
artifacts/README.md; readers of it that repair live on the build side.
"""

from __future__ import annotations

import os

from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.errors import CorruptError, LqcdError, StoreError, TooNewError
from lqcd_runtime.manifest import SPEC_INDEX_SCHEMA, Entry, check_schema, entry_dict
from lqcd_runtime.select import Rejected, nearest_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from lqcd_runtime.signature import Spec

VERSION_PREFIX = b"lqcd-aot store "
VERSION = 1
LISTING_HEAD = b"lqcd-aot listing v3 "


class StoreFolder:
    """An open store. Holds no file open; `find` sees what builders publish while it is in use."""

    kind = "store"

    def __init__(self, path: str) -> None:
        """Check that this is a store of a known version. Errors: StoreError, TooNewError."""
        self.path = path
        self.where = f"store {path}"
        try:
            text = _read(f"{path}/VERSION")
        except OSError as err:
            raise StoreError(
                f"{self.where}: is not a store",
                expected="a bundle file, or a folder with a VERSION file",
                found=f"VERSION: {err.strerror}",
                hint="lqcd-aot build RECIPE --store DIR makes one",
            ) from err
        number = text.removeprefix(VERSION_PREFIX).strip()
        if not text.startswith(VERSION_PREFIX) or not number.isdigit():
            raise StoreError(f"{self.where}: its VERSION is not ours", expected=VERSION_PREFIX + b"1", found=text[:40])
        if int(number) > VERSION:
            raise TooNewError(f"{self.where}: was made by a later release", expected=VERSION, found=int(number))

    def find(self, spec: Spec) -> list[Entry]:
        """Valid entries of a spec, one per target."""
        return self.candidates(spec)[0]

    def candidates(self, spec: Spec) -> tuple[list[Entry], list[Rejected]]:
        """(valid entries, why the others cannot be used). Without a usable spec index, all records are looked at."""
        entries, rejected = [], []
        keys = self._indexed(spec.key)
        for build_key in self._possible(spec.key) if keys is None else keys:
            try:
                entry = self._entry(build_key)
            except LqcdError as err:
                if keys is not None:
                    rejected.append(Rejected(f"record {build_key[:12]}", str(err.fact)))
                continue
            if entry.spec_key == spec.key:
                entries.append(entry)
        return entries, rejected

    def _indexed(self, spec_key: str) -> list[str] | None:
        """Build keys from the spec index, None where it is absent or unusable."""
        try:
            _, index = _unsealed(_read(f"{self.path}/specs/{spec_key[:2]}/{spec_key}.json"), "spec index")
            check_schema(index.get("schema"), SPEC_INDEX_SCHEMA, "spec index")
            return [str(k) for k in index["records"].values()] if index["spec_key"] == spec_key else None
        except (OSError, LqcdError, KeyError, AttributeError):
            return None

    def _build_keys(self) -> Iterator[str]:
        for folder in _names(f"{self.path}/records"):
            for name in _names(f"{self.path}/records/{folder}"):
                if name.endswith(".json") and len(name) == 69:
                    yield name[:-5]

    def _possible(self, spec_key: str) -> Iterator[str]:
        """Build keys of records that may be of this spec: all but those that the builders' list says are of another.

        A build key covers its spec, so an old list says no less than a new one; a broken or absent one says nothing.
        """
        mine = spec_key.encode()
        others = {line[:64] for line in self._listing()[0] if mine not in line}
        return (key for key in self._build_keys() if key.encode() not in others)

    def _listing(self) -> tuple[list[bytes], list[bytes]]:
        """(lines of records, lines of specs) of the builders' list; empty where it is absent or broken."""
        try:
            head, _, body = _read(f"{self.path}/listing").partition(b"\n")
        except OSError:
            return [], []
        if head != LISTING_HEAD + sha256_hex(body).encode():
            return [], []
        lines = body.split(b"\n")
        middle = lines.index(b"") if b"" in lines else len(lines)
        return lines[:middle], lines[middle + 1 :]

    def record(self, build_key: str) -> bytes:
        """Canonical JSON of a build record. Errors: CorruptError."""
        return self._record(build_key)[0]

    def _record(self, build_key: str) -> tuple[bytes, dict[str, Any]]:
        """A build record: its canonical JSON, and that parsed."""
        where = f"record {build_key[:12]}"
        if len(build_key) != 64 or not build_key.isalnum():
            raise CorruptError(f"{where}: is not named by a digest")
        try:
            data, record = _unsealed(_read(f"{self.path}/records/{build_key[:2]}/{build_key}.json"), where)
        except OSError as err:
            raise CorruptError(f"{where}: cannot be read", found=err.strerror) from err
        if record.get("build_key") != build_key:
            raise CorruptError(f"{where}: holds another record", found=record.get("build_key"))
        return data, record

    def layer_of(self, build_key: str) -> str:
        """Where a record comes from: this folder."""
        return self.path

    def _entry(self, build_key: str) -> Entry:
        return Entry.from_dict(entry_dict(self._record(build_key)[1]), f"record {build_key[:12]}")

    def entries(self) -> Iterator[Entry]:
        """All valid entries, sorted by (spec_key, target); invalid records are left out (see `verify`)."""
        found = []
        for build_key in self._build_keys():
            try:
                found.append(self._entry(build_key))
            except LqcdError:
                continue
        return iter(sorted(found, key=lambda e: (e.spec_key, e.target, e.build_key)))

    def nearest(self, spec: Spec) -> Entry | None:
        """The entry whose spec differs least: by the spec indices, which are smaller than the records; else by the records."""
        near = nearest_spec(spec, self._spec_texts())
        entries = [entry for entry in self._of_spec(near) if entry.spec_key == near] if near else []
        if entries:
            return min(entries, key=lambda e: (e.target, e.build_key))
        return nearest_spec(spec, ((entry, canonical_json(entry.spec.as_dict())) for entry in self.entries()))

    def _spec_texts(self) -> Iterator[tuple[str, bytes]]:
        """(spec key, canonical JSON of the spec) of every spec index: from the builders' list, or cut out of the index, unparsed
        and not compared with its seal: what is shown of the winner is read as a record."""
        known = {line[:64]: line[65:] for line in self._listing()[1]}
        for folder in _names(f"{self.path}/specs"):
            for name in _names(f"{self.path}/specs/{folder}"):
                text = known.get(name[:-5].encode("ascii", "replace"))
                if text is not None:
                    yield name[:-5], text
                    continue
                try:
                    data = _read(f"{self.path}/specs/{folder}/{name}")
                except OSError:
                    continue
                first = data.find(b'"spec":{') + 7
                last = data.find(b',"spec_key":"', first)
                if first >= 7 and last > 0:
                    yield name[:-5], data[first:last]

    def _of_spec(self, spec_key: str) -> Iterator[Entry]:
        for build_key in self._indexed(spec_key) or ():
            try:
                yield self._entry(build_key)
            except LqcdError:
                continue

    def read_blob(self, sha256: str) -> bytes:
        """The bytes with this digest. Errors: CorruptError where they are absent or wrong."""
        try:
            data = _read(f"{self.path}/blobs/sha256/{sha256[:2]}/{sha256}")
        except OSError as err:
            raise CorruptError(f"{self.where}: has no blob {sha256[:12]}", found=err.strerror, hint="build again") from err
        if sha256_hex(data) != sha256:
            raise CorruptError(
                f"blob {sha256[:12]}: content does not match its name",
                expected=sha256,
                found=f"{sha256_hex(data)} ({len(data)} bytes)",
                hint=f"lqcd-aot store verify --repair --store {self.path}",
            )
        return data

    def verify(self) -> int:
        """Read every record and every blob that a record names; the number of bytes. Errors: CorruptError with all issues."""
        issues, size = [], 0
        for build_key in self._build_keys():
            try:
                data, record = self._record(build_key)
                entry = Entry.from_dict(entry_dict(record), f"record {build_key[:12]}")
                size += len(data)
                size += sum(len(self.read_blob(output["sha256"])) for output in entry.outputs.values())
            except LqcdError as err:
                issues.append(err.fact)
        if issues:
            raise CorruptError(
                f"{self.where}: {len(issues)} of its records cannot be used",
                details=issues,
                hint=f"lqcd-aot store verify --repair --store {self.path}",
            )
        return size

    def close(self) -> None:
        """Nothing is held open."""


def _unsealed(data: bytes, where: str) -> tuple[bytes, dict[str, Any]]:
    """A stored JSON object without the digest of itself that it carries as "seal", and compared with it: canonical, and parsed.

    Errors: CorruptError.
    """
    import json
    import re

    # As writers spell it, the seal is cut out; inside a string its quotes would be escaped.
    for found in re.finditer(rb',"seal":"([0-9a-f]{64})"', data):
        body = data[: found.start()] + data[found.end() :]
        if sha256_hex(body) == found[1].decode():
            value = json.loads(body)
            if "seal" not in value:
                return body, value
    try:
        value = json.loads(data)
        seal = value.pop("seal")
    except (ValueError, AttributeError, KeyError, TypeError) as err:
        raise CorruptError(f"{where}: is not a sealed JSON object", found=f"{len(data)} bytes") from err
    body = canonical_json(value)
    if sha256_hex(body) != seal:
        raise CorruptError(f"{where}: does not match its own seal")
    return body, value


def _read(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
