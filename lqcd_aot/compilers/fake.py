"""A compiler for tests: bytes that depend on program, flags, target and version, in microseconds; failures by script.

Owns the form of a fake artifact. It obeys the same contract suite as the real ones, except that its bytes are no machine code.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence

from lqcd_aot.compilers.base import SHARED_LIBRARY, AnyProgram, Artifact, refuse, subject_of
from lqcd_aot.compilers.failure import CLASSES
from lqcd_runtime.digest import canonical_json
from lqcd_runtime.errors import CompileError
from lqcd_runtime.target import CPU_TARGETS

MAGIC = b"lqcd-aot fake artifact\n"


class FakeToolchain:
    """Deterministic stand-in for a compiler.

    version: part of identity and bytes. failures: {subject: failure classes in order, one per attempt, then success}; the subject
    is the artifact's identity ("wilson-4x4x4x4-f64-b1@x86-64-v3") or "*" for any; the word "keyboard" raises KeyboardInterrupt.
    delay: seconds per compile (a delay above `timeout` is a timeout after `timeout` seconds). journal: a file that gets one line
    per compile, in one write, so that many processes can be counted together. `compiled`: the subjects this object compiled.
    """

    name = "fake"

    def __init__(
        self,
        version: str = "1",
        *,
        failures: Mapping[str, Sequence[str]] | None = None,
        delay: float = 0.0,
        journal: str | os.PathLike[str] | None = None,
    ) -> None:
        self.version = version
        self.delay = delay
        self.journal = journal
        self.compiled: list[str] = []
        self._failures = {subject: list(classes) for subject, classes in (failures or {}).items()}
        self._lock = threading.Lock()

    def identity(self, target: str) -> dict[str, str]:
        return {"compiler": self.name, "version": self.version}

    def artifact(self, program: AnyProgram, code: bytes, target: str) -> Artifact:
        return SHARED_LIBRARY

    def memory(self, program: AnyProgram, target: str) -> int | None:
        return None

    def refusal(self, target: str) -> str | None:
        return None if target in CPU_TARGETS else f"{target} is not a CPU target"

    def flags(self, target: str) -> tuple[str, ...]:
        reason = self.refusal(target)
        if reason is not None:
            raise refuse(self.name, target, reason)
        return ("-O3", f"-mcpu={target}")

    def compile(
        self, program: AnyProgram, target: str, *, timeout: float | None = None, workdir: str | os.PathLike[str] | None = None
    ) -> bytes:
        flags = self.flags(target)
        subject = subject_of(program)
        with self._lock:
            self.compiled.append(subject)
            scripted = self._failures.get(subject) or self._failures.get("*")
            planned = scripted.pop(0) if scripted else None
        if self.journal is not None:
            with open(self.journal, "ab", buffering=0) as f:
                f.write(f"{subject}\n".encode())
        if timeout is not None and self.delay > timeout:
            time.sleep(timeout)
            planned = "timeout"
        elif self.delay:
            time.sleep(self.delay)
        if planned == "keyboard":
            raise KeyboardInterrupt
        if planned is not None:
            assert planned in CLASSES, planned
            raise CompileError(f"artifact {subject}: scripted failure", failure_class=planned, log=f"scripted: {planned}\n")
        meaning = {"program": program.digest, "flags": list(flags), "target": target, "version": self.version}
        body: bytes = canonical_json(meaning)
        return MAGIC + body
