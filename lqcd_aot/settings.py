"""The one file that reads environment variables.

    LQCD_AOT_STORE   store folder                       (default: <cache>/store)
    LQCD_AOT_SYSTEM_STORE  read-only stores below it, as PATH is written (default: none)
    LQCD_AOT_CACHE   compiler caches and the default store (default: $XDG_CACHE_HOME/lqcd-aot or ~/.cache/lqcd-aot)
    LQCD_AOT_CC      compiler in place of the pinned zig (default: none)
    LQCD_AOT_NEURON_CC  neuronx-cc in place of the one on PATH, or "sim" (default: none)
    LQCD_AOT_CONFIG  own keys and trusted signers       (default: $XDG_CONFIG_HOME/lqcd-aot or ~/.config/lqcd-aot)

A misspelt LQCD_AOT_* variable is an error, never ignored. None of these enters a key.
"""

from __future__ import annotations

import os
from pathlib import Path

from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import suggest

KNOWN = ("LQCD_AOT_STORE", "LQCD_AOT_SYSTEM_STORE", "LQCD_AOT_CACHE", "LQCD_AOT_CC", "LQCD_AOT_NEURON_CC", "LQCD_AOT_CONFIG")


def check_environment() -> None:
    """Refuse unknown LQCD_AOT_* variables. Errors: UsageError with the nearest known name."""
    for name in sorted(os.environ):
        if name.startswith("LQCD_AOT_") and name not in KNOWN:
            raise UsageError(
                f"environment variable {name}: is not known{suggest(name, KNOWN)}",
                expected=", ".join(KNOWN),
                hint=f"unset {name}",
            )


def cache_dir() -> Path:
    """Folder for compiler caches; may not exist yet and may be unwritable."""
    own = os.environ.get("LQCD_AOT_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lqcd-aot"


def default_store() -> Path:
    """The store used where no --store is given."""
    own = os.environ.get("LQCD_AOT_STORE")
    return Path(own) if own else cache_dir() / "store"


def config_dir() -> Path:
    """Folder of the user's signing keys and trusted signers; may not exist yet."""
    own = os.environ.get("LQCD_AOT_CONFIG")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "lqcd-aot"


def system_stores() -> tuple[str, ...]:
    """Read-only stores that are looked in after the user's own, in order."""
    return tuple(path for path in os.environ.get("LQCD_AOT_SYSTEM_STORE", "").split(os.pathsep) if path)


def default_compiler() -> str | None:
    """Path or name of the compiler in place of the pinned one, or None."""
    return os.environ.get("LQCD_AOT_CC") or None


def default_neuron_compiler() -> str | None:
    """Path or name of the neuronx-cc in place of the one on PATH, "sim" for its double, or None."""
    return os.environ.get("LQCD_AOT_NEURON_CC") or None


def compiler_environment() -> dict[str, str]:
    """The only inherited variables a compiler sees: where its helper programs and shared libraries are.

    Everything else is withheld on purpose: CPATH, GCC_EXEC_PREFIX, ZIG_LIB_DIR, CCC_OVERRIDE_OPTIONS and the like change the
    output without being in the build key.
    """
    return {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
