"""This machine as a benchmark sees it: which CPUs are used, how large its caches are, and a description without names.

Owns the choice of CPUs and the reading of sysfs. No host name, user, path or serial number leaves this file. Measures nothing.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lqcd_runtime.errors import UsageError

SYSFS = Path("/sys/devices/system/cpu")
CPUINFO = Path("/proc/cpuinfo")
MEMORY = "memory"
# Of a machine that shows no caches (some virtual ones): what has been common for a decade.
_USUAL = {"L1": 32 << 10, "L2": 512 << 10, "L3": 8 << 20}


class Level(NamedTuple):
    """A level of memory: name ("L1" ... "memory"), bytes of one instance (0: no limit), the CPUs that share it."""

    name: str
    size: int
    sharers: tuple[int, ...]

    def room(self, cpus: Sequence[int]) -> float:
        """Bytes that `cpus` together can keep here, each with its own part of the work."""
        if not self.size:
            return float("inf")
        # Instances are alike: as many of them are in use as are needed for these CPUs.
        return float(self.size * -(-len(cpus) // max(1, len(self.sharers))))


def allowed_cpus() -> list[int]:
    """The CPUs this process may use."""
    return sorted(os.sched_getaffinity(0))


def choose_cpus(threads: int, allowed: Sequence[int], sysfs: Path = SYSFS) -> tuple[int, ...]:
    """One CPU for each thread: the highest numbers (interrupts prefer the lowest), different cores before siblings of one.

    Errors: UsageError where there are fewer CPUs than threads.
    """
    if threads > len(allowed):
        raise UsageError(
            f"threads {threads}: this process may use fewer CPUs", expected=f"at most {len(allowed)}", found=threads,
            hint=f"--threads {len(allowed)}",
        )  # fmt: skip
    seen: set[str] = set()
    first: list[int] = []
    second: list[int] = []
    for cpu in sorted(allowed, reverse=True):
        core = _text(sysfs / f"cpu{cpu}" / "topology" / "thread_siblings_list") or str(cpu)
        (second if core in seen else first).append(cpu)
        seen.add(core)
    return tuple(sorted((first + second)[:threads]))


@contextmanager
def pinned(cpus: Sequence[int]) -> Iterator[None]:
    """The calling thread, and every thread it starts meanwhile, runs on these CPUs only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def levels(cpu: int, sysfs: Path = SYSFS) -> list[Level]:
    """The data caches of a CPU from the nearest on, and memory behind them."""
    found: dict[str, Level] = {}
    for folder in sorted((sysfs / f"cpu{cpu}" / "cache").glob("index*")):
        if _text(folder / "type") in ("Data", "Unified"):
            name = f"L{_text(folder / 'level')}"
            found[name] = Level(name, _bytes(_text(folder / "size")), _cpus(_text(folder / "shared_cpu_list")) or (cpu,))
    found = {name: level for name, level in found.items() if level.size}
    if not found:
        found = {name: Level(name, size, (cpu,)) for name, size in _USUAL.items()}
    return [*(found[name] for name in sorted(found)), Level(MEMORY, 0, ())]


def level_of(working_set: int, cpus: Sequence[int], known: Sequence[Level]) -> Level:
    """The nearest level in which these CPUs together can keep so many bytes."""
    return next(level for level in known if working_set <= level.room(cpus))


def description(cpus: Sequence[int]) -> dict[str, Any]:
    """What a reader must know to judge a figure: processor, features that matter, caches, kernel, load; no names."""
    known = levels(cpus[-1])
    one, five, _ = os.getloadavg()
    return {
        "architecture": platform.machine(),
        "processor": processor(),
        "cpus": os.cpu_count(),
        "cpus_used": list(cpus),
        "caches": {level.name: {"bytes": level.size, "shared_by": len(level.sharers)} for level in known if level.size},
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": ".".join(platform.release().split(".")[:2]),
        "python": platform.python_version(),
        "load": [round(one, 2), round(five, 2)],
    }


def processor(cpuinfo: Path = CPUINFO) -> str:
    """The processor's name as it gives it, or its architecture."""
    for line in _text(cpuinfo).splitlines():
        label, _, value = line.partition(":")
        if label.strip() in ("model name", "Processor", "CPU part"):
            return value.strip()
    return platform.machine()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _bytes(text: str) -> int:
    """ "32K" -> 32768; 0 where there is no number."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    digits = text.rstrip("KMG")
    return int(digits) * units.get(text[len(digits) :], 1) if digits.isdecimal() else 0


def _cpus(text: str) -> tuple[int, ...]:
    """ "0-3,8" -> (0, 1, 2, 3, 8)."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return tuple(found)
