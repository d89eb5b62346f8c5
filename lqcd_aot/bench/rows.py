"""One row of a benchmark: a spec with a number of threads, measured, next to its roof.

Members: operator, dtype, storage, lattice, batch, fused, shards, threads, target; seconds (median), fastest, slowest; gflops,
gbytes_per_s (least bytes); least_bytes, working_set, intensity; level, roof_gflops, bound, fraction (null without a compiler, as
nothing measured the roof); compile_ms, artifact_bytes; cpus, round_trip_ns, moved, cpu_lost (guard.py);
solve; peer. Owns the names; measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.bench.guard import BUSY, guarded
from lqcd_aot.bench.machine import allowed_cpus, choose_cpus, pinned
from lqcd_aot.bench.operators import EAGER, Measured, measure_operator
from lqcd_aot.bench.solvers import measure_solver
from lqcd_aot.bench.work import Work, work_of
from lqcd_runtime.geometry import format_extents
from lqcd_runtime.signature import Spec

if TYPE_CHECKING:
    from lqcd_aot.bench.probes import Probes
    from lqcd_aot.bench.roofline import Roofline
    from lqcd_runtime.bundle import Bundle

Row = dict[str, Any]
IDENTITY = ("operator", "dtype", "storage", "lattice", "batch", "fused", "shards", "threads")
SERIES = tuple(name for name in IDENTITY if name != "lattice")


class Settings(NamedTuple):
    """How to measure: eager: torch too; seconds: of a row; probes, roofline: None without a compiler; gauge: for solves."""

    eager: bool = False
    seconds: float = 0.4
    probes: Probes | None = None
    roofline: Roofline | None = None
    gauge: Any = None


def rows(bundle: Bundle, specs: Sequence[Spec], threads: Sequence[int], settings: Settings) -> Iterator[Row]:
    """Measure every spec with every number of threads, pinned; a row as soon as it is there. Errors: NoVariant, UsageError."""
    for spec in specs:
        for n in threads:
            yield row(bundle, spec, n, settings)


def row(bundle: Bundle, spec: Spec, threads: int, settings: Settings) -> Row:
    """One row, between two probes of the CPUs where there are several. Errors: NoVariant, UsageError."""
    cpus = settings.roofline.cpus[threads] if settings.roofline else choose_cpus(threads, allowed_cpus())

    def measure() -> Measured:
        with pinned(cpus):
            if spec.kind == "solver":
                return measure_solver(bundle, spec, threads=threads, seconds=settings.seconds, gauge=settings.gauge)
            return measure_operator(bundle, spec, threads=threads, eager=settings.eager, seconds=settings.seconds)

    outcome = guarded(measure, cpus, settings.probes.round_trip if settings.probes else None)
    measured: Measured = outcome.result
    work = work_of(spec, measured.artifact)
    seconds, entry = measured.timing.seconds, measured.artifact.entry
    return {
        "operator": spec.operator, "dtype": spec.dtype, "storage": spec.storage, "lattice": list(spec.lattice),
        "batch": spec.batch, "fused": spec.fused, "shards": spec.shards, "threads": threads, "target": entry.target,
        "seconds": seconds, "fastest": measured.timing.fastest, "slowest": measured.timing.slowest,
        "gflops": work.flops / seconds / 1e9, "gbytes_per_s": work.least_bytes / seconds / 1e9,
        **_against_roof(work, spec, threads, seconds, settings.roofline),
        "compile_ms": bundle.record(entry.build_key)["provenance"].get("compile_ms"), "artifact_bytes": entry.code["size"],
        "cpus": list(cpus), "round_trip_ns": outcome.trips and [round(1e9 * t, 1) for t in outcome.trips], "moved": outcome.moved,
        "cpu_lost": outcome.lost, "solve": measured.solve,
        "peer": None if measured.eager is None else peer(EAGER, measured.eager.seconds, seconds),
    }  # fmt: skip


def peer(name: str, seconds: float, own: float) -> dict[str, Any]:
    """Another program's time of the same row; ratio: how many times longer it takes."""
    return {"name": name, "seconds": seconds, "ratio": seconds / own}


def _against_roof(work: Work, spec: Spec, threads: int, seconds: float, roofline: Roofline | None) -> Row:
    found: Row = {"least_bytes": work.least_bytes, "working_set": work.working_set, "intensity": work.intensity}
    if roofline is None:
        return found | {"level": None, "roof_gflops": None, "bound": None, "fraction": None}
    roof = roofline.roof(work, spec.dtype, threads)
    reached = work.flops / seconds / 1e9
    return found | {
        "level": roof.level, "roof_gflops": roof.gflops, "bound": roof.bound, "fraction": reached / roof.gflops
    }  # fmt: skip


def identity(row: Row) -> tuple[Any, ...]:
    """What makes two rows of two reports the same question."""
    return tuple(tuple(row[name]) if name == "lattice" else row[name] for name in IDENTITY)


def form(row: Row) -> str:
    """ "plain", "fused", "fused, 2 shards"."""
    return ("fused" if row["fused"] else "plain") + (f", {row['shards']} shards" if row["shards"] != 1 else "")


def precision(row: Row) -> str:
    """ "float32", or "float32, stored as float16"."""
    return str(row["dtype"]) if row["storage"] == row["dtype"] else f"{row['dtype']}, stored as {row['storage']}"


def disturbance(row: Row) -> str:
    """What a reader must know before trusting a row; "" where nothing disturbed it."""
    found = ["the CPUs were moved meanwhile"] if row["moved"] else []
    found += [f"other work had {100 * row['cpu_lost']:.0f} % of the CPU"] if (row["cpu_lost"] or 0.0) > BUSY else []
    return ", ".join(found)


def words(row: Row) -> str:
    """A row in one line: wilson_hop 8x8x8x8 float32 batch 12, 2 threads."""
    threads = f"{row['threads']} thread{'s' if row['threads'] != 1 else ''}"
    plain = "" if form(row) == "plain" else f" {form(row)}"
    return f"{row['operator']} {format_extents(row['lattice'])} {precision(row)} batch {row['batch']}{plain}, {threads}"
