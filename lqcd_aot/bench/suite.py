"""A whole benchmark: axes to specs, specs to a report.

    {"schema": "lqcd-aot/bench/v1", "machine", "settings", "roofline", "rows", "series", "skipped", "notes", "start_up",
     "comparison"}

Owns the axes (what is measured where nothing is said, what a word expands to) and the order of the work. Prints nothing.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.bench import peer as peers
from lqcd_aot.bench import probes, roofline
from lqcd_aot.bench.artifacts import artifacts, host_for
from lqcd_aot.bench.compare import SCHEMA
from lqcd_aot.bench.machine import allowed_cpus, choose_cpus, description
from lqcd_aot.bench.rows import Row, Settings, row
from lqcd_aot.bench.series import series
from lqcd_runtime.errors import CompileError, UsageError
from lqcd_runtime.signature import OPERATORS, Spec, kind_of

if TYPE_CHECKING:
    from lqcd_aot.measure.ensure import Origin
    from lqcd_runtime.target import Host

Say = Callable[[str], None]
ALL = "all"
DEFAULT_LATTICES = ((4, 4, 4, 4), (8, 4, 4, 4), (8, 8, 8, 8), (16, 8, 8, 8), (16, 16, 16, 16))
KINDS = ("dirac", "solver")


class Axes(NamedTuple):
    """What to measure; each combination that can be compiled is a spec. storages: () for that of the dtype."""

    operators: Sequence[str] = ("wilson_hop", "wilson")
    lattices: Sequence[tuple[int, ...]] = DEFAULT_LATTICES
    dtypes: Sequence[str] = ("float32", "float64")
    storages: Sequence[str] = ()
    batches: Sequence[int] = (1, 12)
    fused: bool = False


class Plan(NamedTuple):
    """How to measure. target: a CPU level below this machine's; peer: COMMAND; configuration: for solves and start-up."""

    threads: Sequence[int] = (1,)
    seconds: float = 0.4
    eager: bool = True
    target: str | None = None
    peer: str | None = None
    configuration: Path | None = None
    start_up: bool = False


def expand(axes: Axes, target: str) -> tuple[list[Spec], list[dict[str, str]]]:
    """(specs, [{"name", "reason"}] of combinations that no program expresses). Errors: UsageError where nothing is left."""
    from lqcd_aot.program.cpu.variant import refuse

    specs, skipped = [], []
    for spec in dict.fromkeys(_combinations(axes)):
        why = refuse(spec, target)
        if why is None:
            specs.append(spec)
        else:
            skipped.append({"name": spec.name, "reason": why.fact.removeprefix(f"program {spec.name}: ")})
    if not specs:
        raise UsageError("bench: nothing of this can be compiled", details=[f"{s['name']}: {s['reason']}" for s in skipped[:5]])
    return specs, skipped


def grouped(skipped: Iterable[dict[str, str]]) -> list[tuple[str, str]]:
    """(names, reason) for each reason of what was not measured: the first name and how many more."""
    names: dict[str, list[str]] = {}
    for one in skipped:
        names.setdefault(one["reason"], []).append(one["name"])
    return [(found[0] + (f" and {len(found) - 1} more" if len(found) > 1 else ""), reason) for reason, found in names.items()]


def _combinations(axes: Axes) -> Iterable[Spec]:
    for operator in operators_of(axes.operators):
        forms = (False, True) if axes.fused and _has_blocks(operator) else (False,)
        for lattice, dtype, batch, fused in itertools.product(axes.lattices, axes.dtypes, axes.batches, forms):
            for storage in axes.storages or (dtype,):
                yield Spec(operator, lattice, dtype, storage=storage, batch=batch, fused=fused)


def operators_of(words: Sequence[str]) -> list[str]:
    """Operator words, `all` expanded. Errors: UsageError for what acts on no spinors."""
    out: list[str] = []
    for word in words:
        if word == ALL:
            out += [name for name, entry in OPERATORS.items() if entry["kind"] in KINDS]
        elif kind_of(word) in KINDS:
            out.append(word)
        else:
            raise UsageError(
                f"--operator {word}: is no Dirac operator",
                expected="a word that acts on spinors, such as wilson or wilson_cg, or all",
            )
    return list(dict.fromkeys(out))


def _has_blocks(operator: str) -> bool:
    return kind_of(operator) == "dirac" and operator.startswith("wilson") and OPERATORS[operator]["parity"] == "full"


