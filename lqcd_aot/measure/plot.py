"""The pion correlator and its effective mass as one PNG: what a physicist looks at first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lqcd_aot.measure.hdf5 import written_whole
from lqcd_aot.settings import plotting_folders

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _pyplot() -> Any:
    """matplotlib without a display and without remarks on its caches: only the result is the user's concern."""
    import logging

    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)  # "building the font cache; this may take a moment"
    try:
        with plotting_folders():
            import matplotlib

            matplotlib.use("agg")
            from matplotlib import pyplot
    finally:
        log.setLevel(level)
    return pyplot


def plot_pion(path: Path, correlator: NDArray[Any], *, title: str) -> None:
    """Two panels: |C(t)| on a logarithmic axis, and the cosh effective mass in lattice units.

    correlator: real [T]. Errors: LqcdError where `path` cannot be written. Source: lqcd_runtime.effective_mass.
    """
    import numpy as np

    from lqcd_runtime.observables.correlators import effective_mass

    plt = _pyplot()
    c = np.asarray(correlator).real
    times = np.arange(len(c))
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.0, 6.5), sharex=True, height_ratios=(3, 2), layout="constrained")
    top.semilogy(times, np.abs(c), "o", color="#1f4e79", markersize=5)
    top.set_ylabel(r"$C_\pi(t)$")
    top.set_title(title, fontsize=10)
    top.grid(True, which="major", alpha=0.3)
    mass = effective_mass(c, "cosh")[1:-1]
    bottom.plot(times[1:-1], mass, "s", color="#b3501d", markersize=5)
    bottom.set_ylabel(r"$a\,m_{\mathrm{eff}}(t)$, cosh")
    bottom.set_xlabel(r"$t/a$ from the quark source")
    bottom.grid(True, alpha=0.3)
    if np.isfinite(mass).any():
        bottom.set_ylim(0, 1.2 * float(np.nanmax(mass)))
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=140, format="png")
    plt.close(figure)
