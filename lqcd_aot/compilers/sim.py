"""The toolchain of the target `sim`: the double of neuronx-cc (lqcd_aot.doubles) behind the driver of the real one.

Owns its identity and what a record says of a NEFF-SIM. It refuses every target but `sim`, so that a simulated artifact can never
stand in the place of a real one.
"""

from __future__ import annotations

import os
import sys

from lqcd_aot.compilers.base import AnyProgram, Artifact, as_hlo, refuse
from lqcd_aot.compilers.neuronx_options import options
from lqcd_aot.compilers.neuronx_run import compile_hlo
from lqcd_aot.doubles.version import BANNER_VERSION
from lqcd_runtime.errors import CompileError, CorruptError, TooNewError
from lqcd_runtime.neff import SIM_MEDIA_TYPE, parse_sim
from lqcd_runtime.target import SIM_TARGET

NAME = "neuronx-cc double"
MEMORY = 512 << 20


class SimToolchain:
    """The double, run as a program of its own; see Toolchain for the contract. optlevel: as of the real one."""

    def __init__(self, optlevel: int = 2) -> None:
        self.optlevel = optlevel

    def refusal(self, target: str) -> str | None:
        return None if target == SIM_TARGET else f"the double of neuronx-cc builds only the target {SIM_TARGET}"

    def identity(self, target: str) -> dict[str, str]:
        return {"compiler": NAME, "version": BANNER_VERSION}

    def flags(self, target: str) -> tuple[str, ...]:
        reason = self.refusal(target)
        if reason is not None:
            raise refuse(NAME, target, reason, hint="leave out --compiler sim")
        return options(target, BANNER_VERSION, self.optlevel)

    def compile(
        self, program: AnyProgram, target: str, *, timeout: float | None = None, workdir: str | os.PathLike[str] | None = None
    ) -> bytes:
        hlo = as_hlo(program, NAME)
        command = [sys.executable, "-m", "lqcd_aot.doubles.neuronx_cc"]
        made = compile_hlo(NAME, command, self.flags(target), hlo, target, timeout=timeout, workdir=workdir)
        try:
            same = parse_sim(made).hlo == hlo.hlo
        except (CorruptError, TooNewError) as error:
            raise CompileError(error.fact, failure_class="unknown", found=error.found) from error
        if not same:
            raise CompileError(f"artifact {hlo.identity}: holds another program than was compiled")
        return made

    def artifact(self, program: AnyProgram, code: bytes, target: str) -> Artifact:
        """neff: the manifest of the container, which says that it is a simulation."""
        members = {"binding": as_hlo(program, NAME).binding, "neff": parse_sim(code).manifest}
        return Artifact(SIM_MEDIA_TYPE, members)

    def memory(self, program: AnyProgram, target: str) -> int | None:
        return MEMORY
