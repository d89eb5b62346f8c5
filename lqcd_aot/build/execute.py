"""Builds what a plan says, in parallel, into a store that others may be building into as well.

Owns: who goes first (builders of fused blocks before the operators that are checked with them), retries, results in the order
of the plan, the end by Ctrl-C. A plan without anything to build writes nothing, loads no compiler and no torch.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lqcd_aot.build.check import Checker, WitnessChecker
from lqcd_aot.build.events import Observer, Progress
from lqcd_aot.build.job import Builder, Result
from lqcd_aot.build.plan import PlanItem
from lqcd_aot.build.pool import Answer, Pool, available_memory
from lqcd_aot.store import Store
from lqcd_aot.store.inventory import read_again

if TYPE_CHECKING:
    from lqcd_aot.compilers import Toolchain

# A compile that ran out of memory, disk or processes is tried again alone, this many times.
RETRIES = 2


def build(
    items: Sequence[PlanItem],
    store: Store,
    toolchain: Toolchain | None,
    *,
    jobs: int | None = None,
    observer: Observer | None = None,
    checker: Checker | None = None,
    memory: int | None = None,
    workdir: Path | None = None,
) -> list[Result]:
    """Build every item whose decision is "build"; one result per item, in order.

    toolchain: may be None where nothing is to be built. jobs: compiles at once (None: as many as processors); memory: bytes they
    share (None: what is free now); workdir: folder for the compiles' private folders (None: the system's). checker: None for the
    witness. A variant that fails is a result, not an exception.
    Errors: StoreError (a full or read-only store: the build stops, what was published stays), KeyboardInterrupt (compiles are
    killed, nothing is recorded as failed).
    """
    todo = [item for item in items if item.decision == "build"]
    jobs = jobs or os.cpu_count() or 1
    progress = Progress(len(items), jobs, {i.variant.name: i.estimate for i in todo}, observer)
    results: dict[int, Result] = {}
    for item in items:
        if item.decision != "build":
            results[id(item)] = _settled(item, store, progress)
    if todo:
        assert toolchain is not None, "a plan with something to build was made with a toolchain"
        store.check_writable()
        store.sweep_temporaries()
        used = checker or WitnessChecker(store)
        try:
            builder = Builder(store, toolchain, used, progress, workdir)
            _Run(builder, used, progress, results, jobs, memory or available_memory()).all(todo)
            read_again(store, [str(result.item.build_key) for result in results.values()])
        finally:
            used.close()
    return [results[id(item)] for item in items]


def _settled(item: PlanItem, store: Store, progress: Progress) -> Result:
    name = item.variant.name
    if item.decision == "blocked":
        progress.tell("blocked", name, item.reason)
        return Result(item, "blocked")
    progress.tell("reused", name)
    return Result(item, "reused")


class _Run:
    """One build: its tasks, what became of them, what is tried again."""

    def __init__(
        self, builder: Builder, checker: Checker, progress: Progress, results: dict[int, Result], jobs: int, memory: int
    ) -> None:
        self._builder, self._checker, self._progress, self._results = builder, checker, progress, results
        self._jobs, self._memory = jobs, memory
        self._waiting: set[int] = set()
        self._again: list[PlanItem] = []
        self._attempts: dict[int, int] = {}

    def all(self, todo: list[PlanItem]) -> None:
        first = [item for item in todo if item.variant.spec.kind == "builder"]
        rest = [item for item in todo if item.variant.spec.kind != "builder"]
        for group in (first, rest):
            self._pass(group, self._jobs)
            for _ in range(RETRIES):
                again, self._again = self._again, []
                for item in again:
                    self._progress.tell("retrying", item.variant.name, "alone, after running out of memory, disk or processes")
                self._pass(again, 1)
            self._give_up()

    def _pass(self, group: list[PlanItem], jobs: int) -> None:
        if group:
            pool = Pool(jobs, lambda item: item.variant.memory_bytes, self._memory, self._one)
            pool.run(group, self._interrupt)

    def _interrupt(self) -> None:
        from lqcd_aot.compilers import interrupt_all

        interrupt_all()
        self._checker.interrupt()

    def _one(self, item: PlanItem) -> Answer:
        attempt = self._attempts.get(id(item), 0) + 1
        result = self._builder.build(item, attempt)
        if result is None:
            if id(item) not in self._waiting:
                self._waiting.add(id(item))
                self._progress.tell("waiting", item.variant.name, "another process builds it")
            return "busy"
        self._attempts[id(item)] = attempt
        self._results[id(item)] = result
        if result.outcome == "failed":
            if result.failure_class == "resource":
                self._again.append(item)
            else:
                self._builder.finish_failed(result)
        return "done"

    def _give_up(self) -> None:
        for item in self._again:
            self._builder.finish_failed(self._results[id(item)])
        self._again = []
