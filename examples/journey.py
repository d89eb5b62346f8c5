"""The whole journey, as `make demo` runs it: recipe -> artifacts -> one bundle file -> a fresh process that solves.

    python examples/journey.py [--config FILE] [--store DIR] [--out DIR] [--mass M]

Stage by stage: (1) a gauge configuration, yours or a small one thermalised here; (2) a recipe for its lattice; (3) build;
(4) pack; (5) measure and invert in a process that has neither `lqcd_aot` nor torch nor a compiler (runtime_only.py);
(6) plot. Ends with the time of each stage. Exit code 30 where a column misses the true residual of 1e-10.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BETA, SWEEPS, TOLERANCE = 6.0, 30, 1e-10

RECIPE = """schema = 1
name = "demo"
description = "What one propagator on a {lattice} configuration needs"

[axes]
operator = ["wilson", "wilson_dagger", "wilson_normal", "plaquette", "polyakov_loop"]
lattice = ["{lattice}"]
dtype = ["float64"]
batch = [12]
target = ["{target}"]

# The solver iterates in single precision; true residuals stay in double.
[[include]]
operator = ["{solver}"]
dtype = ["float32"]
"""


class Stages:
    """Runs the stages, prints what each did, and keeps their times."""

    def __init__(self) -> None:
        self.seconds: list[tuple[str, float]] = []

    def run(self, name: str, arguments: list[str], env: dict[str, str] | None = None) -> None:
        print(f"\n== {name}", flush=True)
        start = time.perf_counter()
        done = subprocess.run(arguments, env=env, check=False)
        self.seconds.append((name, time.perf_counter() - start))
        if done.returncode:
            print(f"\nstage '{name}' ended with exit code {done.returncode}", file=sys.stderr)
            sys.exit(done.returncode)

    def summary(self) -> None:
        print("\nstage                                        seconds")
        for name, seconds in self.seconds:
            print(f"  {name:<42} {seconds:8.2f}")
        print(f"  {'total':<42} {sum(s for _, s in self.seconds):8.2f}")


def thermalised(path: Path, lattice: str) -> None:
    """Write a small thermalised pure-gauge configuration (Wilson gauge action, beta = 6) unless it is there already."""
    if path.exists():
        print(f"{path}: kept from an earlier run")
        return
    from lqcd_aot.core import GaugeField, LatticeGeometry
    from lqcd_runtime.geometry import parse_extents

    geometry = LatticeGeometry(*parse_extents(lattice))
    start = time.perf_counter()

    def progress(done: int) -> None:
        left = (time.perf_counter() - start) / done * (SWEEPS - done)
        print(f"\r  sweep {done}/{SWEEPS}, {left:.0f} s left ", end="\n" if done == SWEEPS else "", flush=True)

    GaugeField.heatbath(geometry, beta=BETA, sweeps=SWEEPS, seed=2026, observer=progress).save(path, format="ildg")
    print(f"{path}: {geometry.shape}, beta {BETA}, {SWEEPS} heatbath sweeps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, help="gauge configuration file (NERSC, ILDG/SciDAC LIME or MILC v5)")
    parser.add_argument("--store", type=Path, default=Path("artifacts/store"))
    parser.add_argument("--out", type=Path, default=Path("artifacts/demo"))
    parser.add_argument("--lattice", default="16x8x8x8", help="of the configuration made here, TxZxYxX")
    parser.add_argument("--mass", type=float, default=0.1)
    parser.add_argument("--make-configuration", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make_configuration:
        thermalised(arguments.make_configuration, arguments.lattice)
        return
    journey(arguments)


def journey(arguments: argparse.Namespace) -> None:
    """All stages in order; each is a process of its own, so that what it needs is plain to see."""
    import lqcd_runtime as lqcd
    from lqcd_runtime.target import this_host

    out, stages, python = arguments.out, Stages(), sys.executable
    out.mkdir(parents=True, exist_ok=True)
    config = arguments.config
    if config is None:
        config = out / f"thermalised-{arguments.lattice}.ildg"
        stages.run(
            "1 thermalise a configuration",
            [python, __file__, "--make-configuration", str(config), "--lattice", arguments.lattice],
        )
    lattice = "x".join(map(str, lqcd.load_gauge(str(config)).lattice))
    recipe, bundle, result = out / "demo.toml", out / "demo.lqcd", out / "pion.json"
    solver = "wilson_schur_cg" if all(int(extent) % 2 == 0 for extent in lattice.split("x")) else "wilson_cg"
    target = this_host().best_target()
    recipe.write_text(RECIPE.format(lattice=lattice, target=target, solver=solver), encoding="utf-8")
    verb = [python, "-m", "lqcd_aot.cli"]
    where = ["--store", str(arguments.store)]
    stages.run("2 plan the recipe", [*verb, "plan", str(recipe), *where])
    stages.run("3 build: compile ahead of time", [*verb, "build", str(recipe), *where])
    stages.run("4 pack: one file to ship", [*verb, "pack", str(recipe), *where, "-o", str(bundle)])
    stages.run(
        "5 measure and invert, runtime only",
        [python, str(HERE / "runtime_only.py"), str(bundle), str(config), str(result), str(arguments.mass), str(TOLERANCE)],
        env={"PATH": "", "PYTHONNOUSERSITE": "1"},
    )
    plot = out / "pion.png"
    stages.run("6 plot", [python, "-c", PLOT, str(result), str(plot), f"{config.name}  {lattice}  m={arguments.mass}"])
    stages.summary()
    print(f"\nbundle {bundle}, pion correlator {result}, plot {plot}")


PLOT = """
import json, sys
from pathlib import Path
import numpy as np
from lqcd_aot.measure.plot import plot_pion
result, out, title = sys.argv[1:]
plot_pion(Path(out), np.array(json.loads(Path(result).read_text())["pion"]), title=title)
print(out)
"""

if __name__ == "__main__":
    main()
