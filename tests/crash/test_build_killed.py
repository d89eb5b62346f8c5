"""kill -9 anywhere in a build: the store stays sound, and the next build completes it."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.store import open_store
from tests.crash.fake_build import exit_code, fake_build, fork

KILLS = 50
MOST_ROUNDS = 10 * KILLS
VARIANTS = 6


def test_kill_9_at_random_points_fifty_times(tmp_path: Path) -> None:
    """Each round builds anew (another compiler version, so other keys), is killed, verified, and completed by the next build."""
    root = tmp_path / "store"
    fake_build(root, FakeToolchain("first"), VARIANTS)
    started = time.monotonic()
    fake_build(root, FakeToolchain("second", delay=0.002), VARIANTS)
    whole = time.monotonic() - started
    chance = random.Random(20261130)
    killed = rounds = 0
    while killed < KILLS:
        rounds += 1
        assert rounds <= MOST_ROUNDS, f"only {killed} builds could be killed before they were done"
        toolchain = FakeToolchain(str(rounds), delay=0.002)
        pid = fork(lambda toolchain=toolchain: fake_build(root, toolchain, VARIANTS))
        time.sleep(chance.uniform(0, whole))
        os.kill(pid, signal.SIGKILL)
        killed += exit_code(pid) == -signal.SIGKILL
        assert open_store(root).verify().problems == (), f"round {rounds}"
        results = fake_build(root, toolchain, VARIANTS)
        assert [r.outcome in ("built", "reused") for r in results] == [True] * VARIANTS, f"round {rounds}"
    store = open_store(root)
    report = store.verify()
    assert (report.problems, report.records) == ((), (rounds + 2) * VARIANTS)
    assert len(store.list_build_keys()) == report.records
    assert report.temporaries == 0, "the builds after a kill removed what the dead left in tmp/"
    print(f"{killed} builds killed in {rounds} rounds")


def test_a_dead_builders_lease_is_passed_over_at_once(tmp_path: Path) -> None:
    """C14: the lease of a killed process on this host holds nobody up, although it has an hour to run."""
    store = open_store(tmp_path, create=True)
    key = "ab" * 32

    def hold() -> None:
        assert open_store(tmp_path).lease(key, seconds=3600) is not None
        os.kill(os.getpid(), signal.SIGKILL)

    assert exit_code(fork(hold)) == -signal.SIGKILL
    assert store.leases.holder(key) is not None
    lease = store.lease(key, seconds=1)
    assert lease is not None
    assert lease.is_held
