"""A file-system port that goes wrong at one chosen call: the fault injector of the crash tests.

Owns the kinds of fault. `calls` counts every call, so a test first runs a scenario without a fault to learn how many there are
and then once more for each of them.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable
from typing import Any

from lqcd_aot.store.fs import FileStat, FileSystem

READS = ("read", "sha256", "stat", "listdir", "scan")
PASSING = ("EINTR", "ESTALE", "EBUSY")
LASTING = ("ENOSPC", "EDQUOT", "EROFS")
KILLS = ("kill before", "kill after")
LATE = "late visibility"
KINDS = (*KILLS, "EIO", *PASSING, "EBUSY after", *LASTING, "short write", "short write then kill")


class Killed(BaseException):
    """The process is gone: nothing of it runs any more, no cleanup either."""


class FaultyFileSystem:
    """Passes calls on to `inner`, except call number `at` (from 0), where `kind` happens.

    kill before, kill after   the process ends there; every later call raises Killed too
    EIO                       that call fails
    EINTR, ESTALE, EBUSY      that call fails once; made again it succeeds. "EBUSY after": it took effect, and says it did not
    ENOSPC, EDQUOT, EROFS     that call and every later one that writes fail
    short write               write() takes one byte only; "then kill": and the process ends
    late visibility           a read or stat finds nothing there once (not among KINDS: not every call can)
    meanwhile                 before that call another process does `other`, from beginning to end
    """

    def __init__(
        self, inner: FileSystem, at: int | None = None, kind: str = "", other: Callable[[], object] = lambda: None
    ) -> None:
        self.inner, self.at, self.kind, self.other = inner, at, kind, other
        self.calls: list[str] = []
        self.dead = False

    def _call(self, name: str, call: Callable[[], Any]) -> Any:
        if self.dead:
            raise Killed
        number = len(self.calls)
        self.calls.append(name)
        if self.at is None or number < self.at:
            return call()
        if self.kind in LASTING and name not in (*READS, "close", "unlink"):
            raise OSError(getattr(errno, self.kind), self.kind)
        if number > self.at:
            return call()
        if self.kind == "kill before":
            self.dead = True
            raise Killed
        if self.kind == "kill after":
            with contextlib.suppress(OSError):
                call()
            self.dead = True
            raise Killed
        if self.kind == "meanwhile":
            self.other()
        if self.kind == LATE:
            raise FileNotFoundError(errno.ENOENT, "ENOENT")
        if self.kind == "EBUSY after":
            call()
            raise OSError(errno.EBUSY, "EBUSY")
        if self.kind == "EIO" or self.kind in PASSING:
            raise OSError(getattr(errno, self.kind), self.kind)
        return call()

    def open_new(self, path: str, mode: int) -> int:
        result: int = self._call("open_new", lambda: self.inner.open_new(path, mode))
        return result

    def write(self, handle: int, data: memoryview) -> int:
        number = len(self.calls)
        part = data[:1] if number == self.at and self.kind.startswith("short write") else data
        taken: int = self._call("write", lambda: self.inner.write(handle, part))
        if number == self.at and self.kind == "short write then kill":
            self.dead = True
            raise Killed
        return taken

    def fsync(self, handle: int) -> None:
        self._call("fsync", lambda: self.inner.fsync(handle))

    def close(self, handle: int) -> None:
        self._call("close", lambda: self.inner.close(handle))

    def rename(self, source: str, target: str) -> None:
        self._call("rename", lambda: self.inner.rename(source, target))

    def link(self, source: str, target: str) -> None:
        self._call("link", lambda: self.inner.link(source, target))

    def unlink(self, path: str) -> None:
        self._call("unlink", lambda: self.inner.unlink(path))

    def mkdir(self, path: str, mode: int | None) -> None:
        self._call("mkdir", lambda: self.inner.mkdir(path, mode))

    def fsync_dir(self, path: str) -> None:
        self._call("fsync_dir", lambda: self.inner.fsync_dir(path))

    def read(self, path: str) -> bytes:
        data: bytes = self._call("read", lambda: self.inner.read(path))
        return data

    def sha256(self, path: str) -> str:
        digest: str = self._call("sha256", lambda: self.inner.sha256(path))
        return digest

    def stat(self, path: str) -> FileStat:
        found: FileStat = self._call("stat", lambda: self.inner.stat(path))
        return found

    def listdir(self, path: str) -> list[str]:
        names: list[str] = self._call("listdir", lambda: self.inner.listdir(path))
        return names

    def scan(self, path: str) -> list[tuple[str, FileStat]]:
        found: list[tuple[str, FileStat]] = self._call("scan", lambda: self.inner.scan(path))
        return found
