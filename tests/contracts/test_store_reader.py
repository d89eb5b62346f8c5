"""A store folder answers the questions of a bundle, without writing, and treats what is absent or broken as a miss."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lqcd_aot.store.sealed import seal
from lqcd_runtime.bundle import open_bundle
from lqcd_runtime.digest import canonical_json
from lqcd_runtime.errors import CorruptError, NoVariant, StoreError, TooNewError
from lqcd_runtime.manifest import entry_dict
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import Host
from tests.made import code_of, record

SPEC = Spec("wilson", "4x4x4x4", "float64")
OTHER = Spec("wilson", "8x4x4x4", "float64")
HOST = Host("x86_64", ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"))
RECORDS = [record(SPEC, "x86-64-v2"), record(SPEC, "aarch64"), record(OTHER, "x86-64-v2")]


def put(root: Path, kind: str, key: str, data: bytes, suffix: str = ".json") -> Path:
    path = root / kind / key[:2] / f"{key}{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    root.mkdir()
    (root / "VERSION").write_bytes(b"lqcd-aot store 1\n")
    for r in RECORDS:
        put(root, "records", r["build_key"], seal(r))
        put(root, "blobs/sha256", r["outputs"]["code"]["sha256"], code_of(Spec.from_dict(r["spec"]), r["target"]), "")
    for spec in (SPEC, OTHER):
        index = {
            "schema": "lqcd-aot/spec-index/v1", "spec_key": spec.key, "spec": spec.as_dict(),
            "records": {r["target"]: r["build_key"] for r in RECORDS if r["spec_key"] == spec.key},
        }  # fmt: skip
        put(root, "specs", spec.key, seal(index))
    return root


def snapshot(root: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(root.rglob("*"))}


def test_the_same_answers_as_a_bundle_and_not_a_byte_written(store: Path) -> None:
    before = snapshot(store)
    with open_bundle(store) as bundle:
        selection = bundle.select(SPEC, HOST)
        assert selection.choice.target == "x86-64-v2" and len(selection.decisions) == 2
        assert bundle.read_blob(selection.choice.code["sha256"]) == code_of(SPEC, "x86-64-v2")
        assert [e.as_dict() for e in bundle.find(OTHER)] == [entry_dict(RECORDS[2])]
        assert bundle.record(RECORDS[0]["build_key"]) == RECORDS[0]
        assert {e.build_key for e in bundle.entries()} == {r["build_key"] for r in RECORDS}
        assert bundle.verify() == sum(
            len(canonical_json(r)) + r["outputs"]["code"]["size"] for r in RECORDS
        )  # fmt: skip
        with pytest.raises(NoVariant) as caught:
            bundle.select(SPEC.replace(batch=4), HOST)
        assert caught.value.differing == {"batch": (4, 1)}
    assert snapshot(store) == before


@pytest.mark.parametrize("damage", ["absent", "garbage", "unsealed", "empty"])
def test_without_a_usable_spec_index_the_records_are_looked_at(store: Path, damage: str) -> None:
    path = next((store / "specs" / SPEC.key[:2]).iterdir())
    if damage == "absent":
        path.unlink()
    else:
        path.write_bytes({"garbage": b"\0\1", "unsealed": b'{"schema":"x"}', "empty": b""}[damage])
    with open_bundle(store) as bundle:
        assert {e.target for e in bundle.find(SPEC)} == {"x86-64-v2", "aarch64"}


def test_a_broken_record_is_a_miss_with_a_reason(store: Path) -> None:
    key = RECORDS[0]["build_key"]
    path = store / "records" / key[:2] / f"{key}.json"
    path.write_bytes(path.read_bytes().replace(b"float64", b"float32"))
    with open_bundle(store) as bundle:
        with pytest.raises(NoVariant) as caught:
            bundle.select(SPEC, HOST)
        assert any(key[:12] in str(d) and "seal" in str(d) for d in caught.value.decisions)
        with pytest.raises(CorruptError, match="1 of its records"):
            bundle.verify()


def test_a_record_in_the_place_of_another_is_refused(store: Path) -> None:
    here, there = (RECORDS[i]["build_key"] for i in (0, 2))
    (store / "records" / here[:2] / f"{here}.json").write_bytes((store / "records" / there[:2] / f"{there}.json").read_bytes())
    with open_bundle(store) as bundle, pytest.raises(NoVariant, match="holds another record"):
        bundle.select(SPEC, HOST)


def test_wrong_or_absent_blob(store: Path) -> None:
    digest = RECORDS[0]["outputs"]["code"]["sha256"]
    path = store / "blobs" / "sha256" / digest[:2] / digest
    with open_bundle(store) as bundle:
        path.write_bytes(b"other")
        with pytest.raises(CorruptError, match="does not match its name"):
            bundle.read_blob(digest)
        path.unlink()
        with pytest.raises(CorruptError, match="has no blob"):
            bundle.read_blob(digest)
        with pytest.raises(CorruptError, match="no blob"):
            bundle.verify()


def test_folders_that_are_no_store_or_a_later_one(tmp_path: Path, store: Path) -> None:
    with pytest.raises(StoreError, match="is not a store") as caught:
        open_bundle(tmp_path)
    assert caught.value.exit_code == 10
    (store / "VERSION").write_bytes(b"lqcd-aot store 2\n")
    with pytest.raises(TooNewError, match="later release"):
        open_bundle(store)
    (store / "VERSION").write_bytes(b"restic 1\n")
    with pytest.raises(StoreError, match="VERSION is not ours"):
        open_bundle(store)


def test_a_read_only_store_is_enough(store: Path) -> None:
    for folder, _, files in os.walk(store, topdown=False):
        for name in files:
            (Path(folder) / name).chmod(0o444)
        Path(folder).chmod(0o555)
    try:
        with open_bundle(store) as bundle:
            assert bundle.select(SPEC, HOST).choice.target == "x86-64-v2"
    finally:
        for folder, _, _ in os.walk(store):
            Path(folder).chmod(0o755)
