"""What a test wants the double to do, from a JSON file given by `--script FILE` before the command.

    {"version": "2.25.3371.0+0123abcd",          in place of the double's own
     "targets": ["inf2", "trn1"],                that --target accepts
     "output": "neff",                           a NEFF with a right header, no NEFF-SIM; or "none", "truncated", "renamed"
     "lnc": 1,                                   in the header, in place of what was asked for
     "attempts": [{"say": "...", "logfile": "...", "exit": 70, "signal": 9, "sleep": 5, "child": true}, ...]}

The n-th `compile` follows the n-th attempt; the attempts after the last succeed. `FILE.journal` gets one line per compile.
Owns reading and following it. The real program has nothing of this.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WORDS = {"version", "targets", "output", "lnc", "attempts"}


class Script:
    """A script file, or nothing to follow where `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._said: dict[str, Any] = json.loads(path.read_text("utf-8")) if path is not None else {}
        if surplus := set(self._said) - WORDS:
            raise SystemExit(f"script {path}: does not know {', '.join(sorted(surplus))}")

    def get(self, word: str, usual: Any) -> Any:
        """What the script says of a word, else the usual."""
        return self._said.get(word, usual)

    def follow(self, arguments: list[str], logfile: Path) -> None:
        """Note this compile and do what its attempt asks; returns where it shall go on."""
        if self._path is None:
            return
        journal = self._path.with_name(self._path.name + ".journal")
        with journal.open("ab", buffering=0) as f:
            f.write(json.dumps([os.getpid(), *arguments]).encode() + b"\n")
        number = len(journal.read_bytes().splitlines())
        attempts = self._said.get("attempts", [])
        if number > len(attempts):
            return
        self._obey(attempts[number - 1], logfile)

    def _obey(self, attempt: dict[str, Any], logfile: Path) -> None:
        sys.stderr.write(attempt.get("say", "") + "\n")
        sys.stderr.flush()
        if "logfile" in attempt:
            logfile.write_text(attempt["logfile"], encoding="utf-8")
        if attempt.get("child"):
            subprocess.Popen(["sleep", "60"])
        time.sleep(attempt.get("sleep", 0))
        if "signal" in attempt:
            os.kill(os.getpid(), getattr(signal, attempt["signal"]))
        if "exit" in attempt:
            raise SystemExit(attempt["exit"])
