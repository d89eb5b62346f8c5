"""The checksums of the three formats, over raw payload bytes. Pure functions; they judge nothing."""

from __future__ import annotations

import zlib

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from numpy.typing import NDArray


def nersc_sum(payload: bytes, order: str) -> int:
    """Sum modulo 2^32 of all 32-bit words in byte order ">" or "<"."""
    words = np.frombuffer(payload, order + "u4")
    return int(words.sum(dtype=np.uint64)) & 0xFFFFFFFF


def milc_sums(payload: bytes, order: str) -> tuple[int, int]:
    """Exclusive-or of all 32-bit words, word k rotated left by k mod 29 and by k mod 31: (sum29, sum31)."""
    return _folded(np.frombuffer(payload, order + "u4"))


def scidac_sums(payload: bytes, site_bytes: int) -> tuple[int, int]:
    """Exclusive-or of the CRC-32 of every site, rotated left by the site's rank mod 29 and mod 31: (suma, sumb)."""
    view = memoryview(payload)
    sites = len(payload) // site_bytes
    crcs = np.fromiter((zlib.crc32(view[i * site_bytes : (i + 1) * site_bytes]) for i in range(sites)), np.uint32, sites)
    return _folded(crcs)


def _folded(words: NDArray[np.uint32]) -> tuple[int, int]:
    """XOR_k rotl(word_k, k mod 29), and the same with 31.

    Rotation distributes over exclusive-or, so all words of one k mod (29 * 31) are put together first, before any is rotated
    or brought into the machine's byte order.
    """
    cycle = 29 * 31
    whole = words.size - words.size % cycle
    stored = words.view(np.uint32)
    column = np.zeros(cycle, np.uint32)
    np.bitwise_xor.reduce(stored[:whole].reshape(-1, cycle), axis=0, out=column)
    column[: words.size - whole] ^= stored[whole:]
    a, b = (_rotated(column.view(words.dtype).astype(np.uint32), modulus) for modulus in (29, 31))
    return a, b


def _rotated(words: NDArray[np.uint32], modulus: int) -> int:
    turn = (np.arange(words.size) % modulus).astype(np.uint32)
    # A shift by 32 is undefined in C: the second factor is taken modulo 32, which is exact because turn = 0 gives word | word.
    return int(np.bitwise_xor.reduce((words << turn) | (words >> ((np.uint32(32) - turn) & np.uint32(31)))))