def run(axes: Axes, plan: Plan, origin: Origin, say: Say, done: Callable[[Row, int, int], None]) -> dict[str, Any]:
    """Measure all. done: called with each row, its number and their count. Errors: UsageError, CompileError, NoVariant."""
    host = host_for(plan.target)
    target = host.best_target()
    if target is None:
        raise UsageError("bench: this machine executes none of the CPU targets", found=host.architecture)
    specs, skipped = expand(axes, target)
    found = _prepare(plan, origin, target, say)
    gauge = _gauge(plan)
    settings = Settings(plan.eager and plan.peer is None, plan.seconds, *found, gauge)
    rows, notes = _measure(specs, plan, settings, origin, host, say, done)
    measured = settings.roofline
    sizes = {level.name: level.size for level in measured.levels if level.size} if measured else {}
    cpus = choose_cpus(max(plan.threads), allowed_cpus())
    return {
        "schema": SCHEMA,
        "machine": description(cpus),
        "settings": {
            "threads": list(plan.threads), "seconds": plan.seconds, "target": target, "peer": plan.peer,
            "configuration": plan.configuration.name if plan.configuration else None,
        },
        "roofline": measured.as_json() if measured else None,
        "rows": rows,
        "series": series(rows, sizes),
        "skipped": skipped,
        "notes": notes,
        "start_up": first_column(plan, origin, host, say) if plan.start_up else None,
        "comparison": None,
    }  # fmt: skip


def _prepare(plan: Plan, origin: Origin, target: str, say: Say) -> tuple[probes.Probes | None, roofline.Roofline | None]:
    from lqcd_aot.compilers import find_toolchain
    from lqcd_aot.settings import default_compiler

    for threads in plan.threads:
        choose_cpus(threads, allowed_cpus())  # refused before anything is built
    wanted = origin.cc or default_compiler()
    try:
        toolchain = find_toolchain(wanted)
    except CompileError as why:
        if wanted:
            raise
        say(f"no roofline: {why.fact}")
        return None, None
    loaded = probes.build(toolchain, target)
    return loaded, roofline.measure(loaded, target, plan.threads, say)


def _gauge(plan: Plan) -> Any:
    if plan.configuration is None:
        return None
    import lqcd_runtime as lqcd

    return lqcd.load_gauge(str(plan.configuration))


def _measure(
    specs: Sequence[Spec], plan: Plan, settings: Settings, origin: Origin, host: Host, say: Say,
    done: Callable[[Row, int, int], None],
) -> tuple[list[Row], list[str]]:  # fmt: skip
    questions = [(spec, n) for spec in specs for n in plan.threads]
    rounds = peers.ROUNDS if plan.peer else 1
    count = 0
    with artifacts(specs, origin, host, say) as bundle:

        def own(question: peers.Question) -> Row:
            nonlocal count
            found = row(bundle, *question, settings)
            count += 1
            done(found, count, rounds * len(questions))
            return found

        if plan.peer is None:
            return [own(question) for question in questions], []
        cpus_of = settings.roofline.cpus.__getitem__ if settings.roofline else lambda n: choose_cpus(n, allowed_cpus())
        return peers.interleaved(questions, plan.peer, own, cpus_of)


def first_column(plan: Plan, origin: Origin, host: Host, say: Say) -> dict[str, Any]:
    """The start-up of fresh processes on the configuration, or on random links of 8^4. Errors: StoreError, CompileError."""
    import lqcd_runtime as lqcd
    from lqcd_aot.bench import start_up
    from lqcd_aot.build.pack import Wanted, pack
    from lqcd_aot.store import open_store
    from lqcd_runtime.fields import random_links

    gauge = _gauge(plan)
    lattice = gauge.lattice if gauge else start_up.DEFAULT_LATTICE
    wanted = start_up.specs(lattice)
    with tempfile.TemporaryDirectory() as folder, artifacts(wanted, origin, host, say) as bundle:
        chosen = [bundle.select(spec).choice for spec in wanted]
        path, configuration = Path(folder) / "first.lqcd", plan.configuration or Path(folder) / "random.lime"
        if gauge is None:
            lqcd.write_gauge(configuration, random_links(lattice, 1))
        pack(
            open_store(origin.store), [Wanted(e.name, e.build_key) for e in chosen], path, name="first",
            recipe={"name": "bench", "sha256": "0" * 64},
        )  # fmt: skip
        found = start_up.start_up(path, configuration, choose_cpus(1, allowed_cpus()))
    name = plan.configuration.name if plan.configuration else "random links"
    return {"configuration": name, "lattice": list(lattice), **found}
