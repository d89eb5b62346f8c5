"""Time a call: warm up, choose a repeat count that outlasts the clock, take the median over rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Timing(NamedTuple):
    """Seconds per call: median, fastest and slowest round."""

    seconds: float
    fastest: float
    slowest: float


def time_call(call: Callable[[], object], *, seconds: float = 0.4, rounds: int = 9) -> Timing:
    """The time of one `call()`, measured for about `seconds` in `rounds` rounds after a warm-up of the same kind."""
    call()
    repeats = _repeats_for(call, seconds / rounds)
    each = sorted(_round(call, repeats) for _ in range(rounds))
    return Timing(each[rounds // 2], each[0], each[-1])


def time_pair(
    a: Callable[[], object], b: Callable[[], object], *, seconds: float = 0.4, rounds: int = 9
) -> tuple[Timing, Timing]:
    """Both calls interleaved round by round, so that a drift of the machine's speed meets both."""
    a(), b()
    counts = _repeats_for(a, seconds / rounds), _repeats_for(b, seconds / rounds)
    pairs = [(_round(a, counts[0]), _round(b, counts[1])) for _ in range(rounds)]
    first, second = sorted(p[0] for p in pairs), sorted(p[1] for p in pairs)
    middle = rounds // 2
    return Timing(first[middle], first[0], first[-1]), Timing(second[middle], second[0], second[-1])


def _repeats_for(call: Callable[[], object], seconds: float) -> int:
    repeats = 1
    while True:
        spent = _round(call, repeats) * repeats
        if spent >= seconds / 2 or repeats >= 1 << 20:
            return max(1, round(repeats * seconds / max(spent, 1e-9)))
        repeats *= 2


def _round(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats
