"""The double of neuronx-cc as an executable on disk, found and driven like the real one; and small programs to give it.

Owns the executable's form and the journal of its compiles. A script (lqcd_aot.doubles.script) says what it shall do.
"""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

from lqcd_aot.program import program_for
from lqcd_runtime.signature import Spec

SPEC = Spec("wilson", (4, 2, 2, 2), "float32")


def double(folder: Path, **script: Any) -> Path:
    """`neuronx-cc` in a folder of its own below `folder`, following a script; the journal is beside it."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    said = folder / "script.json"
    said.write_text(json.dumps({"output": "neff", **script}), encoding="utf-8")
    path = bin_folder / "neuronx-cc"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lqcd_aot.doubles.neuronx_cc --script "{said}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def journal(folder: Path) -> list[list[Any]]:
    """[process id, argument, ...] of each compile so far."""
    path = folder / "script.json.journal"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def program(target: str = "trn1", spec: Spec = SPEC) -> Any:
    """A real HLO program."""
    return program_for(spec, target)
