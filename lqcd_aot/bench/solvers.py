"""Solver artifacts under the clock: the time of an iteration of all right-hand sides, and of a whole solve to 1e-10.

The iteration is timed on packed vectors; the solve is `lqcd_runtime.solve` as a user calls it, its residual true and in double
precision. Owns both loops; knows no roofline.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from lqcd_aot.bench.artifacts import solved
from lqcd_aot.bench.operators import Measured, inputs_of, links_for, operator_of
from lqcd_aot.bench.timing import Timing
from lqcd_runtime.errors import LqcdError
from lqcd_runtime.signature import OPERATORS, Spec

if TYPE_CHECKING:
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.compiled_solver import CompiledSolver

# Iterations between two starts: few enough that no residual leaves the range of single precision.
ITERATIONS, ROUNDS = 16, 9
TOLERANCE, MOST_ITERATIONS, SOLVES = 1e-10, 5000, 3
ENOUGH = 2.0  # seconds


def measure_solver(bundle: Bundle, spec: Spec, *, threads: int, seconds: float, gauge: Any = None) -> Measured:
    """Time an iteration, then solves. gauge: for the solves, where its lattice is that of the spec. Errors: NoVariant."""
    solver = solver_of(bundle, spec, threads)
    timing = time_iterations(solver, seconds)
    return Measured(timing, solver.artifact, solve=time_solve(bundle, spec, threads, gauge))


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


def time_solve(bundle: Bundle, spec: Spec, threads: int, gauge: Any = None) -> dict[str, Any]:
    """Columns of a point propagator to a true residual of 1e-10 with this artifact, in mixed precision where it is not float64.

    {"seconds", "fastest", "slowest", "iterations", "residual", "reason", "engine", "gauge"}, or {"reason"} where the runtime has
    no way to use the artifact.
    """
    import lqcd_runtime as lqcd

    links = gauge if gauge is not None and gauge.lattice == spec.lattice else links_for(spec.lattice)
    words: dict[str, Any] = {
        "tol": TOLERANCE, "max_iterations": MOST_ITERATIONS, "method": OPERATORS[spec.operator]["method"], "compiled": True,
        "even_odd": OPERATORS[spec.operator]["parity"] == "even", "precision": "double" if spec.dtype == "float64" else "mixed",
    }  # fmt: skip
    if spec.storage != spec.dtype:
        words["storage"] = spec.storage
    try:
        D = operator_of(bundle, solved(spec), threads, links)
        b = lqcd.point_source((0, 0, 0, 0)).on(spec.lattice)[: spec.batch]
        spent: list[float] = []
        # The first one warms up, unless it is so long that warming up is no part of it.
        while len(spent) < 1 + SOLVES and sum(spent) < ENOUGH:
            start = time.perf_counter()
            _, info = lqcd.solve(D, b, **words)
            spent.append(time.perf_counter() - start)
    except LqcdError as why:
        return {"reason": why.fact}
    name = spec.name
    if not str(info.engine).startswith(name):
        return {"reason": f"the runtime solves with {info.engine}, not with {name}"}
    each = sorted(spent[1:] or spent)
    return {
        "seconds": statistics.median(each), "fastest": each[0], "slowest": each[-1], "columns": len(b),
        "iterations": info.iterations, "residual": info.final_residual, "reason": str(info.reason),
        "gauge": "random links" if links is not gauge else "configuration",
    }  # fmt: skip


def solver_of(bundle: Bundle, spec: Spec, threads: int) -> CompiledSolver:
    """The solver of exactly this spec on random links. Errors: NoVariant."""
    from lqcd_runtime.arrays import links_of
    from lqcd_runtime.compiled_solver import CompiledSolver
    from lqcd_runtime.inputs import resolve
    from lqcd_runtime.packed import pack_gauge

    artifact = bundle.load(bundle.select(spec).choice)
    inputs = resolve(spec.operator, t_boundary=-1, **inputs_of(spec.operator))  # type: ignore[arg-type]
    links = links_for(spec.lattice)
    packed = pack_gauge(artifact, None, links_of(links, spec.dtype), inputs, threads)
    return CompiledSolver(artifact, packed, links, inputs, threads)
