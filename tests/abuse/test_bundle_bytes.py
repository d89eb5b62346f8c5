"""One changed byte anywhere in a bundle is refused by `verify`, and nobody who opens and loads ever gets a wrong byte.

Every byte of headers and payload is changed; of padding (zeros between members) every seventh byte and its edges.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lqcd_runtime import bundle_layout
from lqcd_runtime.bundle import open_bundle
from lqcd_runtime.bundle_writer import write_bundle
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.errors import CorruptError, LqcdError, TooNewError
from lqcd_runtime.signature import Spec
from tests.made import RECIPE, bundle_bytes, code_of, record

SPEC = Spec("wilson", "4x4x4x4", "float64")
TARGET = "x86-64-v2"


@pytest.fixture(scope="module")
def whole() -> bytes:
    return bundle_bytes([record(SPEC, TARGET)], signatures={"signatures/key.sig": b"s" * 64})


def places(data: bytes) -> list[int]:
    """Offsets to change: all but the inner part of zero runs, of which every seventh byte."""
    chosen = []
    for at in range(len(data)):
        around = data[max(0, at - 4) : at + 5]
        if at % 7 == 0 or any(around):
            chosen.append(at)
    return chosen


def load(path: Path) -> bytes:
    with open_bundle(path) as bundle:
        entry = bundle.find(SPEC)[0]
        assert entry.name == f"{SPEC.name}@{TARGET}"
        return bundle.read_blob(entry.code["sha256"])


def changed(path: Path, data: bytes, at: int, flip: int) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, bytes([data[at] ^ flip]), at)
    yield
    os.pwrite(fd, data[at : at + 1], at)
    os.close(fd)


def test_every_byte_counts(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "x.lqcd"
    path.write_bytes(whole)
    expected = load(path)
    assert expected == code_of(SPEC, TARGET)
    unnoticed, wrong = [], []
    chosen = places(whole)
    for i, at in enumerate(chosen):
        for _ in changed(path, whole, at, 1 << (i % 8)):
            try:
                with open_bundle(path) as bundle:
                    bundle.verify()
                unnoticed.append(at)
            except CorruptError as err:
                assert str(path) in err.fact
            except TooNewError:
                wrong.append(at)  # no single bit makes a version of ours a later one before a digest is wrong
            try:
                if load(path) != expected:
                    wrong.append(at)
            except CorruptError:
                pass
    assert not unnoticed and not wrong
    assert len(chosen) > len(whole) // 7
    with open_bundle(path) as bundle:
        assert bundle.verify() == len(whole)


def test_every_truncation_and_every_addition_is_refused_at_once(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "x.lqcd"
    for size in [*range(1, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptError, match="truncated"):
            open_bundle(path)
    for added in (b"\0", b"x" * 107, whole):
        path.write_bytes(whole + added)
        with pytest.raises(CorruptError), open_bundle(path) as bundle:
            bundle.verify()


def test_members_swapped_or_removed_are_noticed(tmp_path: Path) -> None:
    """A blob of another bundle in the place of ours, of the same size: only the digest knows."""
    ours, theirs = b"a" * 5000, b"b" * 5000
    data = bytearray(bundle_bytes([record(SPEC, TARGET, ours)], [ours]))
    forged = bundle_bytes([record(SPEC, TARGET, theirs)], [theirs])
    start = data.index(ours)
    data[start : start + 5000] = forged[forged.index(theirs) :][:5000]
    path = tmp_path / "x.lqcd"
    path.write_bytes(data)
    with pytest.raises(CorruptError, match=sha256_hex(ours)):
        load(path)
    with open_bundle(path) as bundle, pytest.raises(CorruptError, match=f"blobs/{sha256_hex(ours)}"):
        bundle.verify()


def rewritten(change: Callable[[dict[str, bytes]], None]) -> bytes:
    """A bundle whose members were changed and whose headers, CRCs and comment are right again: a forger with our own writer."""
    import zipfile

    with zipfile.ZipFile(io.BytesIO(bundle_bytes([record(SPEC, TARGET)]))) as z:
        members = {name: z.read(name) for name in z.namelist()}
    change(members)
    out = io.BytesIO()
    placed = bundle_layout.place({n: (len(d), zlib.crc32(d)) for n, d in members.items()})  # fmt: skip
    for m in placed:
        out.write(m.local_header() + members[m.name])
    out.write(b"".join(bundle_layout.tail(placed, sha256_hex(members["manifest.json"]))))
    return out.getvalue()


def consistent(change: Callable[[dict[str, bytes]], None]) -> bytes:
    """The same, with digests, sizes and CRCs of members.json and the manifest right again too."""

    def everything(members: dict[str, bytes]) -> None:
        change(members)
        facts = {n: {"sha256": sha256_hex(d), "size": len(d), "crc32": f"{zlib.crc32(d):08x}"} for n, d in members.items()}
        listed = {n: f for n, f in facts.items() if n.startswith(("records/", "blobs/"))}
        listed = json.loads(members.pop("overrides", b"{}")) or listed
        members["members.json"] = canonical_json(listed)
        manifest = json.loads(members["manifest.json"])
        for name in ("index.bin", "entries.jsonl", "members.json"):
            data = members[name]
            manifest["members"][name] = {"sha256": sha256_hex(data), "size": len(data), "crc32": f"{zlib.crc32(data):08x}"}
        members["manifest.json"] = canonical_json(manifest)

    return rewritten(everything)


def only(members: dict[str, bytes], folder: str) -> str:
    (name,) = (n for n in members if n.startswith(folder))
    return name


def other_code(members: dict[str, bytes]) -> None:
    name = only(members, "blobs/")
    members[name] = members[name][:-1] + bytes([members[name][-1] ^ 1])


def outputs_twice(members: dict[str, bytes]) -> None:
    """Readers take the last of two equal keys: another blob, in a record that begins and ends like its entry."""
    other, name = b"other code", only(members, "records/")
    members[f"blobs/{sha256_hex(other)}"] = other
    outputs = json.loads(members[name])["outputs"]
    outputs["code"] |= {"sha256": sha256_hex(other), "size": len(other)}
    members[name] = members[name].replace(b',"schema":"', b',"outputs":' + canonical_json(outputs) + b',"schema":"', 1)


def components_that_are_no_json(members: dict[str, bytes]) -> None:
    name = only(members, "records/")
    members[name] = members[name].replace(b'"components":{', b'"components":{ this is not json ', 1)


def a_record_of_nothing(members: dict[str, bytes]) -> None:
    members[f"records/{'0' * 64}.json"] = b"{}"


def a_blob_of_nothing(members: dict[str, bytes]) -> None:
    members[f"blobs/{sha256_hex(b'orphan')}"] = b"orphan"


def another_separator(members: dict[str, bytes]) -> None:
    members["entries.jsonl"] = members["entries.jsonl"][:-1] + b" "


@pytest.mark.parametrize(
    "change",
    [other_code, outputs_twice, components_that_are_no_json, a_record_of_nothing, a_blob_of_nothing, another_separator],
)
def test_what_a_forger_makes_consistent_is_refused(tmp_path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    path = tmp_path / "x.lqcd"
    path.write_bytes(consistent(lambda members: None))
    with open_bundle(path) as bundle:
        bundle.verify()
    path.write_bytes(consistent(change))
    with pytest.raises(CorruptError, match=r"x\.lqcd"), open_bundle(path) as bundle:
        bundle.verify()


@pytest.mark.parametrize("facts", [{"crc32": "f" * 20}, {"crc32": "-1"}, {"size": -1}, {"crc32": "x"}])
def test_numbers_that_no_header_holds_are_refused(tmp_path: Path, facts: dict[str, Any]) -> None:
    def change(members: dict[str, bytes]) -> None:
        listed = json.loads(members["members.json"])
        listed[only(members, "records/")] |= facts
        members["overrides"] = json.dumps(listed).encode()

    path = tmp_path / "x.lqcd"
    path.write_bytes(consistent(change))
    with pytest.raises(CorruptError, match=r"x\.lqcd"), open_bundle(path) as bundle:
        bundle.verify()


def of_the_future(members: dict[str, bytes]) -> None:
    members["manifest.json"] = members["manifest.json"].replace(b"bundle/v1", b"bundle/v2")


def other_conventions(members: dict[str, bytes]) -> None:
    members["manifest.json"] = members["manifest.json"].replace(b"degrand-rossi", b"chiral-basis1")


def stranger(members: dict[str, bytes]) -> None:
    members["blobs/" + "0" * 64] = b"not listed"


def no_json(members: dict[str, bytes]) -> None:
    members["manifest.json"] = b"[1, 2"


def a_list(members: dict[str, bytes]) -> None:
    members["manifest.json"] = b"[]"


def short_index(members: dict[str, bytes]) -> None:
    members["index.bin"] = members["index.bin"][:-1]
    replace_digest(members, "index.bin")


def foreign_target(members: dict[str, bytes]) -> None:
    members["index.bin"] = members["index.bin"][:-4] + b"\xff\0\0\0"
    replace_digest(members, "index.bin")


def far_entry(members: dict[str, bytes]) -> None:
    members["index.bin"] = members["index.bin"][:-16] + b"\xff" * 7 + members["index.bin"][-9:]
    replace_digest(members, "index.bin")


def replace_digest(members: dict[str, bytes], name: str) -> None:
    manifest: dict[str, Any] = json.loads(members["manifest.json"])
    data = members[name]
    manifest["members"][name] = {"sha256": sha256_hex(data), "size": len(data), "crc32": f"{zlib.crc32(data):08x}"}
    members["manifest.json"] = canonical_json(manifest)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (of_the_future, TooNewError),
        (other_conventions, CorruptError),
        (stranger, CorruptError),
        (no_json, CorruptError),
        (a_list, CorruptError),
        (short_index, CorruptError),
        (foreign_target, CorruptError),
        (far_entry, CorruptError),
    ],
)
def test_well_formed_nonsense_is_a_clean_error(
    tmp_path: Path, change: Callable[[dict[str, bytes]], None], error: type[LqcdError]
) -> None:
    path = tmp_path / "x.lqcd"
    path.write_bytes(rewritten(change))
    with pytest.raises(error), open_bundle(path) as bundle:
        bundle.verify()


def with_record(
    change: Callable[[dict[str, Any]], object], *, spelled: Callable[[dict[str, Any]], bytes] = canonical_json
) -> bytes:
    """The bundle with another record, everything that lists it being right."""

    def rewrite(members: dict[str, bytes]) -> None:
        (name,) = [name for name in members if name.startswith("records/")]
        value: dict[str, Any] = json.loads(members[name])
        change(value)
        members[name] = data = spelled(value)
        listed = json.loads(members["members.json"])
        listed[name] = {"sha256": sha256_hex(data), "size": len(data), "crc32": f"{zlib.crc32(data):08x}"}
        members["members.json"] = canonical_json(listed)
        replace_digest(members, "members.json")

    return rewritten(rewrite)


def nested(value: dict[str, Any]) -> None:
    """All that an entry has, inside of what it leaves out."""
    value["components"] = {**value["components"], "conventions": value.pop("conventions"), "outputs": value.pop("outputs")}


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.update(target="aarch64"),
        lambda value: value.update(witness_status="passed"),
        lambda value: value["outputs"].update(log=dict(value["outputs"]["code"])),
        lambda value: value.update(neff={}),
        lambda value: value.update(binding={"build_key": value["build_key"]}),
        lambda value: value.update(x={}),
        lambda value: value.pop("witness"),
        lambda value: value["provenance"].update(schema="lqcd-aot/record/v2") or value.update(schema="lqcd-aot/record/v2"),
        nested,
    ],
)
def test_a_record_that_is_not_its_entry_and_more_is_refused(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = tmp_path / "x.lqcd"
    path.write_bytes(with_record(change))
    with open_bundle(path) as bundle, pytest.raises(CorruptError, match="differs from its entry"):
        bundle.verify()


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value["components"].update(conventions={"x": '","provenance":{'}),
        lambda value: value["components"].update(schema="lqcd-aot/record/v1", spec={"a": {}}),
        lambda value: value["provenance"].update(machine='}},"schema":"lqcd-aot/record/v1","spec":{'),
        lambda value: value["provenance"].update(provenance={"provenance": {}}),
        lambda value: value.update(provenance={}, components={}),
    ],
)
@pytest.mark.parametrize("spelled", [canonical_json, lambda value: json.dumps(value).encode()])
def test_what_an_entry_leaves_out_may_be_anything(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], spelled: Callable[[dict[str, Any]], bytes]
) -> None:
    """However the record is spelled: what cannot be told from the bytes alone is parsed."""
    path = tmp_path / "x.lqcd"
    path.write_bytes(with_record(change, spelled=spelled))
    with open_bundle(path) as bundle:
        assert bundle.verify() == path.stat().st_size


def test_a_rewritten_bundle_without_changes_is_the_same_bundle() -> None:
    assert rewritten(lambda members: None) == bundle_bytes([record(SPEC, TARGET)])


def test_writing_needs_one_blob_in_memory_at_a_time() -> None:
    """`read_blob` is asked for each blob when its turn comes, in the order of the file."""
    records = [record(Spec("wilson", (4, 4, 4, n)), TARGET) for n in range(2, 6)]
    blobs = {r["outputs"]["code"]["sha256"]: code_of(Spec.from_dict(r["spec"]), TARGET) for r in records}
    asked: list[str] = []

    def read(digest: str) -> bytes:
        asked.append(digest)
        return blobs[digest]

    write_bundle(io.BytesIO(), name="made", recipe=RECIPE, records=records, read_blob=read)
    assert asked[-4:] == sorted(blobs) and len(asked) == 8
