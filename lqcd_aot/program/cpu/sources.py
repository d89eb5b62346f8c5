"""The template files that an entry file reaches by `#include "..."`.

Owns: reading them once per process. A change to a header therefore changes the digest of exactly the programs that include it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@cache
def reachable(entry: str) -> tuple[tuple[str, str], ...]:
    """(name, text) of `entry` and of every file it includes, directly or not, sorted by name. Errors: OSError."""
    found: dict[str, str] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = (TEMPLATES / name).read_text(encoding="utf-8")
            waiting += _INCLUDE.findall(found[name])
    return tuple(sorted(found.items()))
