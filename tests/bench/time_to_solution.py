"""Time to solution: twelve columns of a point propagator, every engine in the same rounds, ratios in one table.

    python tests/bench/time_to_solution.py CONFIGURATION [--tol 1e-10] [--threads 1] [--rounds 3] [--masses 0.1,near]
        [--store artifacts/store] [--no-torch] [--json FILE]

Not a unit test. "near" is scanned for: the mass, in steps of 0.05 downwards, at which the even-odd CG takes the most iterations.
Every engine must reach the true residual `tol` in float64 on every column, else its row says what it reached. Times are the
fastest of the rounds; torch eager (complex128, CG on the normal equations) solves one column once, times twelve.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import lqcd_runtime as lqcd
from lqcd_aot.measure.ensure import Origin, with_artifacts
from lqcd_runtime.signature import Spec

BATCH = 12
ENGINES: dict[str, dict[str, Any]] = {
    "mixed even-odd CG": {"precision": "mixed", "even_odd": True},
    "mixed even-odd BiCGStab": {"precision": "mixed", "even_odd": True, "method": "bicgstab"},
    "float64 even-odd CG": {"even_odd": True},
    "mixed CG": {"precision": "mixed", "even_odd": False},
    "float64 CG": {"even_odd": False},
    "float64 CG on the host": {"compiled": False},
}
OURS = "float64 CG"


def specs(lattice: tuple[int, ...]) -> list[Spec]:
    """What the engines need."""
    out = [Spec(f"wilson{form}", lattice, batch=BATCH) for form in ("", "_dagger", "_normal")]
    out += [
        Spec(word, lattice, dtype, batch=BATCH) for word in ("wilson_cg", "wilson_schur_cg") for dtype in ("float64", "float32")
    ]
    return [*out, Spec("wilson_schur_bicgstab", lattice, "float32", batch=BATCH)]


def operator(bundle: Any, gauge: Any, mass: float, threads: int) -> Any:
    return bundle.operator("wilson", gauge=gauge, mass=mass, t_boundary=-1, batch=BATCH, threads=threads)


def near_critical(bundle: Any, gauge: Any, threads: int) -> tuple[float, dict[float, int]]:
    """(the mass with the most iterations, {mass: iterations}) of one column to 1e-8."""
    source = lqcd.point_source((0, 0, 0, 0), 0, 0)
    counts: dict[float, int] = {}
    mass = 0.1
    while True:
        _, info = lqcd.solve(operator(bundle, gauge, mass, threads), source, tol=1e-8, precision="mixed", max_iterations=5000)
        counts[mass] = info.iterations
        if info.iterations < max(counts.values()):
            return max(counts, key=lambda m: counts[m]), counts
        mass = round(mass - 0.05, 10)


def measure(D: Any, tol: float, rounds: int) -> dict[str, dict[str, Any]]:
    """{engine: fastest seconds, largest iteration count, reason, true residual}."""
    source = lqcd.point_source((0, 0, 0, 0)).on(D.lattice)
    out: dict[str, dict[str, Any]] = {name: {"seconds": float("inf")} for name in ENGINES}
    for number in range(rounds + 1):
        for name, words in ENGINES.items():
            if name.endswith("host") and number > 1:
                continue
            start = time.perf_counter()
            _, info = lqcd.solve(D, source, tol=tol, max_iterations=5000, **words)
            spent = time.perf_counter() - start
            if number > 0:
                out[name]["seconds"] = min(out[name]["seconds"], spent)
            out[name] |= {"iterations": info.iterations, "reason": str(info.reason), "residual": info.final_residual}
    return out


def torch_eager(gauge: Any, mass: float, tol: float, threads: int) -> dict[str, Any]:
    """One column, complex128, times twelve."""
    import torch

    from lqcd_aot.dirac import WilsonDirac
    from lqcd_runtime.solvers import cg

    torch.set_num_threads(threads)
    links = torch.as_tensor(np.asarray(gauge.links, np.complex128))
    module = WilsonDirac(mass, t_boundary=-1)
    b = torch.zeros((1, *gauge.lattice, 4, 3), dtype=torch.complex128)
    b[0, 0, 0, 0, 0, 0, 0] = 1.0
    with torch.inference_mode():
        start = time.perf_counter()
        _, info = cg(lambda v: module.normal(v, links), module.dagger(b, links), tol=tol, max_iterations=5000)
        spent = time.perf_counter() - start
    return {"seconds": BATCH * spent, "iterations": info.iterations, "reason": str(info.reason), "residual": info.final_residual}


def show(mass: float, rows: dict[str, dict[str, Any]]) -> None:
    print(f"\nmass {mass:g}: twelve columns")
    print(f"{'engine':<26} {'iterations':>10} {'seconds':>9} {'faster than ' + OURS:>23}  {'true residual':>13}  reason")
    for name, row in rows.items():
        ratio = rows[OURS]["seconds"] / row["seconds"]
        numbers = f"{row['iterations']:>10} {row['seconds']:>9.3f} {ratio:>22.2f}x  {row['residual']:>13.1e}"
        print(f"{name:<26} {numbers}  {row['reason']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configuration")
    parser.add_argument("--tol", type=float, default=1e-10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--masses", default="0.1,near")
    parser.add_argument("--store", type=Path, default=Path("artifacts/store"))
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    gauge = lqcd.load_gauge(arguments.configuration)
    report: dict[str, Any] = {
        "configuration": Path(arguments.configuration).name,
        "tol": arguments.tol,
        "threads": arguments.threads,
    }
    with with_artifacts(specs(gauge.lattice), Origin(None, arguments.store), print) as bundle:
        for word in arguments.masses.split(","):
            if word == "near":
                mass, counts = near_critical(bundle, gauge, arguments.threads)
                print("\nscan: " + ", ".join(f"m={m:g}: {n}" for m, n in counts.items()))
            else:
                mass = float(word)
            rows = measure(operator(bundle, gauge, mass, arguments.threads), arguments.tol, arguments.rounds)
            if not arguments.no_torch:
                rows["torch eager CG"] = torch_eager(gauge, mass, arguments.tol, arguments.threads)
            show(mass, rows)
            report[f"mass {mass:g}"] = rows
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
