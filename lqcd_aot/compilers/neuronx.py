"""AWS's compiler for NeuronCores: found by running it, given every option explicitly, its NEFF checked.

Owns the search (PyPI holds placeholders of the same names, which have no program in them), the identity, the check of what came
out, and what a record says of a NEFF. Options are neuronx_options', error codes neuronx_errors', the run itself neuronx_run's.
Nothing here was ever run against the real compiler.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from lqcd_aot.compilers.base import AnyProgram, Artifact, as_hlo, refuse
from lqcd_aot.compilers.dispatch import Absent
from lqcd_aot.compilers.facts import Facts, file_facts
from lqcd_aot.compilers.neuronx_options import OLDEST, logical_cores, numbers, options, release_of
from lqcd_aot.compilers.neuronx_run import compile_hlo
from lqcd_aot.settings import compiler_environment
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CompileError, CorruptError, TooNewError
from lqcd_runtime.neff import MEDIA_TYPE, NeffHeader, parse_neff
from lqcd_runtime.target import NEURON_TARGETS

NAME = "neuronx-cc"
INDEX = "https://pip.repos.neuron.amazonaws.com"
INSTALL = f"pip install 'lqcd-aot[neuron]' --extra-index-url {INDEX}"
# What one compile may take of host memory is documented nowhere; public reports say tens of GiB for large graphs.
MEMORY_BASE, MEMORY_PER_INSTRUCTION = 4 << 30, 2 << 10
_BANNER = re.compile(r"(?:NeuronX Compiler version |^)(\d+\.\d+\.\d+(?:\.\d+)*(?:\+[0-9a-f]+)?)", re.MULTILINE)
_TARGETS = re.compile(r"\b(inf2|trn1n|trn1|trn2|trn3)\b")
_ASK_SECONDS = 120.0


def find_neuronx(path: str | None = None, optlevel: int = 2) -> NeuronxToolchain | Absent:
    """The neuronx-cc at `path` (or a name on PATH), or Absent with the reason where none was named and none is there.

    It is not run here. Errors: CompileError where one was named and is not an executable file.
    """
    found = shutil.which(path or NAME, path=compiler_environment().get("PATH"))
    if found is not None:
        return NeuronxToolchain(Path(found).absolute(), optlevel)
    if path is None:
        return Absent(why_absent(), INSTALL)
    raise CompileError(f"compiler {path!r}: is not an executable file", expected="neuronx-cc, or the word sim", hint=INSTALL)


def why_absent() -> str:
    """One sentence on why there is no neuronx-cc on PATH: never installed, or PyPI's placeholder."""
    try:
        version = metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return "neuronx-cc is not installed"
    if numbers(version) < (2, 0):
        return f"the neuronx-cc {version} installed here is PyPI's placeholder, which has no compiler in it"
    return f"the package neuronx-cc {version} is installed, but its program is not on PATH"


