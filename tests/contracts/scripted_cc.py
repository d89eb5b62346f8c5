"""A compiler made of a shell script: answers the driver's questions, then behaves as the test wants.

Owns the script's form. The body sees the output file as $out and the folder of notes as $notes.
"""

from __future__ import annotations

import os
import platform
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

_SCRIPT = """#!/bin/sh
case "$1" in
  --version) echo "scripted gcc 1.0"; exit 0;;
  -dumpmachine) echo "{machine}-linux-gnu"; exit 0;;
  -print-prog-name=*) echo "$0"; exit 0;;
esac
notes="{notes}"
for word; do out="$word"; done
echo $$ >> "$notes/pids"
{body}
"""


@dataclass(frozen=True)
class Text:
    """The least a toolchain needs of a program."""

    source: str = "int answer() { return 42; }\n"
    digest: str = "0" * 64
    entry: str = "entry.cpp"
    constants: dict[str, str] = field(default_factory=dict)

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        return ((self.entry, self.source),)

    @property
    def defines(self) -> tuple[tuple[str, str], ...]:
        return (("LQCD_IDENTITY", '"thing@here"'), *self.constants.items())


def native_target() -> str:
    """A target that a compiler for this machine's architecture takes."""
    return {"x86_64": "x86-64-v2"}.get(platform.machine(), "aarch64")


def scripted_cc(folder: Path, body: str) -> Path:
    """An executable script in `folder`; what it notes goes to `folder` too."""
    path = folder / "scripted-g++"
    path.write_text(_SCRIPT.format(machine=platform.machine(), notes=folder, body=body))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def noted_pids(folder: Path, *, at_least: int) -> list[int]:
    """Process ids the script has noted, waiting until there are enough."""
    for _ in range(500):
        try:
            pids = [int(line) for line in (folder / "pids").read_text().split()]
        except FileNotFoundError:
            pids = []
        if len(pids) >= at_least:
            return pids
        time.sleep(0.02)
    raise AssertionError(f"the script noted {pids}, not {at_least} processes")


def still_running(pids: list[int], patience: float = 2.0) -> list[int]:
    """Those of `pids` that run on after `patience` seconds; a zombie that nobody reaps does not run."""
    deadline = time.monotonic() + patience
    while alive := [pid for pid in pids if _runs(pid)]:
        if time.monotonic() > deadline:
            return alive
        time.sleep(0.02)
    return []


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state not in "ZX"
