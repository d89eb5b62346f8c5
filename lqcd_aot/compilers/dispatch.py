"""One toolchain per class of targets, behind the protocol of one: CPUs, NeuronCores, the simulator.

Owns the routing from target to toolchain, and the stand-in (`Absent`) for a compiler that is not here: a machine without AWS's
compiler builds its CPU targets all the same, and the reverse. Knows no flags.
"""

from __future__ import annotations

import os

from lqcd_aot.compilers.base import AnyProgram, Artifact, Toolchain
from lqcd_runtime.errors import CompileError
from lqcd_runtime.target import CPU_TARGETS, SIM_TARGET


class Absent:
    """In the place of a toolchain that is not here: refuses every target with the reason."""

    def __init__(self, reason: str, hint: str) -> None:
        self.reason, self.hint = reason, hint

    def refusal(self, target: str) -> str | None:
        return f"{self.reason}; {self.hint}"

    def identity(self, target: str) -> dict[str, str]:
        raise self._error(target)

    def flags(self, target: str) -> tuple[str, ...]:
        raise self._error(target)

    def compile(
        self, program: AnyProgram, target: str, *, timeout: float | None = None, workdir: str | os.PathLike[str] | None = None
    ) -> bytes:
        raise self._error(target)

    def artifact(self, program: AnyProgram, code: bytes, target: str) -> Artifact:
        raise self._error(target)

    def memory(self, program: AnyProgram, target: str) -> int | None:
        raise self._error(target)

    def _error(self, target: str) -> CompileError:
        return CompileError(f"target {target}: there is no compiler for it here", found=self.reason, hint=self.hint)


class Toolchains:
    """Toolchains by class of target; see Toolchain for the contract. cpu, neuron, sim: each may be an `Absent`."""

    def __init__(self, cpu: Toolchain, neuron: Toolchain, sim: Toolchain) -> None:
        self.cpu, self.neuron, self.sim = cpu, neuron, sim

    def of(self, target: str) -> Toolchain:
        """The toolchain that is asked about a target."""
        if target in CPU_TARGETS:
            return self.cpu
        return self.sim if target == SIM_TARGET else self.neuron

    def refusal(self, target: str) -> str | None:
        return self.of(target).refusal(target)

    def identity(self, target: str) -> dict[str, str]:
        return self.of(target).identity(target)

    def flags(self, target: str) -> tuple[str, ...]:
        return self.of(target).flags(target)

    def compile(
        self, program: AnyProgram, target: str, *, timeout: float | None = None, workdir: str | os.PathLike[str] | None = None
    ) -> bytes:
        return self.of(target).compile(program, target, timeout=timeout, workdir=workdir)

    def artifact(self, program: AnyProgram, code: bytes, target: str) -> Artifact:
        return self.of(target).artifact(program, code, target)

    def memory(self, program: AnyProgram, target: str) -> int | None:
        return self.of(target).memory(program, target)
