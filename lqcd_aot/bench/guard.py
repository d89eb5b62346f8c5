"""Was a measurement disturbed? Two threads moved apart (timed again, else marked), or CPUs that other work was given.

Virtual cores are placed anew by the host now and then. A cache line then takes several times as long between them, and the
figures of small lattices collapse without anything being wrong with the code. Other work on the same CPU shows as time in which a
thread of ours was ready and did not run; it is counted, nothing is done about it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
MOVED = 1.5
ATTEMPTS = 3
BUSY = 0.05
TASKS = Path("/proc/self/task")


class Guarded(NamedTuple):
    """result; trips: seconds of a round trip before and after (None for one CPU); moved: they differ after all attempts;
    lost: the part of the CPUs' time that other work took (None where the kernel does not count it); above BUSY a figure says
    little."""

    result: Any
    trips: tuple[float, float] | None
    moved: bool
    lost: float | None


def guarded(measure: Callable[[], T], cpus: Sequence[int], round_trip: Callable[[Sequence[int]], float] | None) -> Guarded:
    """`measure()` between two probes, again up to ATTEMPTS times while they differ by more than the factor MOVED.

    round_trip: seconds between the first CPU and the farthest; None (no compiler, so no probe) and one CPU measure once.
    """
    if len(cpus) < 2 or round_trip is None:
        result, lost = _counted(measure, len(cpus))
        return Guarded(result, None, False, lost)
    for _ in range(ATTEMPTS):
        before = round_trip(cpus)
        result, lost = _counted(measure, len(cpus))
        after = round_trip(cpus)
        moved = max(before, after) > MOVED * min(before, after)
        if not moved:
            break
    return Guarded(result, (before, after), moved, lost)


def _counted(measure: Callable[[], T], cpus: int) -> tuple[T, float | None]:
    start, before = time.perf_counter(), waited()
    result = measure()
    after = waited()
    if before is None or after is None:
        return result, None
    return result, max(0, after - before) / 1e9 / (time.perf_counter() - start) / cpus


def waited(tasks: Path = TASKS) -> int | None:
    """Nanoseconds that the threads of this process were ready and not running; None where the kernel does not say.

    The second number of /proc/self/task/*/schedstat. A thread that ends takes its number with it.
    """
    found = []
    for task in tasks.glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            found.append(int((task / "schedstat").read_text().split()[1]))
    return sum(found) if found else None
