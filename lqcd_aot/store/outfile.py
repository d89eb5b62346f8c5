"""Files outside a store, written as carefully as those in it: bundles, locks, keys, signatures, reports.

Owns: private file beside the target -> fsync -> check -> rename or link -> fsync of the folder, through the file-system port. A
file appears complete or not at all. Knows nothing of what it writes.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar, cast

from lqcd_aot.store.fs import FileSystem, RealFileSystem, Retrying
from lqcd_aot.store.owner import this_process
from lqcd_aot.store.writer import store_error
from lqcd_runtime.errors import StoreError, UsageError

R = TypeVar("R")


class Sink(io.RawIOBase):
    """A file of the port as Python's writable file: `write` takes all it is given."""

    def __init__(self, fs: FileSystem, handle: int) -> None:
        self._fs, self._handle = fs, handle

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        rest = memoryview(data)
        while rest:
            rest = rest[self._fs.write(self._handle, rest) :]
        return len(data)


def write_file(
    target: str | os.PathLike[str],
    write: Callable[[BinaryIO], R],
    *,
    what: str = "file",
    mode: int | None = None,
    replace: bool = True,
    check: Callable[[str], object] | None = None,
    fs: FileSystem | None = None,
) -> R:
    """Write `target` and return what `write(sink)` returned.

    what: the noun of messages. mode: permission bits; None: readable for whom the folder is. replace: whether a file that is
    there gives way. check: called with the temporary path before the file gets its name. Nothing half-written stays.
    Errors: StoreError where the place cannot be written, UsageError where the name is taken; what `write` and `check` raise.
    """
    port = Retrying(RealFileSystem()) if fs is None else fs
    path = os.path.abspath(os.fspath(target))
    folder, name = os.path.split(path)
    temporary = f"{folder}/.{name}.{this_process().temp_name()}"
    try:
        # A product to hand on is as readable as its folder.
        handle = port.open_new(temporary, 0o600 | (port.stat(folder).mode & 0o044) if mode is None else mode)
        try:
            result = write(cast(BinaryIO, Sink(port, handle)))
            port.fsync(handle)
        finally:
            port.close(handle)
        if check is not None:
            check(temporary)
        if replace:
            port.rename(temporary, path)
        else:
            port.link(temporary, path)
            port.unlink(temporary)
        port.fsync_dir(folder)
    except BaseException as error:
        with contextlib.suppress(OSError):
            port.unlink(temporary)
        if isinstance(error, FileExistsError) and not replace:
            raise UsageError(f"{what} {path}: exists already", hint="name another file, or remove this one first") from error
        if isinstance(error, OSError):
            found, hint = store_error(folder, error).found, "name a place that exists and can be written"
            raise StoreError(f"{what} {path}: cannot be written", found=found, hint=hint) from error
        raise
    return result


def write_bytes(target: str | os.PathLike[str], data: bytes, **options: Any) -> None:
    """`write_file` for bytes at hand."""
    write_file(target, lambda sink: sink.write(data), **options)
