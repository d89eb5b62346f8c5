"""Compile again what is in the store, and compare the bytes: does the same key still give the same artifact?

Owns the comparison and what is said of it. The store is never changed by it but for a recorded divergence (both digests, and the
other bytes as a blob), which `store stats` counts and `report` shows. For Neuron targets only the program is promised to be
equal: a NEFF carries a random id, so other bytes there are told and not recorded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lqcd_aot.build.explain import sentence
from lqcd_aot.build.job import new_record
from lqcd_aot.keys import differences
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CompileError
from lqcd_runtime.target import NEURON_TARGETS

if TYPE_CHECKING:
    from lqcd_aot.build.plan import PlanItem
    from lqcd_aot.compilers import Toolchain
    from lqcd_aot.store import Record, Store

Outcome = Literal["equal", "diverged", "other bytes", "changed", "absent", "failed"]


class Rebuilt(NamedTuple):
    """What became of one artifact.

    outcome: equal; diverged (other bytes under the same key, recorded); other bytes (of a Neuron target, under the same key and
    program); changed (this machine would build it under another key, so nothing can be compared); absent (not in the store);
    failed (it does not compile any more). detail: one sentence or "".
    """

    name: str
    build_key: str
    outcome: Outcome
    detail: str

    @property
    def is_bad(self) -> bool:
        """Whether reproducibility was disproved."""
        return self.outcome in ("diverged", "failed")


def rebuild(
    items: Sequence[PlanItem],
    store: Store,
    toolchain: Toolchain,
    *,
    expected: str | None = None,
    jobs: int | None = None,
    observer: Callable[[Rebuilt], None] | None = None,
) -> list[Rebuilt]:
    """Compile every item again that the store has, and compare. Results in the order of the items.

    expected: the build key that a single item must have, as its record in the store says. Errors: StoreError, KeyboardInterrupt.
    """
    from lqcd_aot.compilers import interrupt_all

    def one(item: PlanItem) -> Rebuilt:
        done = _one(item, store, toolchain, expected)
        if observer is not None:
            observer(done)
        return done

    pool = ThreadPoolExecutor(jobs or os.cpu_count() or 1)
    try:
        return list(pool.map(one, items))
    except KeyboardInterrupt:
        interrupt_all()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _one(item: PlanItem, store: Store, toolchain: Toolchain, expected: str | None) -> Rebuilt:
    name = item.variant.name
    if expected is not None and item.build_key != expected:
        return Rebuilt(name, expected, "changed", _changes(item, store.record(expected)))
    build_key = item.build_key or ""
    record = store.record(build_key) if build_key else None
    if record is None:
        return Rebuilt(name, build_key, "absent", item.reason)
    if item.key is None or item.program is None:
        return Rebuilt(name, build_key, "changed", item.reason)
    try:
        code = toolchain.compile(item.program, item.variant.target, timeout=item.variant.timeout_s)
    except CompileError as error:
        return Rebuilt(name, build_key, "failed", error.fact)
    kept = record["outputs"]["code"]["sha256"]
    found = sha256_hex(code)
    if found == kept:
        return Rebuilt(name, build_key, "equal", "")
    detail = f"{len(code)} bytes {found[:16]}, the store has {record['outputs']['code']['size']} bytes {kept[:16]}"
    if item.variant.target in NEURON_TARGETS:
        return Rebuilt(name, build_key, "other bytes", detail)
    _record_divergence(item, record, code, store, toolchain)
    return Rebuilt(name, build_key, "diverged", detail)


def _record_divergence(item: PlanItem, record: Record, code: bytes, store: Store, toolchain: Toolchain) -> None:
    """Publishing other bytes under a taken key keeps the first and records the second: that is what the store does."""
    assert item.program is not None
    store.put_blob(code)
    made = toolchain.artifact(item.program, code, item.variant.target)
    again: dict[str, Any] = new_record(item, code, made, compile_ms=0)
    store.publish({**record, "outputs": again["outputs"], "provenance": {**record["provenance"], "rebuilt": True}})


def _changes(item: PlanItem, record: Record | None) -> str:
    if record is None or item.key is None:
        return item.reason
    changes = differences(record["components"], item.key.components)
    return "; ".join(sentence(change) for change in changes) or item.reason
