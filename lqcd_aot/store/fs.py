"""The file-system port: every byte the store and `pack` write goes through one of these calls.

Owns the list of primitive calls, the real implementation, and the retry of errors that pass by themselves. Knows nothing of
layout, names or digests. Each call is one system call's worth of effect, so that a test can replace the port by one that fails,
or dies, at any of them (tests/crash/memory_fs.py, tests/crash/faults.py).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeVar

R = TypeVar("R")

# Errors of network file systems that go away when the call is made again by path (NFS: ESTALE after a server-side replace, EBUSY
# while another client holds a silly-renamed file).
PASSING = frozenset({errno.EINTR, errno.ESTALE, errno.EBUSY})
INTERRUPTED = frozenset({errno.EINTR})
ATTEMPTS = 6
FIRST_PAUSE_SECONDS = 0.005


LOOKS = 4
PIECE = 1 << 17  # stays in the processor's cache between reading and hashing


def looks() -> Iterator[None]:
    """How often a reader opens a file by its path before it believes that the bytes are wrong: at once, again, then after pauses.

    Network file systems may show a renamed file before its bytes.
    """
    pause = FIRST_PAUSE_SECONDS
    for look in range(LOOKS):
        if look >= 2:
            time.sleep(pause)
            pause *= 2
        yield


class FileStat(NamedTuple):
    """What the store needs to know of a directory entry. mode: permission bits; mtime: seconds since the epoch.

    mtime_ns, ctime_ns, inode: tell a file from another one that took its name later, and from itself written or renamed since.
    """

    size: int
    mtime: float
    mode: int
    is_dir: bool
    mtime_ns: int
    ctime_ns: int
    inode: int


class FileSystem(Protocol):
    """The port. All paths are absolute strings; every failure is an OSError with its errno."""

    def open_new(self, path: str, mode: int) -> int:
        """Create a file that must not exist, not following a link, with exactly these permission bits; returns a handle."""

    def write(self, handle: int, data: memoryview) -> int:
        """Write some of the data; returns how many bytes were taken (fewer than given is normal)."""

    def fsync(self, handle: int) -> None:
        """The file's bytes survive a power loss after this."""

    def close(self, handle: int) -> None:
        """Give the handle back; network file systems may report a failed write only here."""

    def rename(self, source: str, target: str) -> None:
        """Atomically give `source` the name `target`, replacing what had it."""

    def link(self, source: str, target: str) -> None:
        """Atomically give `source` the further name `target`; FileExistsError where that name is taken."""

    def unlink(self, path: str) -> None:
        """Remove a name."""

    def mkdir(self, path: str, mode: int | None) -> None:
        """Create a folder with exactly these permission bits (None: as the umask says); FileExistsError if the name is taken."""

    def fsync_dir(self, path: str) -> None:
        """The folder's entries survive a power loss after this."""

    def read(self, path: str) -> bytes:
        """All bytes of a file."""

    def sha256(self, path: str) -> str:
        """Digest of a file's bytes, without holding them."""

    def stat(self, path: str) -> FileStat:
        """Size, age, permissions."""

    def listdir(self, path: str) -> list[str]:
        """Names in a folder, sorted."""

    def scan(self, path: str) -> list[tuple[str, FileStat]]:
        """(name, stat) of everything in a folder, sorted by name; what vanishes meanwhile is left out."""


