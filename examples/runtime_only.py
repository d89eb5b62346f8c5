"""What a shipped bundle needs on the user's machine: Python, numpy, lqcd_runtime. No compiler, no torch, no lqcd_aot.

    python examples/runtime_only.py BUNDLE CONFIGURATION RESULT.json MASS TOLERANCE

Proves it, too: importing `lqcd_aot` or torch is made impossible first. Exit code 30 where a column did not converge.
"""

from __future__ import annotations

import json
import sys
import time


class Absent:
    """An import hook for which some packages do not exist."""

    names = ("lqcd_aot", "torch", "ziglang")

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r} (removed on purpose)")


def main(bundle_path: str, config: str, result_path: str, mass: float, tolerance: float) -> int:
    start = time.perf_counter()
    import lqcd_runtime as lqcd

    with lqcd.open(bundle_path) as bundle:
        gauge = lqcd.load_gauge(config)
        print(f"configuration {config}: {gauge.format}, lattice {'x'.join(map(str, gauge.lattice))}")
        print(f"plaquette     {lqcd.observe(bundle, gauge, 'plaquette'):.12f}")
        D = bundle.operator("wilson", gauge=gauge, mass=mass, t_boundary=-1, dtype="float64", batch=12)
        print(f"operator      {D.entry.name} ready after {time.perf_counter() - start:.3f} s")
        prop = lqcd.propagator(D, lqcd.point_source((0, 0, 0, 0)), tol=tolerance, precision="mixed")
        pion = lqcd.pion_correlator(prop)
    info = prop.info
    for number, column in enumerate(prop.columns):
        print(
            f"  spin {number // 3} colour {number % 3}: {column.iterations} iterations, true residual {column.final_residual:.2e}"
        )
    speed = info.flops / info.seconds / 1e9
    print(f"solve         {info.iterations} iterations, {info.seconds:.2f} s, {speed:.1f} GFLOP/s (1320 flops a site)")
    print(f"              by {info.engine}")
    print("pion          " + " ".join(f"{c:.8g}" for c in pion[:6]) + " ...")
    with open(result_path, "w", encoding="utf-8") as f:
        json.dump({"pion": [float(c) for c in pion], "converged": bool(info.converged), "mass": mass}, f)
    return 0 if info.converged else 30


if __name__ == "__main__":
    sys.meta_path.insert(0, Absent())  # type: ignore[arg-type]
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5])))
