"""`lqcd-aot bench`: time operators on this machine, each next to torch eager in the same run. Ratios are the result."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lqcd_aot.cli.measuring import say
from lqcd_aot.cli.output import cc_option, human_seconds, json_option, print_json, print_table, store_option
from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import format_extents, parse_extents
from lqcd_runtime.signature import OPERATORS, Spec, kind_of

if TYPE_CHECKING:
    from lqcd_aot.measure.ensure import Origin

DEFAULT_LATTICES = ("4x4x4x4", "8x4x4x4", "8x8x8x8", "16x8x8x8", "16x16x16x16")


@click.command("bench")
@click.option(
    "--operator",
    "operators",
    multiple=True,
    help="Operator or solver (wilson_schur_cg: an iteration); may be repeated. [default: wilson_hop, wilson]",
)
@click.option(
    "--lattice", "lattices", multiple=True, help="TxZxYxX; may be repeated or several in one word. [default: 4^4 to 16^4]"
)
@click.option("--dtype", "dtypes", multiple=True, type=click.Choice(["float32", "float64"]), help="[default: both]")
@click.option("--batch", "batches", multiple=True, help="Right-hand sides, e.g. 1,12; may be repeated. [default: 1,12]")
@click.option("--fused", is_flag=True, help="Also the fused form of the Wilson family.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--seconds", type=float, default=0.4, show_default=True, help="Measuring time of a row.")
@click.option("--no-peer", is_flag=True, help="Do not time torch eager.")
@click.option("--start-up", "with_start_up", is_flag=True, help="Also fresh processes: import and first applied operator.")
@store_option
@cc_option
@json_option
def command(
    operators: tuple[str, ...], lattices: tuple[str, ...], dtypes: tuple[str, ...], batches: tuple[str, ...], fused: bool,
    threads: int, seconds: float, no_peer: bool, with_start_up: bool, store_path: Path | None, cc: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Time operators on packed vectors: GFLOP/s by 1320 flops a site (clover 504 more), median of rounds after a warm-up."""
    from lqcd_aot.bench.operators import rows
    from lqcd_aot.cli.measuring import origin
    from lqcd_aot.measure.ensure import with_artifacts

    specs = _specs(operators, lattices, dtypes, batches, fused)
    where = origin(None, store_path, cc, False)
    with with_artifacts([*_builders(specs), *specs], where, say) as bundle:
        measured = []
        for row in rows(bundle, specs, threads=threads, peer=not no_peer, seconds=seconds):
            measured.append(row)
            if not as_json:
                what = f"{row['operator']} {format_extents(row['lattice'])} {row['dtype']} batch {row['batch']}"
                say(f"[{len(measured)}/{len(specs)}] {what}: {row['gflops']:.1f} GFLOP/s")
    if as_json and not with_start_up:
        print_json(measured)
    elif as_json:
        print_json({"rows": measured, "start_up": _start_up(where)})
    else:
        _print(measured)
        if with_start_up:
            for what, spent in _start_up(where).items():
                click.echo(f"{what:<22} {human_seconds(spent)}")


def _specs(operators: Any, lattices: Any, dtypes: Any, batches: Any, fused: bool) -> list[Spec]:
    chosen = [parse_extents(word) for text in lattices or DEFAULT_LATTICES for word in text.split()]
    counts = [_count(n) for text in batches or ("1,12",) for n in text.split(",")]
    out = []
    for operator, lattice, dtype in itertools.product(
        operators or ("wilson_hop", "wilson"), chosen, dtypes or ("float32", "float64")
    ):
        if kind_of(operator) not in ("dirac", "solver"):
            raise UsageError(
                f"--operator {operator}: is no Dirac operator",
                expected="a word that acts on spinors, such as wilson or wilson_cg",
            )
        out += [Spec(operator, lattice, dtype, batch=batch) for batch in counts]
        if fused and kind_of(operator) == "dirac" and operator.startswith("wilson") and OPERATORS[operator]["parity"] == "full":
            out += [Spec(operator, lattice, dtype, batch=batch, fused=True) for batch in counts]
    return out


def _count(text: str) -> int:
    if not text.strip().isdigit() or int(text) < 1:
        raise UsageError(f"--batch {text!r}: is no number of right-hand sides", hint="--batch 1,12")
    return int(text)


def _builders(specs: list[Spec]) -> list[Spec]:
    return list(dict.fromkeys(Spec("wilson_blocks", s.lattice, s.dtype, shards=s.shards) for s in specs if s.fused))


def _start_up(where: Origin) -> dict[str, float]:
    """A bundle of one operator at 8^4, and what fresh processes need to use it."""
    import tempfile

    from lqcd_aot.bench.start_up import start_up
    from lqcd_aot.build.pack import Wanted, pack
    from lqcd_aot.measure.ensure import build_missing
    from lqcd_aot.store import open_store

    spec = Spec("wilson", (8, 8, 8, 8), "float64")
    build_missing([spec], where, say)
    store = open_store(where.store)
    found = [Wanted(r["target"], r["build_key"]) for r in store.records_of_spec(spec.key).values()]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/one.lqcd"
        pack(store, found, path, name="one", recipe={"name": "bench", "sha256": "0" * 64})
        return start_up(path)


def _print(measured: list[dict[str, Any]]) -> None:
    columns = ("operator", "lattice", "dtype", "batch", "form", "time", "GFLOP/s", "GB/s", "torch eager", "ratio")
    print_table(columns, (_cells(row) for row in measured))


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    peer = row["peer"]
    return (
        row["operator"], format_extents(row["lattice"]), row["dtype"], row["batch"], "fused" if row["fused"] else "unfused",
        human_seconds(row["seconds"]), f"{row['gflops']:.1f}", f"{row['gbytes_per_s']:.1f}",
        human_seconds(peer["seconds"]) if peer else "", f"{peer['ratio']:.0f}x" if peer else "",
    )  # fmt: skip
