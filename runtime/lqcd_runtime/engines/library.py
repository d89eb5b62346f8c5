"""Machine code in memory -> a dlopen handle, with no file left anywhere and no child process.

First choice: memfd_create and dlopen of /proc/self/fd/N. glibc recognises a loaded library by its path string, so N must not
be used again while the library is loaded: the descriptor stays open until `close`. Where memfd or executing from it is
forbidden: a private folder (mode 0700, random name) that is removed right after dlopen. Knows no symbols.
"""

from __future__ import annotations

import ctypes
import os

from lqcd_runtime.errors import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MFD_EXEC = 0x10


class Library:
    """A loaded shared object. `dll`: ctypes handle; `via`: "memfd" or the folder it was loaded from."""

    def __init__(self, code: bytes, name: str) -> None:
        """Load. Errors: EngineError with what each way of loading answered."""
        refusals: list[str] = []
        self._fd = -1
        try:
            self.dll = self._from_memfd(code, name)
            self.via = "memfd"
            return
        except OSError as err:
            refusals.append(f"memfd: {err}")
            self._close_fd()
        for folder in _folders():
            try:
                self.dll = _from_folder(code, folder)
                self.via = folder
                return
            except OSError as err:
                refusals.append(f"{folder}: {err}")
        raise EngineError(
            f"artifact {name}: cannot be loaded",
            details=refusals,
            hint="check that this is a Linux machine that may execute from a memfd or a temporary folder",
        )

    def _from_memfd(self, code: bytes, name: str) -> ctypes.CDLL:
        flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        try:
            self._fd = os.memfd_create(f"lqcd:{name}"[:200], flags | _MFD_EXEC)
        except OSError:  # a kernel before 6.3 does not know the flag and does not need it
            self._fd = os.memfd_create(f"lqcd:{name}"[:200], flags)
        _write_all(self._fd, code)
        _seal(self._fd)
        return ctypes.CDLL(f"/proc/self/fd/{self._fd}", mode=os.RTLD_NOW | os.RTLD_LOCAL)

    def _close_fd(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def close(self) -> None:
        """Unload. Nothing of it may run or be called afterwards."""
        import _ctypes

        _ctypes.dlclose(self.dll._handle)
        self._close_fd()


def _seal(fd: int) -> None:
    """Nobody, not even this process, changes the bytes that were verified."""
    import fcntl

    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _folders() -> Iterator[str]:
    """Where a private folder may be made: the temporary folder, the user's run-time folder, the user's home."""
    import tempfile

    yield tempfile.gettempdir()
    yield f"/run/user/{os.getuid()}"
    home = os.path.expanduser("~")
    if home.startswith("/"):
        yield home


def _from_folder(code: bytes, base: str) -> ctypes.CDLL:
    import tempfile

    folder = tempfile.mkdtemp(prefix=".lqcd-", dir=base)
    path = f"{folder}/artifact.so"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o500)
        try:
            _write_all(fd, code)
        finally:
            os.close(fd)
        return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    finally:
        if os.path.lexists(path):
            os.unlink(path)
        os.rmdir(folder)
