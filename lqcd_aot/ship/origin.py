"""Where a recipe comes from: commit and dirty flag of the git checkout it stands in, if it stands in one.

Owns the questions to git. No address of a remote and no user name is asked: they may hold secrets, and are nobody's business.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
SECONDS = 20


class Origin(NamedTuple):
    """commit: hex digits; dirty: whether tracked files differ from it, or the recipe itself is not under version control."""

    commit: str
    dirty: bool


def origin_of(recipe: str | os.PathLike[str]) -> Origin | None:
    """The origin of a recipe file; None where there is no checkout, no commit yet, or no git."""
    path = Path(recipe).resolve()
    commit = _git(path.parent, "rev-parse", "--verify", "HEAD")
    if commit is None or not _COMMIT.fullmatch(commit):
        return None
    changed = _git(path.parent, "status", "--porcelain", "--untracked-files=no")
    tracked = _git(path.parent, "ls-files", "--", path.name)
    return Origin(commit, changed != "" or not tracked)


def _git(folder: Path, *arguments: str) -> str | None:
    """Output of a git command, None where it fails. Takes no locks and runs no hooks: it may be another user's checkout."""
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()
