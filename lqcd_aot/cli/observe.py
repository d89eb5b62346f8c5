"""`lqcd-aot observe FILE NAME...`: gauge observables of a configuration, measured by compiled artifacts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lqcd_aot.cli.measuring import DTYPES, origin, origin_options, read_configuration, say
from lqcd_aot.cli.output import print_json


@click.command("observe")
@click.argument("config", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--beta", type=float, default=None, help="For wilson_action.")
@click.option("--dtype", type=DTYPES, default="float64", show_default=True, help="Arithmetic of the artifact.")
@origin_options
def command(
    config: Path, names: tuple[str, ...], beta: float | None, dtype: str, boundary: str | None, bundle_path: Path | None,
    store_path: Path | None, cc: str | None, offline: bool, threads: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure the observables NAME... (plaquette, polyakov_loop, topological_charge, ...) on the configuration FILE."""
    from lqcd_aot.measure.ensure import with_artifacts
    from lqcd_runtime.observables.observe import OBSERVABLES, check_request, observe
    from lqcd_runtime.signature import Spec

    check_request(names, beta, beta_spelled="--beta 6.0")
    gauge = read_configuration(config, boundary)
    operators = {OBSERVABLES[name][0] for name in names}
    specs = [Spec(operator, gauge.lattice, dtype) for operator in sorted(operators)]
    with with_artifacts(specs, origin(bundle_path, store_path, cc, offline), say) as bundle:
        values = observe(bundle, gauge, *names, beta=beta, dtype=dtype, threads=threads)
    named: dict[str, Any] = {names[0]: values} if len(names) == 1 else values
    if as_json:
        print_json(named)
        return
    for name, value in named.items():
        click.echo(f"{name:<20} {_spell(value)}")


def _spell(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{k} {_spell(v)}" for k, v in value.items())
    if isinstance(value, complex):
        return f"{value.real:.15g}{value.imag:+.15g}i"
    return f"{value:.15g}"
