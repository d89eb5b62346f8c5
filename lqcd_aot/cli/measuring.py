"""What observe, propagator and pion share: where artifacts come from, loading the configuration, progress of a solve."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lqcd_aot.amounts import human_seconds
from lqcd_aot.cli.output import cc_option, json_option, store_option
from lqcd_runtime.errors import UsageError

if TYPE_CHECKING:
    from lqcd_aot.measure.ensure import Origin
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.fields import Gauge
    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.observables.propagator import Propagator

DTYPES = click.Choice(["float32", "float64"])


def origin_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--boundary --bundle --store --cc --offline --threads --json."""
    decorators = (
        click.option(
            "--boundary",
            type=click.Choice(["periodic", "remove_sign"]),
            default=None,
            help="Links of FILE: as stored whatever it states, or rid of a fermion boundary sign. [default: refuse such files]",
        ),
        click.option(
            "--bundle", "bundle_path", type=click.Path(path_type=Path), default=None, help="Use this bundle; never build."
        ),
        store_option,
        cc_option,
        click.option("--offline", is_flag=True, help="Never build: a missing artifact is an error that names the nearest."),
        click.option("--threads", type=click.IntRange(min=1), default=None, help="Threads. [default: by the lattice]"),
        json_option,
    )
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def origin(bundle_path: Path | None, store_path: Path | None, cc: str | None, offline: bool) -> Origin:
    """Where a measurement takes its artifacts from."""
    from lqcd_aot.cli.planning import store_folder
    from lqcd_aot.measure.ensure import Origin

    if bundle_path is not None and store_path is not None:
        raise UsageError("--bundle and --store: name two places", expected="one of them")
    return Origin(bundle_path, store_folder(store_path), cc, offline)


def read_configuration(path: Path, boundary: str | None) -> Gauge:
    """Load a gauge file and pass its warnings on. boundary: as `load_gauge`. Errors: GaugeFileError."""
    import lqcd_runtime as lqcd

    gauge = lqcd.load_gauge(str(path), boundary=boundary)
    for warning in gauge.warnings:
        click.echo(f"warning: {warning}", err=True)
    return gauge


def say(line: str) -> None:
    """Progress and remarks go to standard error."""
    click.echo(line, err=True)


def parse_point(text: str) -> tuple[int, int, int, int]:
    """ "t,z,y,x" -> four integers. Errors: UsageError."""
    try:
        t, z, y, x = (int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"source {text!r}: is no site", expected="t,z,y,x", hint="--source 0,0,0,0") from None
    return t, z, y, x


def solve_columns(
    bundle: Bundle, gauge: Gauge, *, mass: float | None, kappa: float | None, t_boundary: int, source: tuple[int, int, int, int],
    dtype: str, tol: float, max_iterations: int, threads: int | None, batch: int,
) -> tuple[Propagator, list[Entry]]:  # fmt: skip
    """Twelve columns of the Wilson propagator from a point source, with progress on standard error; and the artifacts used.

    Iterations run in single precision under true residuals in `dtype` where the bundle has the solver artifact for that.
    """
    import lqcd_runtime as lqcd
    from lqcd_runtime.signature import Spec

    D = bundle.operator(
        "wilson", gauge=gauge, mass=mass, kappa=kappa, t_boundary=t_boundary, dtype=dtype, batch=batch, threads=threads
    )  # fmt: skip
    say(f"operator {D.entry.name}, {D.threads} threads")
    inner = [Spec(word, D.lattice, "float32", batch=batch) for word in ("wilson_schur_cg", "wilson_cg")]
    precision = "mixed" if dtype == "float64" and any(bundle.find(spec) for spec in inner) else None
    prop = lqcd.propagator(D, lqcd.point_source(source), tol=tol, max_iterations=max_iterations, precision=precision)
    info = prop.info
    assert info is not None
    speed = info.flops / max(info.seconds, 1e-9) / 1e9
    say(info.prose)
    say(f"{human_seconds(info.seconds)}, {speed:.1f} GFLOP/s (1320 flops a site); by {info.engine}")
    return prop, bundle.loaded()


def provenance(gauge: Gauge, prop: Propagator, used: list[Entry], config: Path, operator: str) -> dict[str, object]:
    """What must be known to repeat a measurement: configuration, operator and inputs, artifacts, versions."""
    import platform
    from importlib.metadata import version

    return {
        "configuration": config.name,
        "configuration_digest": gauge.digest,
        "configuration_format": gauge.format,
        "configuration_plaquette": gauge.plaquette,
        "lattice": "x".join(map(str, gauge.lattice)),
        "operator": operator,
        **{f"input_{name}": value for name, value in prop.inputs.items()},
        "quark_source": prop.label,
        "artifacts": ", ".join(f"{e.name}={e.build_key}" for e in used),
        "solver": prop.info.engine if prop.info else "",
        "lqcd_aot": version("lqcd-aot"),
        "lqcd_runtime": version("lqcd-runtime"),
        "numpy": version("numpy"),
        "machine": platform.machine(),
    }
