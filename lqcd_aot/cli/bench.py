"""`lqcd-aot bench`: time operators and solvers on this machine against its roofline, torch eager, a peer, an older report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from lqcd_aot.cli import bench_output as show
from lqcd_aot.cli.measuring import origin, say
from lqcd_aot.cli.output import cc_option, json_option, print_json, store_option
from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import parse_extents
from lqcd_runtime.signature import CPU_DTYPES


def axis_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is measured: every combination of the axes."""
    decorators = (
        click.option("--operator", "operators", multiple=True,
                     help="Operator, solver (an iteration and a solve) or all; may be repeated. [default: wilson_hop, wilson]"),
        click.option("--lattice", "lattices", multiple=True,
                     help="TxZxYxX; may be repeated or several in one word. [default: 4^4 to 16^4]"),
        click.option("--dtype", "dtypes", multiple=True, type=click.Choice(CPU_DTYPES), help="[default: both]"),
        click.option("--storage", "storages", multiple=True,
                     help="How links and vectors are stored; may be repeated. [default: as --dtype]"),
        click.option("--batch", "batches", multiple=True, help="Right-hand sides, e.g. 1,12; may be repeated. [default: 1,12]"),
        click.option("--fused/--no-fused", "fused", default=None,
                     help="Also the fused form of the Wilson family; with --neuron fused is the default."),
        click.option("--threads", "threads", multiple=True, help="Threads, e.g. 1,2; may be repeated. [default: 1]"),
        click.option("--target", default=None, help="Artifacts of a lower CPU level than this machine's, e.g. x86-64-v3."),
    )  # fmt: skip
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


@click.command("bench")
@axis_options
@click.option("--seconds", type=float, default=0.4, show_default=True, help="Measuring time of a row.")
@click.option("--no-peer", is_flag=True, help="Do not time torch eager.")
@click.option(
    "--peer",
    metavar="COMMAND",
    default=None,
    help="Another benchmark, run in turns with ours: one JSON object a line for each of its rows (tests/bench/README.md).",
)
@click.option(
    "--config",
    "configuration",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="Gauge configuration for --start-up and, on its lattice, for solves. [default: random links]",
)
@click.option(
    "--start-up", "with_start_up", is_flag=True, help="Also fresh processes, step by step to the first propagator column."
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, file_okay=False), default=None, help="Folder for bench.json and bench.html."
)
@click.option(
    "--compare", "older", type=click.Path(path_type=Path), default=None, help="An older bench.json: ratios new/old a row."
)
@click.option("--neuron", is_flag=True, help="The NeuronCores of this machine: one row per (lattice, batch).")
@click.option("--compiler", metavar="sim|PATH", default=None, help="With --neuron: neuronx-cc at PATH; sim: time the simulator.")
@store_option
@cc_option
@json_option
def command(
    operators: tuple[str, ...], lattices: tuple[str, ...], dtypes: tuple[str, ...], storages: tuple[str, ...],
    batches: tuple[str, ...], fused: bool | None, threads: tuple[str, ...], target: str | None, seconds: float, no_peer: bool,
    peer: str | None, configuration: Path | None, with_start_up: bool, out: Path | None, older: Path | None, neuron: bool,
    compiler: str | None, store_path: Path | None, cc: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Time operators on packed vectors: GFLOP/s by 1320 flops a site (clover 504 more), median after a warm-up, pinned."""
    from lqcd_aot.bench.compare import compare, read_report
    from lqcd_aot.bench.suite import Axes, Plan, run

    where = origin(None, store_path, cc, False)
    extents = [parse_extents(word) for text in lattices for word in text.split()]
    counts = _numbers("--batch", batches, "right-hand sides")
    if neuron:
        only_cpu = {"--operator": operators, "--dtype": dtypes, "--storage": storages, "--threads": threads, "--target": target,
                    "--peer": peer, "--config": configuration, "--start-up": with_start_up, "--compare": older}  # fmt: skip
        _refuse(only_cpu, "does not apply to --neuron")
        _neuron(extents, counts, fused is not False, compiler, where, seconds, out, as_json)
        return
    _refuse({"--compiler": compiler}, "applies to --neuron only")
    old = read_report(older) if older is not None else None
    usual = Axes()
    axes = Axes(
        operators or usual.operators, extents or usual.lattices, dtypes or usual.dtypes, storages or usual.storages,
        counts or usual.batches, fused is True,
    )  # fmt: skip
    plan = Plan(
        _numbers("--threads", threads, "threads") or (1,), seconds, not no_peer, target, peer, configuration, with_start_up
    )
    report = run(axes, plan, where, say, (lambda *_: None) if as_json else show.progress)
    report["comparison"] = compare(report["rows"], old["rows"]) if old is not None else None
    if out is not None:
        show.write(report, out)
    if as_json:
        print_json(report)
    else:
        show.print_report(report, out)


def _neuron(
    lattices: Sequence[Any], batches: Sequence[int], fused: bool, compiler: str | None, where: Any, seconds: float,
    out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    from lqcd_aot.bench import neuron_rows as device

    rows = []
    chosen = (lattices or device.LATTICES, batches or device.BATCHES)
    for row in device.neuron_rows(*chosen, fused=fused, compiler=compiler, origin=where, seconds=seconds, say=say):
        rows.append(row)
        show.neuron_progress(row)
    report = {"schema": device.SCHEMA, "simulated": rows[0]["simulated"], "rows": rows}
    if out is not None:
        show.write_json(report, out / "neuron.json")
    if as_json:
        print_json(report)
    else:
        show.print_neuron(rows)


def _numbers(option: str, texts: Sequence[str], what: str) -> list[int]:
    """ "1,12" and repetitions -> [1, 12]. Errors: UsageError."""
    out: list[int] = []
    for text in (part for given in texts for part in given.split(",")):
        if not text.strip().isdecimal() or int(text) < 1:
            raise UsageError(f"{option} {text!r}: is no number of {what}", hint=f"{option} 1,2")
        out.append(int(text))
    return list(dict.fromkeys(out))


def _refuse(options: dict[str, Any], reason: str) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise UsageError(f"{given[0]}: {reason}", found=" ".join(given))
