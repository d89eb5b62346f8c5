"""The options of a Wilson solve, and the solve itself: what `propagator` and `pion` do before they part."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from lqcd_aot.cli.measuring import DTYPES, origin, origin_options, parse_point, provenance, read_configuration, say, solve_columns

if TYPE_CHECKING:
    from lqcd_runtime.observables.propagator import Propagator
    from lqcd_runtime.signature import Spec

FAMILY = ("wilson", "wilson_dagger", "wilson_normal")
# The solver artifact of a lattice: even-odd where its extents allow.
SOLVERS = ("wilson_cg", "wilson_schur_cg")
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


def _check(options: dict[str, Any], outputs: Sequence[Path]) -> None:
    """All that can be known to be wrong before a file is read or an artifact built. Errors: UsageError, LqcdError."""
    from lqcd_aot.measure.hdf5 import check_writable
    from lqcd_runtime.errors import UsageError

    given = [name for name in ("mass", "kappa") if options[name] is not None]
    if len(given) != 1:
        found = "both" if given else "neither"
        raise UsageError("propagator: needs one of --mass and --kappa", found=found, hint="--mass 0.1")
    if not math.isfinite(options[given[0]]) or (given == ["kappa"] and options["kappa"] == 0.0):
        raise UsageError(f"--{given[0]}: is not a number to work with", found=options[given[0]])
    if not 0.0 < options["tol"] < 1.0:
        raise UsageError("--tol: is not a relative residual", expected="between 0 and 1", found=options["tol"])
    for path in outputs:
        check_writable(path)


def _specs(lattice: tuple[int, ...], dtype: str) -> list[Spec]:
    """What a propagator needs: the operators in the outer precision, the solver in the inner one."""
    from lqcd_runtime.signature import Spec

    even = all(extent % 2 == 0 for extent in lattice)
    family = [Spec(word, lattice, dtype, batch=BATCH) for word in FAMILY]
    return [*family, Spec(SOLVERS[even], lattice, "float32", batch=BATCH)]


def solve(options: dict[str, Any], outputs: Sequence[Path]) -> Solved:
    """From the command line's options to a propagator; `outputs` must be writable before anything is done.

    Errors: UsageError, GaugeFileError, NoVariant, CompileError, LqcdError.
    """
    from lqcd_aot.measure.ensure import with_artifacts
    from lqcd_runtime.errors import UsageError

    _check(options, outputs)
    config: Path = options["config"]
    source = parse_point(options["source"])
    gauge = read_configuration(config, options["boundary"])
    if any(not 0 <= x < extent for x, extent in zip(source, gauge.lattice, strict=True)):
        lattice = "x".join(map(str, gauge.lattice))
        raise UsageError(f"--source {options['source']}: is not on the lattice", expected=f"a site of {lattice}")
    specs = _specs(gauge.lattice, options["dtype"])
    where = origin(options["bundle_path"], options["store_path"], options["cc"], options["offline"])
    t_boundary = 1 if options["periodic"] else -1
    with with_artifacts(specs, where, say) as bundle:
        prop, used = solve_columns(
            bundle, gauge, mass=options["mass"], kappa=options["kappa"], t_boundary=t_boundary, source=source,
            dtype=options["dtype"], tol=options["tol"], max_iterations=options["max_iterations"], threads=options["threads"],
            batch=BATCH,
        )  # fmt: skip
        facts = provenance(gauge, prop, used, config, FAMILY[0])
    solver = {
        "iterations": [c.iterations for c in prop.columns],
        "true_residual": [c.final_residual for c in prop.columns],
        "reason": [c.reason.value for c in prop.columns],
    }
    return Solved(prop, {**facts, "tolerance": options["tol"]}, solver)


def default_output(config: Path, suffix: str) -> Path:
    """cfg.lime -> cfg.pion.h5 in the working directory."""
    return Path(f"{config.stem}.{suffix}")
