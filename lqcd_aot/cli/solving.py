"""The options of a Wilson solve, and the solve itself: what `propagator` and `pion` do before they part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from lqcd_aot.cli.measuring import DTYPES, origin, origin_options, parse_point, provenance, read_configuration, say, solve_columns

if TYPE_CHECKING:
    from lqcd_runtime.observables.propagator import Propagator

FAMILY = ("wilson", "wilson_dagger", "wilson_normal")
BATCH = 12


class Solved(NamedTuple):
    """A propagator, with what must be written beside it."""

    prop: Propagator
    provenance: dict[str, object]
    solver: dict[str, Any]


def solve_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """FILE and everything that says which propagator; beside them the options of `origin_options`."""
    decorators = (
        click.argument("config", metavar="FILE", type=click.Path(path_type=Path)),
        click.option("--mass", type=float, default=None, help="Bare quark mass; or --kappa."),
        click.option("--kappa", type=float, default=None, help="Hopping parameter 1/(8+2m)."),
        click.option("--source", default="0,0,0,0", show_default=True, metavar="T,Z,Y,X", help="Site of the point source."),
        click.option("--periodic", is_flag=True, help="Periodic fermions in time. [default: antiperiodic]"),
        click.option("--dtype", type=DTYPES, default="float64", show_default=True, help="Arithmetic of the artifact."),
        click.option("--tol", type=float, default=1e-10, show_default=True, help="True residual |b - Mx| / |b| of every column."),
        click.option("--max-iterations", type=click.IntRange(min=1), default=10_000, show_default=True),
        origin_options,
    )
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def solve(options: dict[str, Any]) -> Solved:
    """From the command line's options to a propagator. Errors: UsageError, GaugeFileError, NoVariant, CompileError."""
    from lqcd_aot.measure.ensure import with_artifacts
    from lqcd_runtime.errors import UsageError
    from lqcd_runtime.signature import Spec

    if (options["mass"] is None) == (options["kappa"] is None):
        raise UsageError("propagator: needs one of --mass and --kappa", hint="--mass 0.1")
    config: Path = options["config"]
    gauge = read_configuration(config)
    source = parse_point(options["source"])
    specs = [Spec(word, gauge.lattice, options["dtype"], batch=BATCH) for word in FAMILY]
    where = origin(options["bundle_path"], options["store_path"], options["cc"], options["offline"])
    t_boundary = 1 if options["periodic"] else -1
    with with_artifacts(specs, where, say) as bundle:
        prop = solve_columns(
            bundle, gauge, mass=options["mass"], kappa=options["kappa"], t_boundary=t_boundary, source=source,
            dtype=options["dtype"], tol=options["tol"], max_iterations=options["max_iterations"], threads=options["threads"],
            batch=BATCH,
        )  # fmt: skip
        facts = provenance(bundle, gauge, prop, config, FAMILY[0])
    solver = {
        "iterations": [c.iterations for c in prop.columns],
        "true_residual": [c.final_residual for c in prop.columns],
        "reason": [c.reason.value for c in prop.columns],
    }
    return Solved(prop, {**facts, "tolerance": options["tol"]}, solver)


def default_output(config: Path, suffix: str) -> Path:
    """cfg.lime -> cfg.pion.h5 in the working directory."""
    return Path(f"{config.stem}.{suffix}")
