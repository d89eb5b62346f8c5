"""Fresh processes: how long until something useful has happened.

Figures: bare Python; `import lqcd_runtime`; numpy's import; from process start to the first applied operator on a bundle.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

IMPORT = "import time; t = time.perf_counter(); import lqcd_runtime; print(time.perf_counter() - t)"
FIRST_APPLICATION = """
import sys, time
t0 = time.perf_counter()
import numpy
t1 = time.perf_counter()
import lqcd_runtime as lqcd
with lqcd.open(sys.argv[1]) as bundle:
    entry = next(e for e in bundle.entries() if e.spec.operator == "wilson" and not e.spec.fused and e.spec.batch == 1)
    lattice = entry.spec.lattice
    links = numpy.broadcast_to(numpy.eye(3, dtype=complex), (*lattice, 4, 3, 3))
    psi = numpy.ones((*lattice, 4, 3), complex)
    D = bundle.operator("wilson", gauge=numpy.ascontiguousarray(links), mass=0.1, dtype=entry.spec.dtype)
    D(psi.astype("complex64" if entry.spec.dtype == "float32" else "complex128"))
print(t1 - t0)
"""


def start_up(bundle_path: str, *, repeats: int = 7) -> dict[str, float]:
    """Medians in seconds over `repeats` fresh processes each.

    Keys: bare_python, import_lqcd_runtime (on top of bare Python), first_application (whole process), numpy_import (its share).
    """
    bare = [_wall([sys.executable, "-I", "-c", "pass"])[0] for _ in range(repeats)]
    runtime = [_wall([sys.executable, "-I", "-c", IMPORT])[1] for _ in range(repeats)]
    whole = [_wall([sys.executable, "-I", "-c", FIRST_APPLICATION, bundle_path]) for _ in range(repeats)]
    return {
        "bare_python": _median(bare),
        "import_lqcd_runtime": _median([float(out) for out in runtime]),
        "first_application": _median([seconds for seconds, _ in whole]),
        "numpy_import": _median([float(out) for _, out in whole]),
    }


def _wall(arguments: list[str]) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout


def _median(values: list[float]) -> float:
    return statistics.median(values)
