"""Facts about a compiler's files (digest, version), remembered so that a plan need not hash 180 MB on every run.

Owns `facts.json` in the cache folder (settings.cache_dir): {"kind path": {"stamp": [...], "facts": {...}}}. The stamp (size,
mtime, ctime, inode, device) decides only whether a remembered fact is still about the same file; neither stamp nor path ever
enters a key. A cache that cannot be read or written costs time, never an error: they are then computed again. Knows no flags.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from lqcd_aot.settings import cache_dir

Facts = dict[str, str]
_SCHEMA = "lqcd-aot/facts/v1"
_memory: dict[tuple[str, tuple[int, ...]], Facts] = {}


def file_facts(kind: str, path: Path, compute: Callable[[], Facts]) -> Facts:
    """`compute()`, remembered for as long as the file at `path` keeps its stamp. kind: which question is answered about the file.

    Errors: OSError where the file is absent; those of `compute`.
    """
    stamp = _stamp(path)
    name = f"{kind} {path}"
    key = (name, stamp)
    if key not in _memory:
        remembered = _load().get(name, {})
        if remembered.get("stamp") == list(stamp) and _is_facts(remembered.get("facts")):
            _memory[key] = dict(remembered["facts"])
        else:
            _memory[key] = compute()
            _save(name, stamp, _memory[key])
    return dict(_memory[key])


def _stamp(path: Path) -> tuple[int, ...]:
    s = path.stat()
    return (s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_dev)


def _is_facts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) and isinstance(v, str) for k, v in value.items())


def _load() -> dict[str, dict]:  # type: ignore[type-arg]  # whatever JSON holds; each use checks what it takes
    try:
        data = json.loads((cache_dir() / "facts.json").read_bytes())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: no home folder
        return {}
    files = data.get("files") if isinstance(data, dict) and data.get("schema") == _SCHEMA else None
    if not isinstance(files, dict):
        return {}
    return {k: v for k, v in files.items() if isinstance(v, dict)}


def _save(name: str, stamp: tuple[int, ...], facts: Facts) -> None:
    """Rename into place; of two writers at once the later wins and the other's fact is computed again next time."""
    files = {**_load(), name: {"stamp": list(stamp), "facts": facts}}
    temporary = None
    with contextlib.suppress(OSError, RuntimeError):
        folder = cache_dir()
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix="facts-")
        with os.fdopen(handle, "w") as f:
            json.dump({"schema": _SCHEMA, "files": files}, f)
        Path(temporary).replace(folder / "facts.json")
        temporary = None
    if temporary is not None:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
