"""The bundle format: readable by any unzip tool, byte-identical when written twice, found in one open, never ambiguous."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lqcd_runtime import bundle_layout
from lqcd_runtime.bundle import open_bundle
from lqcd_runtime.bundle_writer import write_bundle
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.errors import CorruptError, LqcdError, NoVariant, StoreError, TooNewError, UsageError
from lqcd_runtime.manifest import RECORD_SCHEMA, Entry, check_schema, entry_dict
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import TARGETS
from tests.made import RECIPE, bundle_bytes, code_of, record, small_bundle

WILSON = Spec("wilson", "4x4x4x4", "float64")


def write(folder: Path, data: bytes) -> Path:
    path = folder / "x.lqcd"
    path.write_bytes(data)
    return path


def test_written_twice_from_shuffled_records_gives_equal_bytes() -> None:
    records = [record(Spec("wilson", (4, 4, 4, n)), t) for n in range(2, 6) for t in ("x86-64-v2", "aarch64")]
    assert bundle_bytes(records) == bundle_bytes(records[::-1])


def test_python_zipfile_reads_every_member_and_its_crc(tmp_path: Path) -> None:
    data = small_bundle(signatures={"signatures/release.sig": b"\1" * 64})
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        assert z.testzip() is None
        names = z.namelist()
        assert names == sorted(names, key=bundle_layout.sort_key)
        assert names[:4] == ["index.bin", "manifest.json", "entries.jsonl", "members.json"]
        assert z.comment == b"lqcd-manifest-sha256:" + sha256_hex(z.read("manifest.json")).encode()
        assert all(i.compress_type == zipfile.ZIP_STORED and i.date_time == (1980, 1, 1, 0, 0, 0) for i in z.infolist())
        for i in z.infolist():
            assert data[i.header_offset :].find(z.read(i)) >= 0
        manifest = json.loads(z.read("manifest.json"))
        assert manifest["count"] == 4 and manifest["schema"] == "lqcd-aot/bundle/v1"
        assert z.read("signatures/release.sig") == b"\1" * 64
    with open_bundle(write(tmp_path, data)) as bundle:
        assert bundle.verify() == len(data)


def test_every_member_begins_on_a_page() -> None:
    data = small_bundle()
    at, count, _ = bundle_layout.read_end(data, "x")
    for _ in range(count):
        _, start, _, at = bundle_layout.read_central(data, at, "x")
        assert start % 4096 == 0


def test_layout_with_zip64_fields_is_read_by_zipfile() -> None:
    """Members beyond 4 GiB and counts beyond 65535, written sparsely: sizes by layout, bytes by an independent reader."""
    members = bundle_layout.place(
        {"index.bin": (5, 0), "members.json": (1, 1), "manifest.json": (5 << 30, 7), "entries.jsonl": (9, 3)}
    )
    assert [m.data % 4096 for m in members] == [0, 0, 0, 0]
    tail = b"".join(bundle_layout.tail(members, "0" * 64))
    sparse = _Sparse(members[-1].end, tail)
    with zipfile.ZipFile(sparse) as z:  # type: ignore[arg-type]
        assert [(i.filename, i.file_size) for i in z.infolist()] == [(m.name, m.size) for m in members]
        assert [i.header_offset for i in z.infolist()] == [m.start for m in members]
    many = bundle_layout.place(dict.fromkeys([*bundle_layout.HEAD, *(f"blobs/{i:064x}" for i in range(70000))], (1, 0)))
    with zipfile.ZipFile(_Sparse(many[-1].end, b"".join(bundle_layout.tail(many, "0" * 64)))) as z:  # type: ignore[arg-type]
        assert len(z.infolist()) == 70004
        assert z.infolist()[-1].header_offset == many[-1].start


class _Sparse(io.RawIOBase):
    """`hole` bytes of nothing, then a tail."""

    def __init__(self, hole: int, tail: bytes) -> None:
        self.hole, self.end, self.at = hole, tail, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (0, self.at, self.hole + len(self.end))[whence]
        return self.at

    def read(self, size: int = -1) -> bytes:
        size = self.hole + len(self.end) - self.at if size < 0 else size
        zeros = max(0, min(self.hole - self.at, size))
        piece = bytes(zeros) + self.end[max(0, self.at - self.hole) :][: size - zeros]
        self.at += len(piece)
        return piece


def test_index_rows_are_sorted_and_entries_are_what_was_recorded(tmp_path: Path) -> None:
    records = [record(Spec("wilson", (4, 4, 4, n)), t) for n in range(2, 8) for t in TARGETS[:4]]
    with open_bundle(write(tmp_path, bundle_bytes(records))) as bundle:
        entries = list(bundle.entries())
        keys = [(e.spec_key, TARGETS.index(e.target)) for e in entries]
        assert keys == sorted(keys)
        expected = {r["build_key"]: canonical_json(entry_dict(r)) for r in records}
        assert {e.build_key: canonical_json(e.as_dict()) for e in entries} == expected
        for r in records:
            assert bundle.record(r["build_key"]) == r
        for n in range(2, 8):
            found = bundle.find(Spec("wilson", (4, 4, 4, n)))
            assert [e.target for e in found] == list(TARGETS[:4])
            for e in found:
                assert bundle.read_blob(e.code["sha256"]) == code_of(e.spec, e.target)
        assert bundle.find(Spec("wilson", (4, 4, 4, 9))) == []
        assert bundle.verify() == Path(bundle.path).stat().st_size


def test_writer_refuses_twins_nothing_and_lying_blobs() -> None:
    with pytest.raises(UsageError, match="two records of wilson"):
        bundle_bytes([record(WILSON, "aarch64"), record(WILSON, "aarch64", code=b"other")], [b"other"])
    with pytest.raises(UsageError, match="empty"):
        bundle_bytes([])
    with pytest.raises(CorruptError, match="not what record"):
        write_bundle(
            io.BytesIO(), name="x", recipe=RECIPE, records=[record(WILSON, "aarch64")], read_blob=lambda _: b"lies"
        )  # fmt: skip
    with pytest.raises(UsageError, match="has no place"):
        small_bundle(signatures={"signatures/../evil": b""})


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"schema": "lqcd-aot/record/v2"}, TooNewError),
        ({"schema": "lqcd-aot/recrod/v1"}, CorruptError),
        ({"schema": None}, CorruptError),
        ({"conventions": {"gamma_basis": "chiral"}}, CorruptError),
        ({"spec_key": "0" * 64}, CorruptError),
        ({"outputs": {}}, CorruptError),
        ({"spec": {"operator": "wilson"}}, CorruptError),
    ],
)
def test_entries_of_the_future_of_other_conventions_or_of_no_sense_are_refused(
    change: dict[str, Any], error: type[LqcdError]
) -> None:
    with pytest.raises(error):
        Entry.from_dict({**entry_dict(record(WILSON, "aarch64")), **change}, "entry")


def test_a_later_schema_names_both_versions() -> None:
    with pytest.raises(TooNewError) as caught:
        check_schema("lqcd-aot/record/v12", RECORD_SCHEMA, "record x")
    assert caught.value.expected == RECORD_SCHEMA and caught.value.found == "lqcd-aot/record/v12"


def test_absent_file_folder_without_version_and_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(LqcdError, match="cannot be opened"):
        open_bundle(tmp_path / "absent.lqcd")
    with pytest.raises(StoreError, match="is not a store"):
        open_bundle(tmp_path)
    with pytest.raises(CorruptError, match="cannot be mapped"):
        open_bundle(write(tmp_path, b""))


def test_resolving_opens_at_most_two_files(tmp_path: Path) -> None:
    path = write(tmp_path, small_bundle())
    code = (
        "import sys, lqcd_runtime\n"
        "from lqcd_runtime.bundle import open_bundle\n"
        "from lqcd_runtime.signature import Spec\n"
        "import json, hashlib, weakref, os, mmap\n"
        f"spec = Spec('wilson', '4x4x4x4'); spec.key; path = {str(path)!r}\n"
        "open_bundle(path).select(Spec('plaquette', '4x4x4x4', 'float32')).choice\n"
        "opened = []\n"
        "sys.addaudithook(lambda name, args: opened.append(args[0]) if name == 'open' else None)\n"
        "open_bundle(path).select(spec).choice\n"
        "print(len(opened), *opened)\n"
    )
    out = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert out == ["1", str(path)]


def test_nearest_of_a_miss_names_the_field(tmp_path: Path) -> None:
    base = Spec("wilson", "8x4x4x4", "float64", batch=4)
    others = [
        base,
        base.replace(operator="clover"),
        base.replace(lattice=(16, 16, 16, 16)),
        base.replace(dtype="float32", batch=8, shards=4),
    ]
    with open_bundle(write(tmp_path, bundle_bytes([record(s, "x86-64-v2") for s in others]))) as bundle:
        misses: dict[str, Any] = {
            "operator": "wilson_dagger", "lattice": (8, 4, 4, 5), "dtype": "float32", "batch": 3, "fused": True, "shards": 2,
            "nc": 2, "storage": "float16", "baked": {"mass": 0.25},
        }  # fmt: skip
        for field, value in misses.items():
            with pytest.raises(NoVariant) as caught:
                bundle.select(base.replace(**{field: value}))
            expected = {"dtype", "storage"} if field == "dtype" else {field}
            assert set(caught.value.differing) == expected, field
            assert caught.value.nearest == f"{base.name}@x86-64-v2"
            assert field in str(caught.value)
