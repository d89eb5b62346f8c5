"""Rebuild and compare: equal bytes pass, other bytes are recorded, what cannot be compared is said; the log of builds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lqcd_aot.build import event_log
from lqcd_aot.build.event_log import EventLog, parse_log, read_logs
from lqcd_aot.build.events import Event
from lqcd_aot.build.rebuild import rebuild
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.store import Store, open_store
from tests.contracts.test_ship import built, variants
from tests.crash.fake_build import planned


class Unstable(FakeToolchain):
    """Like the fake compiler, but for the named variants it adds a byte: a compiler that is not reproducible."""

    def __init__(self, *unstable: str, **options: Any) -> None:
        super().__init__(**options)
        self.unstable = unstable

    def compile(self, program: Any, target: str, **options: Any) -> bytes:
        code = super().compile(program, target, **options)
        identity: Mapping[str, str] = dict(program.defines)
        return code + b"!" if identity["LQCD_IDENTITY"].strip('"') in self.unstable else code


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return built(tmp_path / "store", variants(("x86-64-v3",)))


def test_equal_bytes_leave_nothing_behind(store: Store) -> None:
    before = sorted(p.name for p in Path(store.root).rglob("*"))
    results = rebuild(planned(variants(("x86-64-v3",)), store, FakeToolchain()), store, FakeToolchain(), jobs=2)
    assert [r.outcome for r in results] == ["equal"] * 3
    assert not any(r.is_bad for r in results)
    assert sorted(p.name for p in Path(store.root).rglob("*")) == before


def test_other_bytes_are_recorded_and_the_first_stay(store: Store) -> None:
    wanted = variants(("x86-64-v3",))
    records = {k: store.record(k) for k in store.list_build_keys()}
    seen: list[str] = []
    compiler = Unstable(wanted[1].name)
    items = planned(wanted, store, compiler)
    results = rebuild(items, store, compiler, observer=lambda r: seen.append(r.name))
    assert [r.outcome for r in results] == ["equal", "diverged", "equal"]
    assert results[1].is_bad and sorted(seen) == sorted(v.name for v in wanted)
    assert {k: store.record(k) for k in store.list_build_keys()} == records
    (divergence,) = store.records.divergences()
    assert divergence.startswith(results[1].build_key)
    rebuild(items, store, compiler)
    assert store.records.divergences() == [divergence]  # the same other bytes are one divergence
    assert store.verify().is_sound


def test_what_cannot_be_compared_is_said(store: Store) -> None:
    wanted = variants(("x86-64-v3", "x86-64-v2"))
    newer = FakeToolchain(version="2")
    assert {r.outcome for r in rebuild(planned(wanted, store, newer), store, newer)} == {"absent"}
    key = store.list_build_keys()[0]
    record = store.record(key)
    assert record is not None
    (item,) = [
        i for i in planned(wanted, store, newer) if i.spec_key == record["spec_key"] and i.variant.target == record["target"]
    ]
    (result,) = rebuild([item], store, newer, expected=key)
    assert (result.outcome, result.build_key) == ("changed", key)
    assert result.detail == "compiler version 1 -> 2"


def test_an_artifact_that_does_not_compile_any_more_is_bad(store: Store) -> None:
    wanted = variants(("x86-64-v3",))
    failing = FakeToolchain(failures={v.name: ["deterministic"] for v in wanted})
    results = rebuild(planned(wanted, store, failing), store, failing)
    assert {r.outcome for r in results} == {"failed"} and all(r.is_bad for r in results)


def test_the_log_of_a_build_can_be_read_back(tmp_path: Path) -> None:
    store = open_store(tmp_path, create=True)
    log = EventLog("r", 4)
    for kind, name in (("reused", "a"), ("started", "b"), ("published", "b"), ("failed", "c"), ("blocked", "d")):
        log.observe(Event(kind, name, 0, 4, None, f"{name} detail"))  # type: ignore[arg-type]
    assert log.write(store)
    (build,) = read_logs(store)
    assert (build.recipe, build.variants) == ("r", 4)
    assert build.outcomes == {"reused": 1, "published": 1, "failed": 1, "blocked": 1}
    assert build.failures == (("c", "c detail"),)
    # Cut off before its last line, it tells the same of what it saw but for what was reused.
    (file,) = (tmp_path / "events").iterdir()
    cut = b"".join(file.read_bytes().splitlines(keepends=True)[:-1])
    assert parse_log(cut).outcomes == {"published": 1, "failed": 1, "blocked": 1}
    assert parse_log(cut).seconds is None
    file.chmod(0o644)
    file.write_bytes(b"nonsense")
    assert list(read_logs(store)) == []


def test_a_store_that_cannot_be_written_loses_its_log_without_an_error(tmp_path: Path) -> None:
    store = open_store(tmp_path, create=True)
    log = EventLog("r", 1)
    assert not log.write(store)  # nothing was seen
    log.observe(Event("published", "a", 1, 1, 0.0, ""))
    (tmp_path / "events").write_bytes(b"a file where the folder should be")
    assert not log.write(store)


def test_builds_that_only_reused_are_logged_in_few_bytes_and_the_newest_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "KEPT", 3)
    store = open_store(tmp_path, create=True)
    for count in range(1, 6):
        monkeypatch.setattr(time, "time", lambda count=count: 1e9 + count)
        log = EventLog("r", 10_000)
        for _ in range(10_000):
            log.observe(Event("reused", "a", 1, 1, 0.0, ""))
        assert log.write(store)
    builds = list(read_logs(store))
    assert [b.outcomes for b in builds] == [{"reused": 10_000}] * 3
    assert [b.started[-3:] for b in builds] == ["43Z", "44Z", "45Z"]  # 1e9 seconds are 01:46:40
    assert all(file.stat().st_size < 300 for file in (tmp_path / "events").iterdir())
