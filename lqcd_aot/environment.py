"""The environment variables the build side reads, all of them, each behind a function that says what it decides.

Owns the reading of `os.environ` for compilers and caches. None of these values is part of a key: they say where things are,
never what they mean.
"""

from __future__ import annotations

import os
from pathlib import Path


def user_cache_dir() -> Path:
    """Folder for what may be deleted at any time: $XDG_CACHE_HOME/lqcd-aot, else ~/.cache/lqcd-aot. Not created here.

    XDG base directory specification: a relative $XDG_CACHE_HOME is ignored.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        base = Path.home() / ".cache"
    return base / "lqcd-aot"


def compiler_environment() -> dict[str, str]:
    """The only inherited variables a compiler sees: where its helper programs and shared libraries are.

    Everything else is withheld on purpose: CPATH, GCC_EXEC_PREFIX, ZIG_LIB_DIR, CCC_OVERRIDE_OPTIONS and the like change the
    output without being in the build key.
    """
    return {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
