"""What every toolchain is (`Toolchain`), what it needs of a program (`ProgramText`), and the one way a compile is carried out.

Owns the private work folder of a compile: sources under their relative names, a temporary folder of its own, removed whatever
happens. Flags and identities are the business of one file per toolchain; what a program means is nobody's business here.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from lqcd_aot.compilers.failure import classify, failure
from lqcd_aot.compilers.process import Ended, run_child
from lqcd_aot.settings import compiler_environment
from lqcd_runtime.errors import CompileError

# Stands in `flags()` for the private folder: the path itself must not reach a key.
FOLDER = "{folder}"

# Understood alike by clang and gcc. No -ffast-math in any form: NaN and infinity must stay visible. Contraction to FMA is on.
# -fno-math-errno and -fno-trapping-math change no value; they let square roots and selects be vectorised.
COMMON_FLAGS = (
    "-std=c++20", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
    "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fvisibility=hidden", "-fvisibility-inlines-hidden",
    "-fno-stack-protector", "-fomit-frame-pointer", "-U_FORTIFY_SOURCE",
    "-fPIC", "-shared", "-g0", "-s", "-Wl,--build-id=none", "-Wl,-z,defs", f"-ffile-prefix-map={FOLDER}=.",
)  # fmt: skip


class AnyProgram(Protocol):
    """What every program has: the digest that stands for it in keys."""

    @property
    def digest(self) -> str: ...


@runtime_checkable
class ProgramText(AnyProgram, Protocol):
    """The part of a C++ program that a compiler sees (lqcd_aot.program.Program has it).

    files: (relative name, text); defines: (name, value) of preprocessor constants; entry: the name of the file to compile.
    """

    @property
    def files(self) -> Sequence[tuple[str, str]]: ...
    @property
    def defines(self) -> Sequence[tuple[str, str]]: ...
    @property
    def entry(self) -> str: ...


@runtime_checkable
class ProgramHlo(AnyProgram, Protocol):
    """The part of an HLO program that a compiler sees. hlo: serialised HloModuleProto; binding: what its parameters mean;
    identity: the variant's name, for messages."""

    @property
    def identity(self) -> str: ...
    @property
    def hlo(self) -> bytes: ...
    @property
    def binding(self) -> dict[str, Any]: ...


def as_text(program: AnyProgram, compiler: str) -> ProgramText:
    """The program as a C++ compiler takes it. Errors: CompileError for another kind of program."""
    if not isinstance(program, ProgramText):
        raise _other_form(program, compiler, "C++ files")
    return program


def as_hlo(program: AnyProgram, compiler: str) -> ProgramHlo:
    """The program as neuronx-cc takes it. Errors: CompileError for another kind of program."""
    if not isinstance(program, ProgramHlo):
        raise _other_form(program, compiler, "HLO with its binding")
    return program


def _other_form(program: AnyProgram, compiler: str, expected: str) -> CompileError:
    return CompileError(
        f"program {program.digest[:12]}: is not written for {compiler}", failure_class="deterministic",
        expected=expected, found=type(program).__name__,
    )  # fmt: skip


class Artifact(NamedTuple):
    """media_type: of the bytes; members: what else the record says of them, by name of the member."""

    media_type: str
    members: dict[str, Any]


SHARED_LIBRARY = Artifact("application/x-sharedlib", {})


@runtime_checkable
class Toolchain(Protocol):
    """Program -> bytes of an artifact, for the targets it does not refuse."""

    def refusal(self, target: str) -> str | None:
        """None where this toolchain compiles for the target, else one sentence why not."""

    def identity(self, target: str) -> dict[str, str]:
        """Named components that say by content which compiler makes the bytes for a target; no path, no time, no compile."""

    def flags(self, target: str) -> tuple[str, ...]:
        """Every flag that reaches the compiler; `{folder}` stands for the private work folder. Errors: CompileError."""

    def compile(
        self, program: AnyProgram, target: str, *, timeout: float | None = None, workdir: str | os.PathLike[str] | None = None
    ) -> bytes:
        """The artifact. timeout: seconds; workdir: folder to make the private folder in (None: the system's temporary one).

        Errors: CompileError with `failure_class` and `log`; KeyboardInterrupt passes through. Nothing is left behind either way.
        """

    def artifact(self, program: AnyProgram, code: bytes, target: str) -> Artifact:
        """What a record says of the bytes that `compile` returned."""

    def memory(self, program: AnyProgram, target: str) -> int | None:
        """Bytes one compile is guessed to take, where the toolchain knows better than the recipe's reservation; else None."""


