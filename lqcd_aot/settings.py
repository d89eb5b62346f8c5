"""The one file that reads environment variables.

    LQCD_AOT_STORE   store folder                       (default: <cache>/store)
    LQCD_AOT_SYSTEM_STORE  read-only stores below it, as PATH is written (default: none)
    LQCD_AOT_CACHE   compiler caches and the default store (default: $XDG_CACHE_HOME/lqcd-aot or ~/.cache/lqcd-aot)
    LQCD_AOT_CC      compiler in place of the pinned zig (default: none)
    LQCD_AOT_NEURON_CC  neuronx-cc in place of the one on PATH, or "sim" (default: none)
    LQCD_AOT_CONFIG  own keys and trusted signers       (default: $XDG_CONFIG_HOME/lqcd-aot or ~/.config/lqcd-aot)

MPLCONFIGDIR and XDG_CACHE_HOME, which matplotlib and fontconfig read, are replaced while matplotlib is imported where what they
name cannot be written. A misspelt LQCD_AOT_* variable is an error, never ignored. None of these enters a key.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lqcd_runtime.errors import LqcdError, UsageError
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
    return (Path(base) if base else _home() / ".cache") / "lqcd-aot"


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
    return (Path(base) if base else _home() / ".config") / "lqcd-aot"


def _home() -> Path:
    """The user's home; of a user without one (HOME unset, a number the system does not know) the folder that never exists."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


@contextlib.contextmanager
def plotting_folders() -> Iterator[None]:
    """While matplotlib is imported: it and fontconfig keep caches where the user has them, else in a folder of this process.

    Without that both warn, at every start, of a home that is read-only or absent. matplotlib remembers its folder, so the private
    one lives as long as the process. Errors: LqcdError where not even a temporary folder can be made.
    """
    configs = Path(os.environ.get("XDG_CONFIG_HOME") or _home() / ".config")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache")
    private = {}
    if not os.environ.get("MPLCONFIGDIR") and not (_writable(configs / "matplotlib") and _writable(caches / "matplotlib")):
        private["MPLCONFIGDIR"] = "matplotlib"
    if not _writable(caches):
        private["XDG_CACHE_HOME"] = "cache"
    before = {name: os.environ.get(name) for name in private}
    try:
        if private:
            folder = _private_folder()
            for name, part in private.items():
                (folder / part).mkdir()
                os.environ[name] = str(folder / part)
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _writable(folder: Path) -> bool:
    """Whether the folder is there, made now if need be, and can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _private_folder() -> Path:
    try:
        folder = tempfile.mkdtemp(prefix="lqcd-plot-")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LqcdError("plot: no folder can be made for the caches of matplotlib", found=reason, hint="TMPDIR=FOLDER") from None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


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
