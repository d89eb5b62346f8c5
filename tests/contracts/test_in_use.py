"""What measuring verbs and the SDK build has no root: it stays while it is used, whoever uses it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.measure.ensure import Origin, build_missing
from lqcd_aot.neuron.artifacts import Artifacts
from lqcd_aot.store import Store, open_store
from lqcd_aot.store.gc import collect
from lqcd_aot.store.gc_mark import DAY, Policy
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host
from tests.crash.fake_build import fake_build, fake_program, some_variants
from tests.made import record

OLD = 40 * DAY


def aged(store: Store) -> None:
    for build_key in store.records.all_keys():
        path = Path(store.layout.entry("records", build_key))
        os.utime(path, (time.time() - OLD, time.time() - OLD))


def test_what_a_measurement_uses_stays(tmp_path: Path) -> None:
    """It opens and selects as before; nothing is compiled."""
    store = open_store(tmp_path / "store", create=True)
    target = this_host().best_target()
    assert target is not None
    used, unused = (Spec("wilson", (4, 4, 4, 4), batch=batch) for batch in (1, 2))
    for spec in (used, unused):
        store.put_blob(b"code")
        store.publish(record(spec, target, b"code"))
    aged(store)
    build_missing([used], Origin(None, tmp_path / "store"), pytest.fail)
    assert set(collect(store, Policy()).evicted) == {record(unused, target, b"code")["build_key"]}


def test_what_the_sdk_uses_stays(tmp_path: Path) -> None:
    fake_build(tmp_path / "store", FakeToolchain(), 2)
    store = open_store(tmp_path / "store")
    aged(store)
    said: list[str] = []
    artifacts = Artifacts(tmp_path / "store", "x86-64-v3", FakeToolchain(), said.append, fake_program)
    (used, unused) = (variant.spec for variant in some_variants(2))
    artifacts.provide([used])
    assert said == []
    collect(store, Policy())
    assert set(store.records_of_spec(used.key)) == {"x86-64-v3"}
    assert store.records_of_spec(unused.key) == {}