def subject_of(program: AnyProgram) -> str:
    """The name of what is compiled, for messages: its LQCD_IDENTITY where it has one, else its digest."""
    defines = program.defines if isinstance(program, ProgramText) else ()
    identity = dict(defines).get("LQCD_IDENTITY", "").strip('"')
    return identity or f"program {program.digest[:12]}"


def refuse(
    compiler: str, target: str, reason: str, hint: str = "leave out --cc: the pinned zig compiles for every CPU target"
) -> CompileError:
    """The error for a target that a toolchain does not compile for."""
    return CompileError(
        f"target {target}: {compiler} cannot compile for it",
        failure_class="deterministic",
        found=reason,
        hint=hint,
    )


_EXHAUSTED = (errno.ENOMEM, errno.EAGAIN, errno.ENFILE, errno.EMFILE, errno.ENOSPC, errno.EDQUOT)


def compile_program(
    compiler: str,
    command: Sequence[str],
    flags: Sequence[str],
    program: ProgramText,
    *,
    machine: str,
    timeout: float | None,
    workdir: str | os.PathLike[str] | None,
    environment: Mapping[str, str],
) -> bytes:
    """Compile in a private folder and return the bytes of the shared library.

    command: the compiler's argument vector; machine: ELF architecture the result must have ("x86_64", "aarch64"); environment:
    added to the inherited few, `{folder}` replaced as in flags. Errors: CompileError (an OSError too: resource or unknown).
    """
    subject = subject_of(program)
    with private_folder(subject, workdir) as folder:
        ended = _run(command, flags, program, folder, environment, timeout)
        failure_class = classify(ended)
        if failure_class is not None:
            raise failure(subject, compiler, failure_class, ended, timeout)
        output = folder / "artifact.so"
        code = output.read_bytes() if output.exists() else b""
        check_elf(subject, compiler, code, machine, ended.log)
        return code


@contextmanager
def private_folder(subject: str, workdir: str | os.PathLike[str] | None) -> Iterator[Path]:
    """A folder for one compile, removed whatever happens. Errors: CompileError (resource or unknown) in place of any OSError."""
    folder: Path | None = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="compile-", dir=workdir)).resolve()
        yield folder
    except OSError as error:
        raise CompileError(
            f"artifact {subject}: cannot be compiled here",
            failure_class="resource" if error.errno in _EXHAUSTED else "unknown",
            log=str(error),
            found=str(error),
            hint="check the compiler's path and the space and permissions of the work folder",
        ) from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _run(
    command: Sequence[str],
    flags: Sequence[str],
    program: ProgramText,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float | None,
) -> Ended:
    source = folder / "source"
    for sub in (source, folder / "tmp"):
        sub.mkdir()
    for name, text in program.files:
        path = source / name
        if not path.resolve().is_relative_to(source):
            raise ValueError(f"program file {name!r} leaves its folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def place(word: str) -> str:
        return word.replace(FOLDER, str(folder))

    defines = [f"-D{name}={value}" for name, value in program.defines]
    argv = [*command, *map(place, flags), *defines, program.entry, "-o", "../artifact.so"]
    words = {**compiler_environment(), "HOME": str(folder), "TMPDIR": str(folder / "tmp"), "LC_ALL": "C"}
    words |= {name: place(value) for name, value in environment.items()}
    return run_child(argv, folder=source, environment=words, log=folder / "log", timeout=timeout)


_ELF_MACHINES = {"x86_64": 62, "aarch64": 183}


def check_elf(subject: str, compiler: str, code: bytes, machine: str, log: str) -> None:
    """Errors: CompileError(unknown) unless `code` is a 64-bit little-endian ELF shared object for `machine`."""
    found = "no file" if not code else "not an ELF shared object"
    if code[:6] == b"\x7fELF\x02\x01" and len(code) >= 64 and int.from_bytes(code[16:18], "little") == 3:
        number = int.from_bytes(code[18:20], "little")
        if number == _ELF_MACHINES[machine]:
            return
        found = f"ELF machine {number}"
    raise CompileError(
        f"artifact {subject}: {compiler} reported success without making it",
        failure_class="unknown",
        log=log,
        expected=f"an ELF shared object for {machine}",
        found=found,
    )
