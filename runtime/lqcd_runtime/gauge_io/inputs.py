"""The open configuration file: what can be refused before its format is known, bounded reads, and how refusals read.

Owns the file handle and the wording "configuration file <path>: ...". Knows no format.
"""

from __future__ import annotations

import os
import stat

from lqcd_runtime.errors import GaugeFileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType


class GaugeInput:
    """A regular, readable, non-empty file, as a context manager. Errors: GaugeFileError for anything else."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            # Non-blocking, so that a named pipe is refused rather than waited for.
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        except FileNotFoundError:
            raise self.refuse("does not exist") from None
        except OSError as error:
            raise self.refuse(f"cannot be opened ({(error.strerror or str(error)).lower()})") from None
        except ValueError:
            raise self.refuse("is not a usable path") from None
        status = os.fstat(descriptor)
        self.size = status.st_size
        fault = None
        if stat.S_ISDIR(status.st_mode):
            fault = "is a directory"
        elif not stat.S_ISREG(status.st_mode):
            fault = "is not a regular file"
        elif self.size == 0:
            fault = "is empty"
        if fault:
            os.close(descriptor)
            raise self.refuse(fault)
        self._file = os.fdopen(descriptor, "rb")

    def __enter__(self) -> GaugeInput:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def read(self, offset: int, count: int) -> bytes:
        """Exactly `count` bytes at `offset`. Errors: GaugeFileError where the file ends before."""
        if offset + count > self.size:
            raise self.refuse(
                "is truncated", expected=f"at least {offset + count} bytes", found=f"{self.size} bytes"
            )  # fmt: skip
        try:
            self._file.seek(offset)
            data = self._file.read(count)
        except OSError as error:
            raise self.refuse(f"cannot be read ({(error.strerror or str(error)).lower()})") from None
        if len(data) != count:
            raise self.refuse("shrank while it was being read")
        return data

    def require_end(self, expected: int, why: str) -> None:
        """That the file ends at byte `expected`. Errors: GaugeFileError, which tells a short file from appended bytes."""
        if self.size != expected:
            more = self.size - expected
            fact = "is truncated" if more < 0 else f"has {more} bytes after its links, from offset {expected} on"
            raise self.refuse(fact, expected=f"{expected} bytes {why}", found=f"{self.size} bytes")

    def refuse(
        self,
        fact: str,
        *,
        expected: object = None,
        found: object = None,
        hint: str | None = None,
        details: Sequence[str] = (),
    ) -> GaugeFileError:
        """The error to raise: "configuration file <path>: <fact>" and what goes with it."""
        return GaugeFileError(
            f"configuration file {self.path!r}: {fact}", expected=expected, found=found, hint=hint, details=tuple(details)
        )
