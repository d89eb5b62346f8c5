"""The roofline of this machine, measured by `probes`, and the roof of one row.

    roof = min(flops per second of the hop's instructions,
               bytes per second of the nearest level of memory that holds the working set x flops per least byte)

The bandwidth of a level is the best of reading, copying and copying with streaming stores, so that no row is measured against
less than this machine was seen to do. Owns which working sets are timed; refuses to know operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.bench.machine import Level, allowed_cpus, choose_cpus, level_of, levels
from lqcd_aot.bench.probes import KINDS, Figure, Probes

if TYPE_CHECKING:
    from lqcd_aot.bench.work import Work

DTYPES = ("float32", "float64")
COMPUTE = "compute"
SMALLEST_MEMORY, LARGEST_MEMORY = 64 << 20, 256 << 20


class Roof(NamedTuple):
    """Of one row. level: holds the working set; bytes_per_s: of that level; gflops: the roof; bound: "compute" or the level."""

    level: str
    bytes_per_s: float
    gflops: float
    bound: str


class Roofline(NamedTuple):
    """target: the loops were compiled for; levels; cpus: of each thread count; peak, mix: (dtype, threads) -> flops per second;
    bandwidth: (level, kind, threads) -> bytes per second."""

    target: str
    levels: tuple[Level, ...]
    cpus: dict[int, tuple[int, ...]]
    peak: dict[tuple[str, int], Figure]
    mix: dict[tuple[str, int], Figure]
    bandwidth: dict[tuple[str, str, int], Figure]

    def best_bandwidth(self, level: str, threads: int) -> float:
        """Bytes per second, the best kind of access."""
        return max(figure.median for (name, _, n), figure in self.bandwidth.items() if (name, n) == (level, threads))

    def roof(self, work: Work, dtype: str, threads: int) -> Roof:
        """See the module."""
        level = level_of(work.working_set, self.cpus[threads], self.levels).name
        rate, compute = self.best_bandwidth(level, threads), self.mix[dtype, threads].median
        reached = min(compute, rate * work.intensity)
        return Roof(level, rate, reached / 1e9, COMPUTE if reached == compute else level)

    def as_json(self) -> dict[str, Any]:
        """GFLOP/s and GB/s as [median, lowest, highest] of the rounds."""
        compute = [
            {"dtype": dtype, "threads": n, "fma_gflops": _giga(self.peak[dtype, n]), "hop_gflops": _giga(self.mix[dtype, n])}
            for dtype, n in self.peak
        ]
        moved = [
            {"level": name, "kind": kind, "threads": n, "gbytes_per_s": _giga(figure)}
            for (name, kind, n), figure in self.bandwidth.items()
        ]
        return {
            "target": self.target,
            "levels": [{"name": level.name, "bytes": level.size, "shared_by": len(level.sharers)} for level in self.levels],
            "cpus": {str(n): list(cpus) for n, cpus in self.cpus.items()},
            "compute": compute,
            "bandwidth": moved,
        }


def measure(probes: Probes, target: str, threads: Sequence[int], say: Callable[[str], None]) -> Roofline:
    """About a second for each number of threads. Errors: UsageError for more threads than CPUs, EngineError."""
    cpus = {n: choose_cpus(n, allowed_cpus()) for n in threads}
    known = tuple(levels(cpus[min(threads)][-1]))
    peak, mix, bandwidth = {}, {}, {}
    for n, used in cpus.items():
        for dtype in DTYPES:
            peak[dtype, n] = probes.flops(dtype, mixed=False, cpus=used)
            mix[dtype, n] = probes.flops(dtype, mixed=True, cpus=used)
        for level, nearer in zip(known, (None, *known), strict=False):
            size = probe_size(level, nearer, used)
            for kind in KINDS:
                figure = probes.bandwidth(kind, size, used)
                if figure is not None:
                    bandwidth[level.name, kind, n] = figure
        words = ", ".join(f"{level.name} {_best(bandwidth, level.name, n) / 1e9:.0f}" for level in known)
        say(
            f"roofline on CPU {','.join(map(str, used))}: hop {mix['float32', n].median / 1e9:.0f} / "
            f"{mix['float64', n].median / 1e9:.0f} GFLOP/s (float32 / float64), {words} GB/s"
        )
    return Roofline(target, known, cpus, peak, mix, bandwidth)


def probe_size(level: Level, nearer: Level | None, cpus: Sequence[int]) -> int:
    """Bytes to time a level with, of all CPUs together: in the nearest half of it; in the middle (of powers of two) between the
    nearer level and a shared one; four times the last cache for memory."""
    if not level.size:
        return min(LARGEST_MEMORY, max(SMALLEST_MEMORY, 4 * int(nearer.room(cpus)) if nearer else 0))
    if nearer is None or len(level.sharers) == 1:
        return int(level.room(cpus)) // 2
    return int((level.room(cpus) * nearer.room(cpus)) ** 0.5)


def _best(bandwidth: dict[tuple[str, str, int], Figure], name: str, threads: int) -> float:
    return max(f.median for (level, _, n), f in bandwidth.items() if (level, n) == (name, threads))


def _giga(figure: Figure) -> list[float]:
    return [round(value / 1e9, 3) for value in figure]
