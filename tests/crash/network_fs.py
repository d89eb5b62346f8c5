"""The real file system with the manners of a network one, at random: for many processes at once.

Owns which calls misbehave, and how often: ESTALE and EBUSY before a call or after it took effect, bytes that show late.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from typing import Any

from lqcd_aot.store.fs import FileStat, RealFileSystem
from lqcd_runtime.digest import sha256_hex

RATE = 0.02


class NetworkFileSystem(RealFileSystem):
    """Each call goes wrong with probability RATE; made again it succeeds."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.faults = 0

    def _is_time(self) -> bool:
        hit = self._random.random() < RATE
        self.faults += hit
        return hit

    def _passing(self, call: Callable[[], Any], *, after: bool = False) -> Any:
        if not self._is_time():
            return call()
        if after and self._random.random() < 0.5:
            call()
        raise OSError(self._random.choice((errno.ESTALE, errno.EBUSY, errno.EINTR)), "network")

    def rename(self, source: str, target: str) -> None:
        self._passing(lambda: RealFileSystem.rename(self, source, target), after=True)

    def link(self, source: str, target: str) -> None:
        self._passing(lambda: RealFileSystem.link(self, source, target), after=True)

    def unlink(self, path: str) -> None:
        self._passing(lambda: RealFileSystem.unlink(self, path), after=True)

    def stat(self, path: str) -> FileStat:
        found: FileStat = self._passing(lambda: RealFileSystem.stat(self, path))
        return found

    def sha256(self, path: str) -> str:
        return sha256_hex(self.read(path))

    def listdir(self, path: str) -> list[str]:
        names: list[str] = self._passing(lambda: RealFileSystem.listdir(self, path))
        return names

    def read(self, path: str) -> bytes:
        """Sometimes a file is there before its bytes."""
        if "/tmp/" not in path and self._is_time():
            return b"" if self._random.random() < 0.5 else self._passing(lambda: RealFileSystem.read(self, path))
        return RealFileSystem.read(self, path)
