"""`lqcd-aot pion FILE`: the pion correlator, as HDF5 with provenance and as a plot with its effective mass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lqcd_aot.cli.measuring import say
from lqcd_aot.cli.output import print_json
from lqcd_aot.cli.solving import default_output, solve, solve_options
from lqcd_runtime.errors import EXIT_NOT_CONVERGED, EXIT_OK


@click.command("pion")
@solve_options
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="HDF5 file. [default: NAME.pion.h5]")
@click.option("--plot", type=click.Path(path_type=Path), default=None, help="PNG file. [default: beside the HDF5 file]")
def command(output: Path | None, plot: Path | None, as_json: bool, **options: Any) -> int:
    """Pion correlator on the configuration FILE from a point source. Exit code 30 where a column did not converge."""
    import lqcd_runtime as lqcd
    from lqcd_aot.measure.hdf5 import write_measurement
    from lqcd_aot.measure.plot import plot_pion

    path = output or default_output(options["config"], "pion.h5")
    picture = plot or path.with_suffix(".png")
    solved = solve(options, [path, picture])
    correlator = lqcd.pion_correlator(solved.prop)
    write_measurement(path, {"pion": correlator}, provenance=solved.provenance, solver=solved.solver)
    inputs = " ".join(f"{name}={options[name]}" for name in ("mass", "kappa") if options[name] is not None)
    plot_pion(picture, correlator, title=f"{options['config'].name}  {solved.provenance['lattice']}  Wilson {inputs}")
    say(f"wrote {path} and {picture}")
    if as_json:
        print_json({"file": str(path), "plot": str(picture), "pion": correlator, "converged": solved.prop.converged})
    else:
        for t, value in enumerate(correlator):
            click.echo(f"{t:4d}  {float(value):.10e}")
    return EXIT_OK if solved.prop.converged else EXIT_NOT_CONVERGED
