"""The figures of the store and of bundles, all at once: python -m tests.bench.store_figures [--folder DIR] [SECTION ...]

    publish     durable publish of a 50 kB artifact
    plan        a no-op build of 10,080 variants, in a process of its own
    store       verify of that store (whole, quick), the first and the later explained misses in it
    bundle      open, resolve and read among 10,080; verify; misses; slim
    collection  gc of 100,000 blobs

Owns the made-up stores (real keys, records of real size, random bytes of 30 to 60 kB for code). Times depend on the machine,
rates on the memory's speed; a program that hashes the same bytes alone stands beside each rate. Not a test: nothing here fails.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from lqcd_aot.store.fs import RealFileSystem

RECIPE = """schema = 1
name = "ten-thousand"
[axes]
operator = ["wilson", "wilson_dagger", "wilson_normal", "clover", "clover_dagger", "twisted"]
lattice = ["4x4x4x4", "8x4x4x4", "8x8x8x8", "16x8x8x8", "16x16x16x16"]
dtype = ["float32", "float64"]
batch = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28]
shards = [1, 2, 4]
target = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"]
"""
# Variants that the recipe lacks; each differs from the nearest artifact in one axis.
MISSES = (
    "wilson_hop-8x8x8x8-f64-b12", "twisted_dagger-8x8x8x8-f64-b12", "wilson-10x8x8x8-f64-b12", "wilson-8x8x8x10-f64-b12",
    "wilson-4x4x4x6-f64-b12", "wilson-8x8x8x8-f64-b13", "wilson-8x8x8x8-f64-b64", "wilson-8x8x8x8-f64-b12-fused",
    "wilson-8x8x8x8-f64-b12-s8", "wilson-8x8x8x8-f64-store.float32-b12", "wilson-8x8x8x8-f64-b12-mass.0.1",
    "wilson-8x8x8x8-bf16-b12",
)  # fmt: skip
AXES = ("operator", "lattice", "batch", "fused", "shards", "storage", "baked")
# What one explained miss costs in a process that has done nothing else but import.
ONE_MISS = """
import sys, time
import lqcd_runtime, lqcd_runtime.bundle, lqcd_runtime.errors, lqcd_runtime.select, json, hashlib
from lqcd_runtime.target import this_host
from lqcd_aot.recipe.names import parse_name
spec = parse_name(sys.argv[2])[0]
this_host()
start = time.perf_counter()
try:
    with lqcd_runtime.open(sys.argv[1]) as bundle:
        bundle.select(spec)
except lqcd_runtime.errors.NoVariant as miss:
    print(time.perf_counter() - start, miss.nearest, *miss.differing)
"""


class Hasty(RealFileSystem):
    """Without synchronisation: made-up stores need not survive anything."""

    def fsync(self, handle: int) -> None:
        """Not wanted here."""

    def fsync_dir(self, path: str) -> None:
        """Not wanted here."""


def say(what: str, figure: str) -> None:
    print(f"{what:58s} {figure}", flush=True)


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """(wall seconds, processor seconds, result)."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def spread(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return f"p50 {1e3 * median(ordered):.3g} ms, p99 {1e3 * ordered[int(0.99 * (len(ordered) - 1))]:.3g} ms, n {len(ordered)}"


def rate(size: int, work: Callable[[], Any]) -> str:
    wall, cpu, _ = timed(work)
    return f"{size / wall / 1e9:.2f} GB/s ({size / 1e6:.0f} MB, wall {wall:.2f} s, processor {cpu:.2f} s)"


