"""Another compiler by its path (`--cc`): clang++ or g++, for the architecture it was made for.

Owns the flags of the two families and how their identity is found. A cross compiler (aarch64-linux-gnu-g++) is known by
`-dumpmachine`; any other architecture is refused with the reason. The artifact then needs the C library of this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from lqcd_aot.compilers.base import (
    COMMON_FLAGS,
    SHARED_LIBRARY,
    AnyProgram,
    Artifact,
    as_text,
    compile_program,
    refuse,
)
from lqcd_aot.compilers.facts import Facts, file_facts
from lqcd_aot.settings import compiler_environment
from lqcd_runtime.digest import sha256_file
from lqcd_runtime.errors import CompileError
from lqcd_runtime.target import CPU_TARGETS

_ARCHITECTURES = {"arm64": "aarch64", "amd64": "x86_64"}
_MACHINE_FLAGS = {
    "x86-64-v2": ("-march=x86-64-v2",),
    "x86-64-v3": ("-march=x86-64-v3",),
    "x86-64-v4": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
    "aarch64": ("-march=armv8-a",),
}
_FAMILY_FLAGS = {
    "clang": ("-nostdlib++",),
    # gcc < 13 has no -nostdlib++: libraries without a used symbol are dropped instead. The seed makes generated names repeatable.
    "gcc": ("-Wl,--as-needed", "-static-libgcc", "-frandom-seed=lqcd", "-Wno-psabi"),
}
# Programs that make the bytes besides the driver; each one's digest is part of the identity.
_HELPERS = {"gcc": ("cc1plus", "as", "ld"), "clang": ("ld",)}


def find_cc(cc: str) -> CcToolchain:
    """The compiler named on the command line: a path, or a name on PATH. Errors: CompileError where there is none."""
    found = shutil.which(cc, path=compiler_environment().get("PATH"))
    if found is None:
        raise CompileError(
            f"compiler {cc!r}: is not an executable file",
            found="nothing of that name" if not Path(cc).exists() else "a file that cannot be executed",
            hint="pip install ziglang and leave out --cc, or name a compiler: --cc /usr/bin/g++",
        )
    return CcToolchain(Path(found).absolute())


def _digest(path: Path) -> str:
    return file_facts("digest", path, lambda: {"sha256": sha256_file(str(path))[0]})["sha256"]


class CcToolchain:
    """clang++ or g++ at a given path; see Toolchain for the contract."""

    def __init__(self, binary: Path) -> None:
        self.binary = binary

    def identity(self, target: str) -> dict[str, str]:
        """compiler (family), version, machine, binary_sha256, and <helper>_sha256 of the programs the driver calls."""
        facts = self._facts()
        out = {"compiler": facts["family"], **{k: facts[k] for k in ("version", "machine", "binary_sha256")}}
        for helper in _HELPERS[facts["family"]]:
            out[f"{helper}_sha256"] = _digest(Path(facts[f"path_{helper}"]))
        return out

    def refusal(self, target: str) -> str | None:
        if target not in CPU_TARGETS:
            return f"{target} is not a CPU target"
        machine = self._facts()["machine"].partition("-")[0]
        machine = _ARCHITECTURES.get(machine, machine)
        needed = CPU_TARGETS[target][0]
        return None if machine == needed else f"{self.binary.name} compiles for {machine}, {target} needs {needed}"

    def flags(self, target: str) -> tuple[str, ...]:
        reason = self.refusal(target)
        if reason is not None:
            raise refuse(self.binary.name, target, reason)
        return (*_MACHINE_FLAGS[target], *COMMON_FLAGS, *_FAMILY_FLAGS[self._facts()["family"]])

    def compile(
        self, program: AnyProgram, target: str, *, timeout: float | None = None, workdir: str | os.PathLike[str] | None = None
    ) -> bytes:
        return compile_program(
            self.binary.name, [str(self.binary)], self.flags(target), as_text(program, self.binary.name),
            machine=CPU_TARGETS[target][0], timeout=timeout, workdir=workdir, environment={},
        )  # fmt: skip

    def artifact(self, program: AnyProgram, code: bytes, target: str) -> Artifact:
        return SHARED_LIBRARY

    def memory(self, program: AnyProgram, target: str) -> int | None:
        return None

    def _facts(self) -> Facts:
        return file_facts("c++", self.binary.resolve(), self._ask)

    def _ask(self) -> Facts:
        version = self._output("--version").splitlines()[0]
        family = "clang" if "clang" in version.lower() else "gcc"
        facts = {
            "family": family,
            "version": version,
            "machine": self._output("-dumpmachine"),
            "binary_sha256": sha256_file(str(self.binary))[0],
        }
        for helper in _HELPERS[family]:
            path = shutil.which(self._output(f"-print-prog-name={helper}"), path=compiler_environment().get("PATH"))
            if path is None:
                raise self._unusable(f"it names no {helper}")
            facts[f"path_{helper}"] = str(Path(path).resolve())
        return facts

    def _output(self, argument: str) -> str:
        try:
            done = subprocess.run(
                [self.binary, argument], capture_output=True, text=True, check=False, timeout=30,
                env={**compiler_environment(), "LC_ALL": "C"},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._unusable(str(error)) from error
        if done.returncode != 0 or not done.stdout.strip():
            raise self._unusable(f"{argument} gave exit code {done.returncode} and {done.stdout.strip()!r}")
        return done.stdout.strip()

    def _unusable(self, found: str) -> CompileError:
        return CompileError(
            f"compiler {self.binary}: does not behave like clang++ or g++", found=found,
            hint="name a C++ compiler with --cc, or leave it out to use the pinned zig",
        )  # fmt: skip
