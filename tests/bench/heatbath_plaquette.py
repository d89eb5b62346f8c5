"""Heatbath at beta = 6.0 on 8^4: mean plaquette against the published 0.5937, with an error that knows of autocorrelations.

    python tests/bench/heatbath_plaquette.py [--sweeps 400] [--thermalise 100] [--out heatbath_plaquette.png]

Not a unit test: it takes some minutes. Prints one JSON line, writes a plot, exits 1 when the mean is more than three standard
errors off. Error: the largest over bin sizes 1, 2, 4, ... with at least 16 bins each.
Reference: plaquette of the SU(3) Wilson gauge action at beta = 6.0, 0.5937 (large lattices; on 8^4 the finite-size shift is
below the error reached here).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

import torch

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.core.heatbath import Heatbath
from lqcd_aot.observables import plaquette

REFERENCE = 0.5937


def binned_errors(history: torch.Tensor) -> list[tuple[int, float]]:
    """(bin size, standard error of the mean from bins of that size), sizes 1, 2, 4, ... with at least 16 bins."""
    errors, size = [], 1
    while len(history) // size >= 16:
        bins = history[: len(history) // size * size].reshape(-1, size).mean(1)
        errors.append((size, float(bins.std()) / math.sqrt(len(bins))))
        size *= 2
    return errors


def plot(history: torch.Tensor, thermalise: int, errors: list[tuple[int, float]], mean: float, error: float, path: Path) -> None:
    """History with mean and reference; error against bin size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(2, 1))
    left.plot(history.tolist(), lw=0.8)
    left.axvspan(0, thermalise, color="0.9", label="thermalisation, not averaged")
    left.axhline(REFERENCE, color="k", ls="--", lw=1, label=f"published {REFERENCE}")
    left.axhspan(mean - error, mean + error, color="C1", alpha=0.5, label=f"mean {mean:.5f} +- {error:.5f}")
    left.set(xlabel="sweep", ylabel="plaquette", ylim=(mean - 0.012, mean + 0.012), title="SU(3) heatbath, beta = 6.0, 8^4")
    left.legend(loc="lower right", fontsize=8)
    right.semilogx([s for s, _ in errors], [e for _, e in errors], "o-", base=2)
    right.set(xlabel="bin size (sweeps)", ylabel="standard error of the mean", title="binning")
    right.set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=400)
    parser.add_argument("--thermalise", type=int, default=100)
    parser.add_argument("--overrelaxation", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("heatbath_plaquette.png"))
    arguments = parser.parse_args()

    geom = LatticeGeometry(T=8, Z=8, Y=8, X=8)
    chain = Heatbath(GaugeField.cold(geom, dtype=torch.complex128).tensor, 6.0, arguments.seed)
    history, start = [], time.perf_counter()
    for _ in range(arguments.thermalise + arguments.sweeps):
        chain.sweep(arguments.overrelaxation)
        history.append(plaquette(chain.links))
    seconds = time.perf_counter() - start
    measured = torch.tensor(history[arguments.thermalise :], dtype=torch.float64)
    errors = binned_errors(measured)
    mean, error = float(measured.mean()), max(e for _, e in errors)
    plot(torch.tensor(history), arguments.thermalise, errors, mean, error, arguments.out)
    deviation = (mean - REFERENCE) / error
    result = {
        "mean": mean, "error": error, "naive_error": errors[0][1], "reference": REFERENCE, "standard_errors_off": deviation,
        "sweeps": arguments.sweeps, "overrelaxation": arguments.overrelaxation, "seconds_per_sweep": seconds / len(history),
    }  # fmt: skip
    print(json.dumps(result))
    return 0 if abs(deviation) <= 3.0 else 1


if __name__ == "__main__":
    sys.exit(main())
