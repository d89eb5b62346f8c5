"""What `pack` promises: same store, same bytes; nothing absent, wrong or half-written is ever sealed."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

import lqcd_runtime
from lqcd_aot.build.pack import Wanted, pack, recipe_facts, wanted
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.store import Store, open_store
from lqcd_aot.store.fs import RealFileSystem, Retrying
from lqcd_aot.store.sealed import seal
from lqcd_runtime.errors import CorruptError, StoreError, UsageError, WitnessMismatch
from tests.crash.fake_build import fake_build, planned, some_variants
from tests.crash.faults import KILLS, READS, FaultyFileSystem, Killed

RECIPE = {"name": "recipes/x.toml", "sha256": "00" * 32}
COUNT = 3


@pytest.fixture
def store(tmp_path: Path) -> Store:
    fake_build(tmp_path / "store", FakeToolchain(), COUNT)
    return open_store(tmp_path / "store")


def all_of(store: Store, count: int = COUNT) -> list[Wanted]:
    return wanted(planned(some_variants(count), store, FakeToolchain()))


def test_two_packs_are_equal_and_hold_what_the_store_holds(store: Store, tmp_path: Path) -> None:
    first = pack(store, all_of(store), tmp_path / "a.lqcd", name="x", recipe=RECIPE)
    second = pack(store, reversed(all_of(store)), tmp_path / "b.lqcd", name="x", recipe=RECIPE)
    data = (tmp_path / "a.lqcd").read_bytes()
    assert data == (tmp_path / "b.lqcd").read_bytes()
    assert (first.artifacts, first.size, first.manifest_sha256) == (COUNT, len(data), second.manifest_sha256)
    assert set(first.unchecked.values()) == {"bytes of a test"}
    with lqcd_runtime.open(str(tmp_path / "a.lqcd")) as bundle:
        for item in planned(some_variants(COUNT), store, FakeToolchain()):
            (entry,) = bundle.find(item.variant.spec)
            assert entry.build_key == item.build_key
            assert bundle.read_blob(entry.code["sha256"]) == store.read_blob(entry.code["sha256"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.lqcd", "b.lqcd", "store"]


def test_absent_artifacts_are_counted_and_the_command_to_build_them_is_named(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="8 of 11 artifacts are not in store") as caught:
        pack(store, [*all_of(store, 10), Wanted("never-built", None)], tmp_path / "x.lqcd", name="x", recipe=RECIPE)
    text = str(caught.value)
    assert f"lqcd-aot build RECIPE --store {store.root}" in text
    assert "... and 3 more" in text
    with pytest.raises(UsageError, match="would be empty"):
        pack(store, [], tmp_path / "x.lqcd", name="x", recipe=RECIPE)
    assert not (tmp_path / "x.lqcd").exists()


def test_a_witness_that_failed_is_never_sealed(store: Store, tmp_path: Path) -> None:
    """`build` publishes no such record; one made by other means is refused here too."""
    key = str(all_of(store)[1].build_key)
    record = store.record(key)
    assert record is not None
    path = Path(store.layout.entry("records", key))
    path.unlink()
    path.write_bytes(seal({**record, "witness_status": "failed: relative error 0.1"}))
    with pytest.raises(WitnessMismatch, match="1 artifacts do not agree") as caught:
        pack(store, all_of(store), tmp_path / "x.lqcd", name="x", recipe=RECIPE)
    assert caught.value.exit_code == 21
    assert "relative error 0.1" in str(caught.value)
    assert not (tmp_path / "x.lqcd").exists()


def test_a_corrupt_blob_is_put_aside_so_that_building_again_is_enough(store: Store, tmp_path: Path) -> None:
    record = store.record(str(all_of(store)[0].build_key))
    assert record is not None
    blob = Path(store.layout.blob(record["outputs"]["code"]["sha256"]))
    data = blob.read_bytes()
    blob.unlink()
    blob.write_bytes(data[:-1] + b"!")
    with pytest.raises(CorruptError, match="does not match its name"):
        pack(store, all_of(store), tmp_path / "x.lqcd", name="x", recipe=RECIPE)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["store"]
    results = fake_build(Path(store.root), FakeToolchain(), COUNT)
    assert [r.outcome for r in results] == ["built", "reused", "reused"]
    pack(store, all_of(store), tmp_path / "x.lqcd", name="x", recipe=RECIPE)


def test_every_call_of_the_writing_fails_in_every_way(store: Store, tmp_path: Path) -> None:
    """The old bundle or the new one, whole, whatever goes wrong; and one clear error where it was not a kill."""
    out = tmp_path / "out" / "x.lqcd"
    out.parent.mkdir()
    pack(store, all_of(store)[:1], out, name="x", recipe=RECIPE)
    old = out.read_bytes()
    pack(store, all_of(store), out, name="x", recipe=RECIPE)
    new = out.read_bytes()
    counter = FaultyFileSystem(RealFileSystem())
    pack(Store(store.root, counter), all_of(store), out, name="x", recipe=RECIPE)
    writing = range(counter.calls.index("open_new"), len(counter.calls))
    cases = 0
    for at in writing:
        for kind in (*KILLS, "EIO", "ENOSPC", "EROFS", "EINTR"):
            out.write_bytes(old)
            faulty = Store(store.root, FaultyFileSystem(RealFileSystem(), at, kind))
            try:
                pack(faulty, all_of(store), out, name="x", recipe=RECIPE)
            except Killed:
                pass
            except (StoreError, CorruptError) as error:
                assert kind not in KILLS
                assert error.hint
            else:
                # A read that failed once is made again; a disk without room may take what is only closed or removed.
                assert kind in ("EINTR", "ENOSPC", "EROFS") or counter.calls[at] in READS
            assert out.read_bytes() in (old, new), f"{counter.calls[at]}, {kind}"
            cases += 1
            for stray in out.parent.iterdir():
                assert stray == out or kind in KILLS, f"{counter.calls[at]}, {kind}"
                if stray != out:
                    stray.unlink()
    assert cases == 6 * len(writing) > 60


def test_a_destination_that_is_absent_is_a_clear_error(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"x\.lqcd: cannot be written") as caught:
        pack(store, all_of(store), tmp_path / "absent" / "x.lqcd", name="x", recipe=RECIPE)
    assert str(errno.ENOENT) in str(caught.value.found)
    assert isinstance(store.fs, Retrying)


def test_recipe_facts_are_name_and_content(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_bytes(b"x")
    facts = recipe_facts(tmp_path / "r.toml", "r")
    assert facts == {"name": "r", "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}
