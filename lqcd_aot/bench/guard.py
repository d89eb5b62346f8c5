"""Was a measurement disturbed? Two threads moved apart (timed again, else marked), or CPUs that other work was given.

Virtual cores are placed anew by the host now and then. A cache line then takes several times as long between them, and the
figures of small lattices collapse without anything being wrong with the code. Other work on the same CPU shows as
involuntary switches of this process; they are counted, nothing is done about them.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
MOVED = 1.5
ATTEMPTS = 3
BUSY = 20.0


class Guarded(NamedTuple):
    """result; trips: seconds of a round trip before and after (None for one CPU); moved: they differ after all attempts;
    switches: how often a second other work took a CPU away; above BUSY the figure says little."""

    result: Any
    trips: tuple[float, float] | None
    moved: bool
    switches: float


def guarded(measure: Callable[[], T], cpus: Sequence[int], round_trip: Callable[[Sequence[int]], float] | None) -> Guarded:
    """`measure()` between two probes, again up to ATTEMPTS times while they differ by more than the factor MOVED.

    round_trip: seconds between the first CPU and the farthest; None (no compiler, so no probe) and one CPU measure once.
    """
    if len(cpus) < 2 or round_trip is None:
        result, switches = _counted(measure)
        return Guarded(result, None, False, switches)
    for _ in range(ATTEMPTS):
        before = round_trip(cpus)
        result, switches = _counted(measure)
        after = round_trip(cpus)
        moved = max(before, after) > MOVED * min(before, after)
        if not moved:
            break
    return Guarded(result, (before, after), moved, switches)


def _counted(measure: Callable[[], T]) -> tuple[T, float]:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    result = measure()
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before
    return result, switches / (time.perf_counter() - start)
