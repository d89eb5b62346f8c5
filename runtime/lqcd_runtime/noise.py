"""Counter-based random numbers: Philox4x32-10 in vectorised integer arithmetic.

A number is a pure function of (seed, stream, kind, index); there is no state. The caller numbers components globally
(site index times components plus component), so what a site receives does not depend on slabs, ranks, batches or order.
`uniform`, `z2` and `z4` are bit-identical on every machine; `gaussian` passes through the C library's log, sin and cos
and may differ in the last digit. Knows nothing of lattices, fields or quark sources.

Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11 (2011); known answers in
tests/properties/test_noise.py.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from numpy.typing import NDArray

_MULTIPLIER = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
# The fourth counter word keeps the kinds of numbers apart: a Z2 noise is never made of the bits of a uniform field.
_UNIFORM, _GAUSSIAN, _Z2, _Z4 = range(4)


def philox4x32(counter: NDArray[np.uint32], key: tuple[int, int], rounds: int = 10) -> NDArray[np.uint32]:
    """The Philox4x32 bijection: uint32 [4, n] counters -> uint32 [4, n] random words, under a key of two 32-bit words."""
    c0, c1, c2, c3 = (word.astype(np.uint64) for word in counter)
    k0, k1 = key
    for _ in range(rounds):
        p0 = c0 * _MULTIPLIER[0]
        p1 = c2 * _MULTIPLIER[1]
        c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ np.uint64(k0), p1 & _LOW, (p0 >> _SHIFT) ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack((c0, c1, c2, c3)).astype(np.uint32)


def uniform(seed: int, stream: int, count: int, start: int = 0) -> NDArray[np.float64]:
    """Numbers start .. start+count-1 of a stream, uniform in [-1, 1) on a grid of 2^-52: float64 [count].

    Errors: UsageError where seed is not in [0, 2^64), stream not in [0, 2^32), or count or start is negative.
    """
    return _wide(seed, stream, _UNIFORM, count, start).astype(np.float64) * 2.0**-52 - 1.0


def gaussian(seed: int, stream: int, count: int, start: int = 0) -> NDArray[np.float64]:
    """Normal numbers of mean 0 and variance 1 (Box-Muller, two to a counter): float64 [count]. Errors: as `uniform`."""
    first = start - (start & 1)
    pairs = _wide(seed, stream, _GAUSSIAN, count + (start - first) + (count + start & 1), first).reshape(-1, 2)
    # (n + 1) 2^-53 lies in (0, 1], so the logarithm is finite.
    radius = np.sqrt(-2.0 * np.log((pairs[:, 0].astype(np.float64) + 1.0) * 2.0**-53))
    angle = pairs[:, 1].astype(np.float64) * (2.0 * np.pi * 2.0**-53)
    both = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1).reshape(-1)
    return both[start - first : start - first + count]


def z2(seed: int, stream: int, count: int, start: int = 0) -> NDArray[np.complex128]:
    """+1 or -1: complex128 [count]. Errors: as `uniform`."""
    bit = _words(seed, stream, _Z2, count, start) >> np.uint32(31)
    signs: NDArray[np.complex128] = np.array([1, -1], np.complex128)[bit]
    return signs


def z4(seed: int, stream: int, count: int, start: int = 0) -> NDArray[np.complex128]:
    """1, i, -1 or -i: complex128 [count]. Errors: as `uniform`."""
    bits = _words(seed, stream, _Z4, count, start) >> np.uint32(30)
    roots: NDArray[np.complex128] = np.array([1, 1j, -1, -1j], np.complex128)[bits]
    return roots


def _wide(seed: int, stream: int, kind: int, count: int, start: int) -> NDArray[np.uint64]:
    """53 random bits a number, two numbers to a counter: uint64 [count]."""
    offset = start & 1
    words = _words(seed, stream, kind, 2 * (count + offset), 2 * (start - offset)).astype(np.uint64).reshape(-1, 2)
    return ((words[:, 0] << _SHIFT | words[:, 1]) >> np.uint64(11))[offset:]


def _words(seed: int, stream: int, kind: int, count: int, start: int) -> NDArray[np.uint32]:
    """32-bit words start .. start+count-1 of a stream, four words to a counter (block low, block high, stream, kind)."""
    if not (0 <= seed < 2**64 and 0 <= stream < 2**32 and count >= 0 and 0 <= start < 2**62):
        raise UsageError(
            "noise: the counter is out of range",
            expected="0 <= seed < 2^64, 0 <= stream < 2^32, count >= 0, start >= 0",
            found=f"seed={seed}, stream={stream}, count={count}, start={start}",
        )
    first = start // 4
    blocks = np.arange(first, (start + count + 3) // 4, dtype=np.uint64)
    counter = np.empty((4, blocks.size), np.uint32)
    counter[0] = blocks & _LOW
    counter[1] = blocks >> _SHIFT
    counter[2] = stream
    counter[3] = kind
    words = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32)).T.reshape(-1)
    return words[start - 4 * first :][:count]