class RealFileSystem:
    """The port over the operating system."""

    def open_new(self, path: str, mode: int) -> int:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            os.fchmod(handle, mode)  # the umask of one user must not decide what the others of a shared store can read
        except OSError:
            os.close(handle)
            raise
        return handle

    def write(self, handle: int, data: memoryview) -> int:
        return os.write(handle, data)

    def fsync(self, handle: int) -> None:
        os.fsync(handle)

    def close(self, handle: int) -> None:
        os.close(handle)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def link(self, source: str, target: str) -> None:
        os.link(source, target, follow_symlinks=False)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def mkdir(self, path: str, mode: int | None) -> None:
        os.mkdir(path)
        if mode is not None:
            os.chmod(path, mode)

    def fsync_dir(self, path: str) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        except OSError as error:
            # Some network and FUSE file systems have no such call for folders; their renames are synchronous.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(handle)

    def read(self, path: str) -> bytes:
        # os.open/os.read: half the time of open().read() for the thousands of small records a plan looks at.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(handle).st_size
            data = os.read(handle, size + 1)
            if len(data) == size:  # fewer bytes than asked for: that was the end
                return data
            pieces = [data]
            while piece := os.read(handle, 1 << 20):
                pieces.append(piece)
        finally:
            os.close(handle)
        return b"".join(pieces)

    def sha256(self, path: str) -> str:
        digest = hashlib.sha256()
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while piece := os.read(handle, PIECE):
                digest.update(piece)
        finally:
            os.close(handle)
        return digest.hexdigest()

    def stat(self, path: str) -> FileStat:
        return _file_stat(os.stat(path, follow_symlinks=False))

    def listdir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def scan(self, path: str) -> list[tuple[str, FileStat]]:
        found = []
        with os.scandir(path) as entries:
            for entry in entries:
                try:  # a plan of 10,000 variants comes through here 20,000 times
                    found.append((entry.name, _file_stat(entry.stat(follow_symlinks=False))))
                except FileNotFoundError:
                    continue
        return sorted(found)


def _file_stat(s: os.stat_result) -> FileStat:
    mode = s.st_mode
    return FileStat(s.st_size, s.st_mtime, mode & 0o7777, mode & 0o170000 == 0o040000, s.st_mtime_ns, s.st_ctime_ns, s.st_ino)


class Retrying:
    """A port that makes a call again where the error passes by itself (EINTR, ESTALE, EBUSY), a bounded number of times.

    A call that took effect before it failed may answer FileExistsError or FileNotFoundError the second time; callers treat
    those as "somebody did it" and look.
    """

    def __init__(self, fs: FileSystem, sleep: Callable[[float], None] = time.sleep) -> None:
        self._fs = fs
        self._sleep = sleep

    def _again(self, call: Callable[[], R], passing: frozenset[int] = PASSING) -> R:
        pause = FIRST_PAUSE_SECONDS
        for _ in range(ATTEMPTS - 1):
            try:
                return call()
            except OSError as error:
                if error.errno not in passing:
                    raise
                if error.errno != errno.EINTR:
                    self._sleep(pause)
                    pause *= 2
        return call()

    def open_new(self, path: str, mode: int) -> int:
        return self._again(lambda: self._fs.open_new(path, mode))

    def write(self, handle: int, data: memoryview) -> int:
        # Only EINTR promises that nothing was taken; after any other error the file is given up and written anew.
        return self._again(lambda: self._fs.write(handle, data), INTERRUPTED)

    def fsync(self, handle: int) -> None:
        # A failed fsync may have dropped the dirty pages, so that a second one succeeds over lost bytes.
        self._again(lambda: self._fs.fsync(handle), INTERRUPTED)

    def close(self, handle: int) -> None:
        with contextlib.suppress(InterruptedError):  # the handle is gone all the same; closing again could close another's
            self._fs.close(handle)

    def rename(self, source: str, target: str) -> None:
        self._again(lambda: self._fs.rename(source, target))

    def link(self, source: str, target: str) -> None:
        self._again(lambda: self._fs.link(source, target))

    def unlink(self, path: str) -> None:
        self._again(lambda: self._fs.unlink(path))

    def mkdir(self, path: str, mode: int | None) -> None:
        self._again(lambda: self._fs.mkdir(path, mode))

    def fsync_dir(self, path: str) -> None:
        self._again(lambda: self._fs.fsync_dir(path))

    def read(self, path: str) -> bytes:
        try:  # the common case first: a plan of 10,000 variants comes through here 20,000 times
            return self._fs.read(path)
        except FileNotFoundError:
            raise
        except OSError:
            return self._again(lambda: self._fs.read(path))

    def sha256(self, path: str) -> str:
        return self._again(lambda: self._fs.sha256(path))

    def stat(self, path: str) -> FileStat:
        try:  # the common case first: a plan of 10,000 variants comes through here 20,000 times
            return self._fs.stat(path)
        except FileNotFoundError:
            raise
        except OSError:
            return self._again(lambda: self._fs.stat(path))

    def listdir(self, path: str) -> list[str]:
        return self._again(lambda: self._fs.listdir(path))

    def scan(self, path: str) -> list[tuple[str, FileStat]]:
        return self._again(lambda: self._fs.scan(path))
