"""Builds with a fake compiler, in this process or in forked ones: what the crash tests drive.

Forked children cost a few milliseconds where a fresh interpreter costs half a second on a busy machine; they end by os._exit.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lqcd_aot.build.check import Checked
from lqcd_aot.build.execute import build
from lqcd_aot.build.job import Result
from lqcd_aot.build.plan import PlanItem, plan
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.program import Program
from lqcd_aot.recipe.variant import Variant
from lqcd_aot.store import Record, Store, open_store
from lqcd_runtime.signature import Spec


class NoCheck:
    """A checker for bytes that are no machine code."""

    def check(self, spec: Spec, record: Record, code: bytes, timeout: float) -> Checked:
        return Checked(None, "unchecked: bytes of a test", "bytes of a test")

    def interrupt(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing was opened."""


def some_variants(count: int, **parameters: Any) -> list[Variant]:
    """`count` Wilson variants that differ in their batch."""
    return [Variant(Spec("wilson", (4, 4, 4, 4), batch=1 + i), "x86-64-v3", **parameters) for i in range(count)]


def fake_program(spec: Spec, target: str) -> Program:
    """A program of no text: the fake compiler only hashes it."""
    return Program((("x.cpp", "// nothing\n"),), (("LQCD_IDENTITY", f'"{spec.name}@{target}"'),), "x.cpp")


def planned(variants: list[Variant], store: Store, toolchain: FakeToolchain, **options: Any) -> list[PlanItem]:
    return plan(variants, store, toolchain, program_for=fake_program, **options)


def fake_build(root: Path, toolchain: FakeToolchain, count: int, **options: Any) -> list[Result]:
    """Open, plan, build: what `lqcd-aot build` does."""
    store = open_store(root, create=True)
    items = planned(some_variants(count), store, toolchain)
    return build(items, store, toolchain, **{"jobs": 2, "checker": NoCheck(), **options})


def fork(work: Callable[[], object]) -> int:
    """Run `work` in a child; its process id. Exit code 0, or 1 with the traceback on standard error."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def exit_code(pid: int) -> int:
    """Wait for a child: exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
