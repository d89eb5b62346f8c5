"""Many processes on one key, and collection in a loop beside build, export and load. C3, C6, C11.

Reduced here; `python -m tests.crash.test_concurrency` runs the full figures: 32 processes x 200 rounds in each mode, 60 seconds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pytest

import lqcd_runtime
from lqcd_aot.ship.bundles import of_records
from lqcd_aot.ship.content import write_content
from lqcd_aot.store import Store, open_store
from lqcd_aot.store.fs import FileSystem, RealFileSystem
from lqcd_aot.store.gc import collect
from lqcd_aot.store.gc_mark import Policy
from lqcd_aot.store.leases import Lease, Leases
from lqcd_aot.store.pins import pin
from lqcd_runtime.conventions import CONVENTIONS
from lqcd_runtime.signature import Spec
from tests.crash.fake_build import exit_code, fork
from tests.crash.network_fs import NetworkFileSystem
from tests.crash.records_for_tests import key, make_record

MODES = ("local", "no locks", "network")


def worker(root: Path, number: int, rounds: int, mode: str) -> None:
    """Each round: publish the round's key, with bytes of one's own where the round is odd, then load it and see every byte."""
    fs: FileSystem = NetworkFileSystem(number) if mode == "network" else RealFileSystem()
    if mode != "local":
        Leases.acquire = lambda self, name, *, seconds: Lease(self, name, None)  # type: ignore[method-assign]
    for turn in range(rounds):
        store = open_store(root, create=True, fs=fs)
        mine = f"{turn} {number if turn % 2 else 'all'} ".encode() * 500
        store.put_blob(mine)
        published = store.publish(make_record(f"round {turn}", mine, spec=f"spec {turn}"))
        code = store.read_blob(published.record["outputs"]["code"]["sha256"])
        assert code.startswith(f"{turn} ".encode()) and len(set(code.split(b" ")[1::2])) == 1, "files of two writers mixed"
        assert published.outcome in ("published", "reused", "diverged")
        assert turn % 2 or published.outcome != "diverged"


def many_on_one_key(root: Path, processes: int, rounds: int, mode: str) -> Store:
    pids = [fork(lambda n=n: worker(root, n, rounds, mode)) for n in range(processes)]  # type: ignore[misc]
    assert [exit_code(pid) for pid in pids] == [0] * processes
    store = open_store(root)
    report = store.verify()
    assert report.problems == ()
    assert report.records == rounds
    assert report.temporaries == 0
    assert report.divergences == sum(processes - 1 for turn in range(rounds) if turn % 2)
    return store


@pytest.mark.parametrize("mode", MODES)
def test_many_processes_on_one_key(mode: str, tmp_path: Path) -> None:
    store = many_on_one_key(tmp_path / "store", 8, 6, mode)
    for turn in range(6):
        assert store.record(key(f"round {turn}")) is not None


def variant(batch: int, code: bytes) -> tuple[Spec, dict[str, object]]:
    spec = Spec("wilson", (4, 4, 4, 4), batch=batch)
    named = {"build_key": key(f"kept {batch}"), "spec_key": spec.key, "spec": spec.as_dict(), "conventions": CONVENTIONS}
    return spec, {**make_record(f"kept {batch}", code), **named}


def code_of(batch: int) -> bytes:
    # Half of the bytes are shared with junk that comes and goes.
    return f"shared {batch // 2}".encode() * 200


def builder(root: Path, until: float) -> None:
    """Publishes pinned artifacts and unpinned junk that shares their bytes; what it was told is there must load."""
    batch = 0
    store = open_store(root)
    while time.time() < until:
        batch = batch % 20 + 1
        spec, record = variant(batch, code_of(batch))
        store.put_blob(code_of(batch))
        store.publish(record)
        pin(store, "pin", spec.name, [str(record["build_key"])])
        junk = f"junk {time.time_ns()}"
        store.put_blob(code_of(batch + 1))
        store.publish(make_record(junk, code_of(batch + 1), spec=junk))
        assert store.read_blob(record["outputs"]["code"]["sha256"]) == code_of(batch)  # type: ignore[index]


def reader(root: Path, until: float) -> None:
    """Loads, through the runtime, what is pinned, and exports it."""
    turns = 0
    while time.time() < until:
        turns += 1
        store = open_store(root)
        pinned = [root.build_keys[0] for root in store.roots.all()]
        records = {}
        for build_key in pinned:
            record = store.record(build_key)
            assert record is not None, build_key
            records[build_key] = record
        with lqcd_runtime.open(root) as source:
            for record in records.values():
                found = source.find(Spec.from_dict(record["spec"]))
                assert found
                source.read_blob(found[0].code["sha256"])
        if records:
            out = root.parent / f"export-{turns % 2}.lqcd"
            write_content(of_records("closure", records, store.read_blob), out)


def collector(root: Path, until: float) -> None:
    store = open_store(root)
    while time.time() < until:
        collect(store, Policy(keep_seconds=0, grace_seconds=2.5))


def collection_beside_everything(root: Path, seconds: float) -> tuple[int, int]:
    store = open_store(root, create=True)
    until = time.time() + seconds
    actors = (builder, builder, reader, reader, collector, collector)
    pids = [fork(lambda actor=actor: actor(root, until)) for actor in actors]  # type: ignore[misc]
    assert [exit_code(pid) for pid in pids] == [0] * len(actors)
    assert store.verify().problems == ()
    pinned = store.roots.all()
    assert pinned
    last = collect(store, Policy(keep_seconds=0, grace_seconds=0), now=time.time() + 1)
    assert {key for root in pinned for key in root.build_keys} == set(store.list_build_keys())
    return len(pinned), len(last.evicted)


def test_collection_in_a_loop_beside_build_export_and_load(tmp_path: Path) -> None:
    pinned, _ = collection_beside_everything(tmp_path / "store", 6)
    assert pinned > 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for which in MODES:
            began = time.time()
            many_on_one_key(Path(folder) / which, 32, 200, which)
            print(f"32 processes x 200 rounds, {which}: 0 wrong loads, 0 crashes, {time.time() - began:.0f} s")
        kept, left = collection_beside_everything(Path(folder) / "gc", float(sys.argv[1]) if len(sys.argv) > 1 else 60)
        print(f"collection beside 2 builders and 2 readers: 0 failures; {kept} artifacts kept")
