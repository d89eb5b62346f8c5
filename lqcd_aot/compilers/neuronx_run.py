"""One run of a `neuronx-cc compile` command line, the real program's or its double's, in a private folder.

Owns files and their names in that folder, the environment, and the translation of a failure. The compiler writes logs and
temporaries where it stands, so it stands in the private folder. What the bytes must be is the caller's question.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lqcd_aot.compilers.base import ProgramHlo, private_folder
from lqcd_aot.compilers.failure import failure
from lqcd_aot.compilers.neuronx_errors import advice, classify_neuronx
from lqcd_aot.compilers.process import Ended, run_child
from lqcd_aot.settings import compiler_environment
from lqcd_runtime.errors import CompileError

MODEL, OUTPUT, LOGFILE = "model.hlo.pb", "model.neff", "log-neuron-cc.txt"
LONGEST_LOG = 1 << 18


def compile_hlo(
    compiler: str,
    command: Sequence[str],
    options: Sequence[str],
    program: ProgramHlo,
    target: str,
    *,
    timeout: float | None,
    workdir: str | os.PathLike[str] | None,
) -> bytes:
    """The bytes of the file the compiler wrote. command: its argument vector up to `compile`. Errors: CompileError."""
    subject = program.identity
    with private_folder(subject, workdir) as folder:
        (folder / MODEL).write_bytes(program.hlo)
        for sub in ("tmp", "home"):
            (folder / sub).mkdir()
        words = {
            **compiler_environment(), "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "LC_ALL": "C.UTF-8",
            "NEURON_PLATFORM_TARGET_OVERRIDE": target,
        }  # fmt: skip
        argv = [*command, "compile", MODEL, *options, f"--output={OUTPUT}", f"--logfile={LOGFILE}", "--verbose=info"]
        ended = run_child(argv, folder=folder, environment=words, log=folder / "console.txt", timeout=timeout)
        ended = _with_logfile(ended, folder / LOGFILE)
        failure_class = classify_neuronx(ended)
        if failure_class is not None:
            raise failure(subject, compiler, failure_class, ended, timeout, hint=advice(ended))
        return _output(subject, compiler, folder, ended)


def _with_logfile(ended: Ended, path: Path) -> Ended:
    """The end of the compiler's own log file behind what it printed, where it failed."""
    if ended.returncode == 0 or not path.is_file():
        return ended
    said = path.read_bytes()[-LONGEST_LOG:].decode("utf-8", "replace")
    return Ended(ended.returncode, f"{said}\n{ended.log}", ended.interrupted, ended.seconds)


def _output(subject: str, compiler: str, folder: Path, ended: Ended) -> bytes:
    made = folder / OUTPUT
    if made.is_file():
        return made.read_bytes()
    others = sorted(folder.rglob("*.neff"))
    if len(others) == 1:  # some releases put a hash into the name
        return others[0].read_bytes()
    raise CompileError(
        f"artifact {subject}: {compiler} reported success without making it", failure_class="unknown", log=ended.log,
        expected="one NEFF", found=f"{len(others)} files",
    )  # fmt: skip
