"""The pinned compiler: `zig c++` (clang and lld) out of the `ziglang` wheel, for every CPU target from any machine.

Owns the flags per target and the cache folders. compiler-rt and the libc stubs of a target are built once (3-5 s) into a shared
cache (settings.cache_dir), which zig guards with its own file locks; everything of a single compile is private to it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
from pathlib import Path

from lqcd_aot.compilers.base import (
    COMMON_FLAGS,
    FOLDER,
    SHARED_LIBRARY,
    AnyProgram,
    Artifact,
    as_text,
    compile_program,
    refuse,
)
from lqcd_aot.compilers.facts import Facts, file_facts
from lqcd_aot.settings import cache_dir, compiler_environment
from lqcd_runtime.digest import sha256_file
from lqcd_runtime.errors import CompileError
from lqcd_runtime.target import CPU_TARGETS

# glibc 2.17 (2012) is the oldest that aarch64 has; it makes an artifact load on every distribution in use.
_TRIPLES = {"x86_64": "x86_64-linux-gnu.2.17", "aarch64": "aarch64-linux-gnu.2.17"}
_MACHINE_FLAGS = {
    "x86-64-v2": ("-mcpu=x86_64_v2",),
    "x86-64-v3": ("-mcpu=x86_64_v3",),
    # Without the width clang splits 64-byte vectors in two halves on this level.
    "x86-64-v4": ("-mcpu=x86_64_v4", "-mprefer-vector-width=512"),
    "aarch64": ("-mcpu=generic",),
}


def find_zig() -> ZigToolchain | None:
    """The zig of the installed `ziglang` wheel, or None where the wheel is absent."""
    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(folder) / "zig"
        if os.access(binary, os.X_OK):
            return ZigToolchain(binary)
    return None


class ZigToolchain:
    """`zig c++` at a given path; see Toolchain for the contract."""

    name = "zig c++"

    def __init__(self, binary: Path) -> None:
        self.binary = binary

    def identity(self, target: str) -> dict[str, str]:
        """compiler, version, binary_sha256, library_sha256 (the wheel's digests of zig's headers and runtime sources)."""
        facts = file_facts("zig", self.binary, self._binary_facts)
        return {"compiler": self.name, **facts, "library_sha256": self._library_digest()}

    def refusal(self, target: str) -> str | None:
        return None if target in CPU_TARGETS else f"{target} is not a CPU target"

    def flags(self, target: str) -> tuple[str, ...]:
        reason = self.refusal(target)
        if reason is not None:
            raise refuse(self.name, target, reason)
        triple = _TRIPLES[CPU_TARGETS[target][0]]
        return ("-target", triple, *_MACHINE_FLAGS[target], *COMMON_FLAGS, "-nostdlib++", "-fno-sanitize=all")

    def compile(
        self, program: AnyProgram, target: str, *, timeout: float | None = None, workdir: str | os.PathLike[str] | None = None
    ) -> bytes:
        """As Toolchain.compile. A failure that is no verdict on the program is tried once more with a cache of its own: a shared
        cache that was damaged (killed machine, full disk) then costs seconds, not the build.
        """
        try:
            return self._compile(program, target, timeout, workdir, shared=True)
        except CompileError as error:
            if error.failure_class != "unknown":
                raise
        return self._compile(program, target, timeout, workdir, shared=False)

    def artifact(self, program: AnyProgram, code: bytes, target: str) -> Artifact:
        return SHARED_LIBRARY

    def memory(self, program: AnyProgram, target: str) -> int | None:
        return None

    def _compile(
        self, program: AnyProgram, target: str, timeout: float | None, workdir: str | os.PathLike[str] | None, *, shared: bool
    ) -> bytes:
        flags = self.flags(target)
        private = f"{FOLDER}/zig"
        return compile_program(
            self.name, [str(self.binary), "c++"], flags, as_text(program, self.name),
            machine=CPU_TARGETS[target][0], timeout=timeout, workdir=workdir,
            environment={
                "ZIG_LOCAL_CACHE_DIR": private,
                "ZIG_GLOBAL_CACHE_DIR": (_shared_cache() if shared else None) or private,
            },
        )  # fmt: skip

    def _binary_facts(self) -> Facts:
        done = subprocess.run([self.binary, "version"], capture_output=True, text=True, check=False, env=compiler_environment())
        if done.returncode != 0 or not done.stdout.strip():
            raise CompileError(
                "compiler zig: does not run on this machine", found=done.stderr.strip() or f"exit code {done.returncode}",
                hint="pip install --force-reinstall ziglang, or name another compiler with --cc",
            )  # fmt: skip
        return {"version": done.stdout.strip(), "binary_sha256": sha256_file(str(self.binary))[0]}

    def _library_digest(self) -> str:
        records = sorted(self.binary.parent.parent.glob("ziglang-*.dist-info/RECORD"))
        if len(records) != 1:
            return "not recorded"
        facts = file_facts("wheel", records[0], lambda: {"library_sha256": _digest_of_record(records[0])})
        return facts["library_sha256"]


def _digest_of_record(record: Path) -> str:
    """SHA-256 over the wheel's sorted `path,sha256=...,size` lines of ziglang/lib; an installer's own lines have no digest."""
    lines = record.read_text("utf-8").splitlines()
    ours = sorted(line for line in lines if line.startswith("ziglang/lib/") and ",sha256=" in line)
    return hashlib.sha256("\n".join(ours).encode()).hexdigest()


def _shared_cache() -> str | None:
    """The shared cache folder, or None where the user's cache folder cannot be written."""
    try:
        folder = cache_dir().absolute() / "zig"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return str(folder) if os.access(folder, os.W_OK) else None
