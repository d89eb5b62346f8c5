"""The checksums of the three formats, over raw payload bytes. Pure functions; they judge nothing."""

from __future__ import annotations

import zlib

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from numpy.typing import NDArray

_PIECE = 1 << 20


def nersc_sum(payload: bytes, order: str) -> int:
    """Sum modulo 2^32 of all 32-bit words in byte order ">" or "<"."""
    words = np.frombuffer(payload, order + "u4")
    return int(words.sum(dtype=np.uint64)) & 0xFFFFFFFF


def milc_sums(payload: bytes, order: str) -> tuple[int, int]:
    """Exclusive-or of all 32-bit words, word k rotated left by k mod 29 and by k mod 31: (sum29, sum31)."""
    words = np.frombuffer(payload, order + "u4").astype(np.uint32)
    return _folded(words, 29), _folded(words, 31)


def scidac_sums(payload: bytes, site_bytes: int) -> tuple[int, int]:
    """Exclusive-or of the CRC-32 of every site, rotated left by the site's rank mod 29 and mod 31: (suma, sumb)."""
    view = memoryview(payload)
    sites = len(payload) // site_bytes
    crcs = np.fromiter((zlib.crc32(view[i * site_bytes : (i + 1) * site_bytes]) for i in range(sites)), np.uint32, sites)
    return _folded(crcs, 29), _folded(crcs, 31)


def _folded(words: NDArray[np.uint32], modulus: int) -> int:
    """XOR_k rotl(word_k, k mod modulus), in pieces so that the scratch memory stays small."""
    total = 0
    for start in range(0, words.size, _PIECE):
        part = words[start : start + _PIECE]
        turn = (np.arange(start, start + part.size) % modulus).astype(np.uint32)
        # A shift by 32 is undefined in C: the second factor is taken modulo 32, which is exact because turn = 0 gives
        # word | word.
        rotated = (part << turn) | (part >> ((np.uint32(32) - turn) & np.uint32(31)))
        total ^= int(np.bitwise_xor.reduce(rotated))
    return total