class NeuronxToolchain:
    """neuronx-cc at a given path; see Toolchain for the contract. optlevel: 1, 2 or 3."""

    def __init__(self, binary: Path, optlevel: int = 2) -> None:
        self.binary, self.optlevel = binary, optlevel

    def refusal(self, target: str) -> str | None:
        if target not in NEURON_TARGETS:
            return f"{target} is not a Neuron target"
        try:
            facts = self._facts()
        except CompileError as error:
            return f"{error.fact}: {error.found}"
        if numbers(facts["version"]) < OLDEST:
            return f"neuronx-cc {facts['version']} is older than {OLDEST[0]}.{OLDEST[1]}; {INSTALL}"
        if target not in facts["targets"].split():
            return f"neuronx-cc {facts['version']} compiles for {facts['targets']}"
        return None

    def identity(self, target: str) -> dict[str, str]:
        """compiler, version (with its git part) and package_sha256 (the wheel's digests of the compiler's files)."""
        return {"compiler": NAME, "version": self._facts()["version"], "package_sha256": self._package_digest()}

    def flags(self, target: str) -> tuple[str, ...]:
        reason = self.refusal(target)
        if reason is not None:
            raise refuse(NAME, target, reason, hint=INSTALL)
        return options(target, self._facts()["version"], self.optlevel)

    def compile(
        self, program: AnyProgram, target: str, *, timeout: float | None = None, workdir: str | os.PathLike[str] | None = None
    ) -> bytes:
        hlo = as_hlo(program, NAME)
        neff = compile_hlo(NAME, [str(self.binary)], self.flags(target), hlo, target, timeout=timeout, workdir=workdir)
        header = _header(neff, hlo.identity)
        if header.lnc not in (0, logical_cores(target)):
            raise CompileError(
                f"artifact {hlo.identity}: has another logical-core configuration than was asked for",
                expected=logical_cores(target), found=header.lnc,
            )  # fmt: skip
        return neff

    def artifact(self, program: AnyProgram, code: bytes, target: str) -> Artifact:
        """neff: what the header says, and what it does not: target, compiler and the oldest runtime known to load it."""
        version = self._facts()["version"]
        release = release_of(version)
        hlo = as_hlo(program, NAME)
        said = _header(code, hlo.identity).as_dict()
        neff = {
            **said, "target": target, "compiler": version, "sdk": release.sdk if release else None,
            "runtime_floor": release.runtime if release else None,
        }  # fmt: skip
        return Artifact(MEDIA_TYPE, {"binding": hlo.binding, "neff": neff})

    def memory(self, program: AnyProgram, target: str) -> int | None:
        """A guess: a base and a share per instruction of the estimate, where the program has one."""
        return MEMORY_BASE + MEMORY_PER_INSTRUCTION * instructions(program, target)

    def _facts(self) -> Facts:
        return file_facts(NAME, self.binary.resolve(), self._ask)

    def _ask(self) -> Facts:
        banner = self._output("--version")
        version = _BANNER.search(banner)
        if version is None:
            raise self._unusable(f"--version printed {banner[:200]!r}")
        targets = dict.fromkeys(_TARGETS.findall(self._output("compile", "--help")))
        return {"version": version[1], "targets": " ".join(targets) or "no target that its help names"}

    def _output(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                [self.binary, *arguments], capture_output=True, text=True, check=False, timeout=_ASK_SECONDS,
                stdin=subprocess.DEVNULL, env={**compiler_environment(), "LC_ALL": "C.UTF-8"},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._unusable(str(error)) from error
        if done.returncode != 0:
            raise self._unusable(f"{' '.join(arguments)} gave exit code {done.returncode} and {done.stderr.strip()[-200:]!r}")
        return f"{done.stdout}\n{done.stderr}"

    def _unusable(self, found: str) -> CompileError:
        return CompileError(f"compiler {self.binary.name}: does not behave like neuronx-cc", found=found, hint=INSTALL)

    def _package_digest(self) -> str:
        """The wheel's record stands beside the program's own environment; the program itself is a script that holds paths."""
        records = sorted(self.binary.resolve().parent.parent.glob("lib/python3*/site-packages/neuronx_cc-*.dist-info/RECORD"))
        if len(records) != 1:
            return "not recorded"
        return file_facts("wheel", records[0], lambda: {"sha256": _digest_of_record(records[0])})["sha256"]


def instructions(program: AnyProgram, target: str) -> int:
    """The program's own estimate of tensor-engine instructions, 0 where it has none."""
    estimate = getattr(program, "estimate", None)
    return int(estimate(target).instructions) if callable(estimate) else 0


def _header(neff: bytes, subject: str) -> NeffHeader:
    try:
        return parse_neff(neff, f"NEFF of {subject}")
    except (CorruptError, TooNewError) as error:
        raise CompileError(error.fact, expected=error.expected, found=error.found, hint=error.hint) from error


def _digest_of_record(record: Path) -> str:
    """SHA-256 over the sorted `path,sha256=...,size` lines of neuronxcc/; an installer's own lines have no digest."""
    lines = record.read_text("utf-8").splitlines()
    return sha256_hex("\n".join(sorted(line for line in lines if line.startswith("neuronxcc/") and ",sha256=" in line)).encode())
