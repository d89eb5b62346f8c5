"""One row per solver artifact: the time of an iteration of all right-hand sides, vectors staying packed.

Flops are those of the two applications of M in an iteration (1320 per site and hop, 504 per clover term), so vector arithmetic
lowers the figure. Bytes are the least: links of two hops; of every vector what an iteration reads and writes, were each sweep's
neighbours in cache: 11 fields of 24 reals (2 + 3 in the sweeps, one more each for an even-odd half sweep, 5 in the update).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from lqcd_aot.bench.timing import Timing
from lqcd_runtime.signature import OPERATORS, Spec

if TYPE_CHECKING:
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.compiled_solver import CompiledSolver

# Iterations between two starts: few enough that no residual leaves the range of single precision.
ITERATIONS, ROUNDS, FIELDS = 16, 9, 11


def row(bundle: Bundle, spec: Spec, *, threads: int, seconds: float) -> dict[str, Any]:
    """Measure one solver artifact. Errors: NoVariant."""
    solver = _solver(bundle, spec, threads)
    timing = time_iterations(solver, seconds)
    return {
        "operator": spec.operator,
        "dtype": spec.dtype,
        "storage": spec.storage,
        "lattice": list(spec.lattice),
        "batch": spec.batch,
        "fused": spec.fused,
        "shards": spec.shards,
        "threads": threads,
        "target": solver.artifact.entry.target,
        "seconds": timing.seconds,
        "fastest": timing.fastest,
        "slowest": timing.slowest,
        "gflops": 2 * solver.flops * spec.batch / timing.seconds / 1e9,
        "gbytes_per_s": least_bytes(spec) / timing.seconds / 1e9,
        "peer": None,
    }


def least_bytes(spec: Spec) -> int:
    """Bytes an iteration must move; see the module."""
    real = 4 if spec.storage == "float32" else 8
    sites = spec.lattice[0] * spec.lattice[1] * spec.lattice[2] * spec.lattice[3]
    share = 2 if OPERATORS[spec.operator]["parity"] == "even" else 1
    return sites * real * (2 * 4 * 18 + FIELDS * 24 * spec.batch // share)


def time_iterations(solver: CompiledSolver, seconds: float) -> Timing:
    """Seconds of an iteration: median, fastest and slowest round; starting again between rounds is not timed."""
    import numpy as np

    from lqcd_runtime.fields import random_spinor

    b = np.stack([random_spinor(solver.spec.lattice, 1, column) for column in range(solver.batch)])
    factors = [1.0 / float(np.linalg.norm(column)) for column in b]

    def once() -> float:
        solver.begin(b, factors, [0] * solver.batch)
        start = time.perf_counter()
        solver.resident(ITERATIONS)
        return (time.perf_counter() - start) / ITERATIONS

    first = once()
    rounds = max(ROUNDS, min(200, int(seconds / (first * ITERATIONS))))
    each = sorted(once() for _ in range(rounds))
    return Timing(each[rounds // 2], each[0], each[-1])


def _solver(bundle: Bundle, spec: Spec, threads: int) -> CompiledSolver:
    from lqcd_aot.bench.operators import INPUTS
    from lqcd_runtime.arrays import links_of
    from lqcd_runtime.compiled_solver import CompiledSolver
    from lqcd_runtime.fields import random_links
    from lqcd_runtime.inputs import resolve
    from lqcd_runtime.packed import pack_gauge

    artifact = bundle.load(bundle.select(spec).choice)
    given: dict[str, Any] = {name: INPUTS[name] for name in OPERATORS[spec.operator]["inputs"]}
    inputs = resolve(spec.operator, t_boundary=-1, **given)
    links = random_links(spec.lattice, 1)
    packed = pack_gauge(artifact, None, links_of(links, spec.dtype), inputs, threads)
    return CompiledSolver(artifact, packed, links, inputs, threads)
