"""Aligned memory for packed fields: private anonymous pages, on 2 MiB boundaries with huge pages asked for when large.

Owns allocation only. Private, so that a forked child never writes into its parent's fields. Freed with the object.
"""

from __future__ import annotations

import ctypes
import mmap

HUGE = 2 << 20


class Buffer:
    """`size` zeroed bytes at `address`, aligned to a page, or to 2 MiB where size >= 2 MiB."""

    __slots__ = ("_pages", "address", "size")

    def __init__(self, size: int) -> None:
        large = size >= HUGE
        self.size = size
        self._pages = mmap.mmap(-1, max(size, 1) + (HUGE if large else 0), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        # The ctypes view is dropped at once: only the number is kept, and the pages live as long as `_pages`.
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        if large:
            self.address += -self.address % HUGE
            # Transparent huge pages may be compiled out of the kernel; the pages are then small, nothing else changes.
            try:
                self._pages.madvise(mmap.MADV_HUGEPAGE)
            except (OSError, AttributeError):
                return
