"""Heatbath at beta = 6.0: mean plaquette against the published one, and an identity that is exact in any volume.

    python tests/bench/heatbath_plaquette.py [--extent 8] [--sweeps 400] [--thermalise 100] [--out heatbath_plaquette.png]

Not a unit test: it takes minutes. Prints one JSON line, writes a plot, exits 1 when one of two checks fails:
plaquette: within three standard errors plus 0.0006 (8/extent)^4 of 0.593678(24), the value of 16^4 (G. Boyd et al., Nucl. Phys. B
    469 (1996) 419). Small tori sit above it: long chains of this code give 0.5968 on 4^4, 0.5942 on 8^4, 0.5939 on 12^4.
Schwinger-Dyson: 4/3 <Re tr U C^dag> - 1 <|P[U C^dag]|^2> = 0 (integration by parts on one link) within three standard errors:
    a wrong heatbath cannot hide behind the volume.
Error: the largest over bin sizes 1, 2, 4, ... with at least 16 bins each.
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
from lqcd_aot.observables.algebra import wilson_force

BETA = 6.0
REFERENCE = 0.593678
# Largest shift that is put down to the volume on 8^4; it falls as the inverse volume.
FINITE_SIZE = 0.0006


def binned_errors(history: torch.Tensor) -> list[tuple[int, float]]:
    """(bin size, standard error of the mean from bins of that size), sizes 1, 2, 4, ... with at least 16 bins."""
    errors, size = [], 1
    while len(history) // size >= 16:
        bins = history[: len(history) // size * size].reshape(-1, size).mean(1)
        errors.append((size, float(bins.std()) / math.sqrt(len(bins))))
        size *= 2
    return errors


def mean_and_error(history: torch.Tensor) -> tuple[float, float]:
    """Mean, and the largest binned standard error."""
    return float(history.mean()), max(error for _, error in binned_errors(history))


def identity(links: torch.Tensor) -> float:
    """Relative violation of the Schwinger-Dyson equation by one configuration: fluctuates around zero."""
    left = 4.0 / 3.0 * 18.0 * plaquette(links)
    right = BETA / 6.0 * float(wilson_force(links).abs().square().sum((-2, -1)).mean())
    return (left - right) / left


def plot(history: torch.Tensor, thermalise: int, extent: int, path: Path) -> None:
    """History with mean and reference; error against bin size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    errors = binned_errors(history[thermalise:])
    mean, error = mean_and_error(history[thermalise:])
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(2, 1))
    left.plot(history.tolist(), lw=0.8)
    left.axvspan(0, thermalise, color="0.9", label="thermalisation, not averaged")
    left.axhline(REFERENCE, color="k", ls="--", lw=1, label=f"published, 16^4: {REFERENCE}")
    left.axhspan(mean - error, mean + error, color="C1", alpha=0.5, label=f"mean {mean:.5f} +- {error:.5f}")
    left.set(xlabel="sweep", ylabel="plaquette", title=f"SU(3) heatbath, beta = {BETA}, {extent}^4")
    left.set_ylim(mean - 0.012, mean + 0.012)
    left.legend(loc="lower right", fontsize=8)
    right.semilogx([s for s, _ in errors], [e for _, e in errors], "o-", base=2)
    right.set(xlabel="bin size (sweeps)", ylabel="standard error of the mean", title="binning")
    right.set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extent", type=int, default=8)
    parser.add_argument("--sweeps", type=int, default=400)
    parser.add_argument("--thermalise", type=int, default=100)
    parser.add_argument("--overrelaxation", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("heatbath_plaquette.png"))
    arguments = parser.parse_args()

    n = arguments.extent
    chain = Heatbath(GaugeField.cold(LatticeGeometry(n, n, n, n), dtype=torch.complex128).tensor, BETA, arguments.seed)
    history, violations, start = [], [], time.perf_counter()
    for sweep in range(arguments.thermalise + arguments.sweeps):
        chain.sweep(arguments.overrelaxation)
        links = chain.links
        history.append(plaquette(links))
        if sweep >= arguments.thermalise:
            violations.append(identity(links))
    seconds = time.perf_counter() - start
    plaquettes = torch.tensor(history, dtype=torch.float64)
    plot(plaquettes, arguments.thermalise, n, arguments.out)
    mean, error = mean_and_error(plaquettes[arguments.thermalise :])
    violation, violation_error = mean_and_error(torch.tensor(violations, dtype=torch.float64))
    result = {
        "extent": n, "mean": mean, "error": error, "reference": REFERENCE, "standard_errors_off": (mean - REFERENCE) / error,
        "schwinger_dyson": violation, "schwinger_dyson_error": violation_error,
        "sweeps": arguments.sweeps, "overrelaxation": arguments.overrelaxation, "seconds_per_sweep": seconds / len(history),
    }  # fmt: skip
    print(json.dumps(result))
    allowed = 3.0 * error + FINITE_SIZE * (8.0 / n) ** 4
    return 0 if abs(mean - REFERENCE) <= allowed and abs(violation) <= 3.0 * violation_error else 1


if __name__ == "__main__":
    sys.exit(main())
