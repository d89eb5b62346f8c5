"""Whole judged answers, kept in files without a name: too large for memory, read by the child process that replays.

Owns one file per answer and its end: a file is gone when it is closed, or when the process dies in whatever way. The child opens
it through /proc and never writes. Knows neither questions nor judges.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from lqcd_runtime.errors import StoreError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Answers:
    """Columns of one answer, complex128 of one shape each. users: how many replays read it now."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.columns, self.users = shape, 0, 0
        self._file = tempfile.TemporaryFile(prefix="lqcd-aot-answer-")  # noqa: SIM115 - closed by close()

    @property
    def path(self) -> str:
        """Where another process of this user opens it."""
        return f"/proc/{os.getpid()}/fd/{self._file.fileno()}"

    @property
    def bytes(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def append(self, column: NDArray[np.complex128]) -> None:
        """One more column. Errors: StoreError where the folder of temporary files is full."""
        import numpy as np

        assert column.shape == self.shape
        try:
            self._file.seek(0, os.SEEK_END)
            self._file.write(np.ascontiguousarray(column, np.complex128).reshape(-1).view("u1").data)
            self._file.flush()
        except OSError as error:
            raise StoreError(
                f"temporary folder {tempfile.gettempdir()}: takes no more judged answers",
                found=error.strerror,
                hint="TMPDIR=<a folder with room>",
            ) from error
        self.columns += 1

    def read(self, first: int, count: int) -> NDArray[np.complex128]:
        """Columns first to first + count - 1: complex128 [count, ...], mapped."""
        return opened(self.path, self.shape, first + count)[first:]

    def close(self) -> None:
        self._file.close()


def opened(path: str, shape: tuple[int, ...], columns: int) -> NDArray[np.complex128]:
    """The first columns of a file of this form, mapped for reading."""
    import numpy as np

    return np.memmap(path, np.complex128, "r", shape=(columns, *shape))