def child_seconds(*command: str) -> tuple[float, float, str]:
    """(wall, processor, output) of a process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True, timeout=60)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, done.stdout.strip()


def filled(folder: Path) -> Path:
    """A store with an artifact for every variant of RECIPE; what an earlier run made there is used again."""
    recipe, root = folder / "ten.toml", folder / "store"
    from lqcd_aot.build.job import new_record
    from lqcd_aot.build.plan import plan
    from lqcd_aot.compilers import find_toolchain
    from lqcd_aot.recipe import expand, load
    from lqcd_aot.store import open_store
    from lqcd_aot.store.inventory import read_again
    from lqcd_aot.store.verified import TICK_SECONDS

    recipe.write_text(RECIPE)
    store = open_store(root, create=True, fs=Hasty())
    dice = random.Random(1)
    items = plan(expand(load(recipe)), store, find_toolchain(None))
    for item in (item for item in items if item.decision != "reuse"):
        code = dice.randbytes(dice.randrange(30_000, 60_000))
        record = new_record(item, code, compile_ms=900)
        # As large as those of Dirac operators, and the same for every target of a spec.
        rows = random.Random(item.variant.spec.key).randbytes(850 * min(item.variant.spec.batch, 12)).hex()
        witness = {"schema": "lqcd-aot/witness/v2", "rows": [rows], "bound": "0x1p-20"}
        store.put_blob(code)
        store.publish({**record, "witness": witness, "witness_status": "passed"})
    time.sleep(TICK_SECONDS)  # younger files do not enter the journal
    read_again(store, [str(item.build_key) for item in items])
    return root


def publish(folder: Path) -> None:
    from lqcd_aot.store import open_store
    from tests.crash.records_for_tests import make_record

    dice, seconds = random.Random(2), []
    with tempfile.TemporaryDirectory(dir=folder) as made:
        store = open_store(Path(made) / "store", create=True)
        for number in range(400):
            code = dice.randbytes(50_000)
            record = make_record(f"{number}", code, spec=f"spec {number}")
            start = time.perf_counter()
            store.put_blob(code)
            store.publish(record)
            seconds.append(time.perf_counter() - start)
    say("durable publish of a new artifact (50 kB)", spread(seconds))


def plan(folder: Path) -> None:
    root = filled(folder)
    command = ("-m", "lqcd_aot.cli", "build", str(folder / "ten.toml"), "--store", str(root))
    child_seconds(*command)
    for _ in range(3):
        wall, cpu, out = child_seconds(*command)
        say("no-op build, the whole process", f"wall {wall:.2f} s, processor {cpu:.2f} s: {out.splitlines()[-1][:50]}")


def store(folder: Path) -> None:
    import lqcd_runtime
    from lqcd_aot.store import open_store

    root = filled(folder)
    opened = open_store(root)
    blobs = sorted(opened.blobs.stats())
    size = sum(opened.blobs.sizes().values())
    say("sha256 alone over the blobs", rate(size, lambda: [_hashed(opened.layout.blob(digest)) for digest in blobs]))
    say("store verify", rate(size, opened.verify))
    opened.verify(quick=True)
    say("store verify --quick, unchanged", rate(size, lambda: opened.verify(quick=True)))
    with lqcd_runtime.open(root) as source:
        say("the runtime's verify of the store", rate(size, source.verify))
    misses(root)


def _hashed(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def misses(path: Path) -> None:
    """Each in a process of its own, then all in one."""
    import lqcd_runtime
    from lqcd_aot.recipe.names import parse_name
    from lqcd_runtime.errors import NoVariant

    first, named = [], 0
    for name in MISSES:
        _, _, out = child_seconds("-c", ONE_MISS, str(path), name)
        seconds, _, *fields = out.split()
        first.append(float(seconds))
        named += fields in (*([axis] for axis in AXES), ["dtype", "storage"])
    what = "bundle" if path.suffix else "store"
    say(f"explained miss in a {what}, a new process each", f"{spread(first)}, largest {1e3 * max(first):.0f} ms")
    say("misses that name exactly the seeded field", f"{named} of {len(MISSES)}")
    later = []
    with lqcd_runtime.open(path) as source:
        for name in MISSES:
            start = time.perf_counter()
            try:
                source.select(parse_name(name)[0])
            except NoVariant:
                later.append(time.perf_counter() - start)
    say(f"explained miss in a {what}, one process", f"{spread(later)}, largest {1e3 * max(later):.0f} ms")


def bundle(folder: Path) -> None:
    import lqcd_runtime
    from lqcd_aot.ship.bundles import create, slim
    from lqcd_aot.ship.choose import Machine
    from lqcd_aot.store import open_store

    path = folder / "ten.lqcd"
    opened = open_store(filled(folder))
    wall, cpu, _ = timed(lambda: create(opened, path, name="ten"))
    say("bundle create, 10,080 entries", f"wall {wall:.2f} s, processor {cpu:.2f} s")
    size = path.stat().st_size
    say("sha256 alone over the file", rate(size, lambda: _hashed(str(path))))
    with lqcd_runtime.open(path) as source:
        say("verify of the bundle", rate(size, source.verify))
    resolve(path)
    misses(path)
    wall, cpu, facts = timed(lambda: slim(path, folder / "slim.lqcd", Machine("x86-64-v3")))
    say(f"bundle slim to {facts['count']} entries", f"wall {wall:.2f} s, processor {cpu:.2f} s")


def resolve(path: Path) -> None:
    import lqcd_runtime
    from lqcd_aot.recipe import expand, load
    from lqcd_runtime.target import this_host

    specs = sorted({v.spec for v in expand(load(path.parent / "ten.toml"))}, key=lambda spec: spec.key)
    random.Random(3).shuffle(specs)
    seconds, opens = [], [0]
    sys.addaudithook(lambda event, _: opens.__setitem__(0, opens[0] + (event in ("open", "os.listdir", "os.scandir"))))
    host = this_host()
    for spec in specs[:1000]:
        start = time.perf_counter()
        with lqcd_runtime.open(path) as source:
            source.select(spec, host)
        seconds.append(time.perf_counter() - start)
    say("open the bundle and resolve one of 10,080", f"{spread(seconds)}, {opens[0] / 1000:g} opens each")
    with lqcd_runtime.open(path) as source:
        source.select(specs[0], host)
        seconds = [timed(lambda spec=spec: source.select(spec, host))[0] for spec in specs[:1000]]  # type: ignore[misc]
    say("resolve one of 10,080 in an open bundle", spread(seconds))


def junk(count: int) -> Iterator[tuple[str, bytes]]:
    for number in range(count):
        data = f"bytes {number}".encode() * 20
        yield hashlib.sha256(data).hexdigest(), data


def collection(folder: Path) -> None:
    from lqcd_aot.store import open_store
    from lqcd_aot.store.gc import collect
    from lqcd_aot.store.gc_mark import Policy

    for share in (0, 1):
        with tempfile.TemporaryDirectory(dir=folder) as made:
            store = open_store(Path(made) / "store", create=True)
            for digest, data in junk(100_000):
                path = Path(store.layout.blob(digest))
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
            policy = Policy(grace_seconds=0 if share else 3600)
            wall, cpu, done = timed(lambda: collect(store, policy, now=time.time() + 10))  # noqa: B023 - called at once
            what = f"gc of 100,000 blobs, {len(done.swept)} go"
            say(what, f"wall {wall:.2f} s, processor {cpu:.2f} s")


SECTIONS = {"publish": publish, "plan": plan, "store": store, "bundle": bundle, "collection": collection}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--folder", type=Path, default=None, help="keeps the made-up store, 1.5 GB [default: a temporary one]")
    given = parser.parse_args()
    unknown = set(given.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as made:
        folder = (given.folder or Path(made)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for name in given.sections or SECTIONS:
            SECTIONS[name](folder)


if __name__ == "__main__":
    main()
