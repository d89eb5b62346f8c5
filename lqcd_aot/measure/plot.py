"""The pion correlator and its effective mass as one PNG: what a physicist looks at first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lqcd_aot.measure.hdf5 import written_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cosh_mass(correlator: NDArray[Any]) -> NDArray[Any]:
    """Effective mass m_eff(t) from C(t)/C(t+1) = cosh(m (T/2 - t)) / cosh(m (T/2 - t - 1)), lattice units.

    correlator: [T], real and periodic; result [T//2], NaN where the ratio has no solution. Errors: none; a correlator that is
    not positive gives NaN. Source: solved by bisection, monotonic in m.
    """
    import numpy as np

    extent = len(correlator)
    out = np.full(extent // 2, np.nan)
    for t in range(extent // 2):
        if not (correlator[t] > 0 and correlator[t + 1] > 0):
            continue
        ratio, a, b = np.log(correlator[t] / correlator[t + 1]), extent / 2 - t, extent / 2 - t - 1
        low, high = 0.0, 20.0
        if not 0 < ratio < _log_cosh(high * a) - _log_cosh(high * b):
            continue
        for _ in range(80):
            middle = (low + high) / 2
            if _log_cosh(middle * a) - _log_cosh(middle * b) < ratio:
                low = middle
            else:
                high = middle
        out[t] = (low + high) / 2
    return out


def _log_cosh(x: float) -> float:
    import math

    return abs(x) + math.log1p(math.exp(-2 * abs(x))) - math.log(2)


def plot_pion(path: Path, correlator: NDArray[Any], *, title: str) -> None:
    """Two panels: |C(t)| on a logarithmic axis, and the cosh effective mass. Errors: LqcdError where `path` cannot be written."""
    import matplotlib

    matplotlib.use("agg")
    import numpy as np
    from matplotlib import pyplot as plt

    c = np.asarray(correlator).real
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.0, 6.5), sharex=True, height_ratios=(3, 2), layout="constrained")
    top.semilogy(np.arange(len(c)), np.abs(c), "o", color="#1f4e79", markersize=5)
    top.set_ylabel(r"$C_\pi(t)$")
    top.set_title(title, fontsize=10)
    top.grid(True, which="major", alpha=0.3)
    mass = cosh_mass(c)
    bottom.plot(np.arange(len(mass)) + 0.5, mass, "s", color="#b3501d", markersize=5)
    bottom.set_ylabel(r"$a\,m_{\mathrm{eff}}(t)$ (cosh)")
    bottom.set_xlabel(r"$t/a$")
    bottom.grid(True, alpha=0.3)
    if np.isfinite(mass).any():
        bottom.set_ylim(0, 1.15 * float(np.nanmax(mass)))
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=140, format="png")
    plt.close(figure)
