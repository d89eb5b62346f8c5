"""`lqcd-aot propagator FILE`: twelve columns of the Wilson propagator, written to HDF5 with provenance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lqcd_aot.cli.measuring import say
from lqcd_aot.cli.output import print_json
from lqcd_aot.cli.solving import default_output, solve, solve_options
from lqcd_runtime.errors import EXIT_NOT_CONVERGED, EXIT_OK


@click.command("propagator")
@solve_options
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="HDF5 file. [default: NAME.propagator.h5]")
def command(output: Path | None, as_json: bool, **options: Any) -> int:
    """Solve M S = source on the configuration FILE and write S. Exit code 30 where a column did not converge."""
    from lqcd_aot.measure.hdf5 import write_measurement

    path = output or default_output(options["config"], "propagator.h5")
    solved = solve(options, [path])
    write_measurement(path, {"propagator": solved.prop.data}, provenance=solved.provenance, solver=solved.solver)
    say(f"wrote {path}")
    if as_json:
        assert solved.prop.info is not None
        print_json({"file": str(path), **solved.prop.info.as_dict()})
    return EXIT_OK if solved.prop.converged else EXIT_NOT_CONVERGED
