"""Fresh processes: how long from the start of Python to the first propagator column, step by step.

    interpreter   from the call that starts the process to its first line
    numpy         its import, which nobody can do without: shown apart
    runtime       import lqcd_runtime
    open          the bundle: mapped, index and manifest verified
    gauge         the configuration: read, checksums, unitarity, plaquette
    operator      selected, digest compared, loaded, links packed
    solve         one column to a true residual of 1e-10, mixed precision
    exit          until the process is gone; not part of the total

Owns the child program and the medians. `without_numpy_and_solve` is the rest of the way to the first column, Python included.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from lqcd_aot.bench.machine import pinned
from lqcd_runtime.signature import Spec

STEPS = ("interpreter", "numpy", "runtime", "open", "gauge", "operator", "solve", "exit")
OWN = ("interpreter", "runtime", "open", "gauge", "operator")
REPEATS = 7
DEFAULT_LATTICE = (8, 8, 8, 8)
MASS = 0.1
CHILD = """
import time
clock = time.clock_gettime
at = [clock(time.CLOCK_MONOTONIC)]
def step():
    at.append(clock(time.CLOCK_MONOTONIC))
import numpy
step()
import lqcd_runtime as lqcd
step()
import sys
bundle = lqcd.open(sys.argv[1])
step()
gauge = lqcd.load_gauge(sys.argv[2])
step()
D = bundle.operator("wilson", gauge=gauge, mass=float(sys.argv[3]), t_boundary=-1, threads=1)
step()
x, info = lqcd.solve(D, lqcd.point_source((0, 0, 0, 0), 0, 0), tol=1e-10, precision="mixed", compiled=True)
step()
print(*at, bool(info.converged), info.iterations, info.final_residual)
"""


def specs(lattice: Sequence[int]) -> list[Spec]:
    """What the bundle of a first column holds."""
    return [Spec("wilson", lattice), Spec("wilson_schur_cg", lattice, "float32")]


def start_up(bundle: Path, configuration: Path, cpus: Sequence[int], *, repeats: int = REPEATS) -> dict[str, Any]:
    """{"steps": {name: [median, fastest, slowest]}, "total", "without_numpy_and_solve", "iterations", "residual"}, in seconds.

    The first process is not counted: it fills the caches of the file system. Errors: CalledProcessError where a child fails.
    """
    runs: list[dict[str, float]] = []
    words: list[str] = []
    with pinned(cpus):
        for number in range(1 + repeats):
            spent, words = _once([str(bundle), str(configuration), str(MASS)])
            if number:
                runs.append(spent)
    steps = {name: _spread([run[name] for run in runs]) for name in STEPS}
    return {
        "steps": steps,
        "total": _spread([sum(run.values()) - run["exit"] for run in runs]),
        "without_numpy_and_solve": _spread([sum(run[name] for name in OWN) for run in runs]),
        "converged": words[0] == "True",
        "iterations": int(words[1]),
        "residual": float(words[2]),
    }


def _once(arguments: list[str]) -> tuple[dict[str, float], list[str]]:
    start = time.clock_gettime(time.CLOCK_MONOTONIC)
    done = subprocess.run([sys.executable, "-I", "-c", CHILD, *arguments], capture_output=True, text=True, check=True)
    end = time.clock_gettime(time.CLOCK_MONOTONIC)
    *moments, converged, iterations, residual = done.stdout.split()
    at = [start, *map(float, moments), end]
    spans = [b - a for a, b in pairwise(at)]
    return dict(zip(STEPS, spans, strict=True)), [converged, iterations, residual]


def _spread(values: list[float]) -> list[float]:
    return [statistics.median(values), min(values), max(values)]
