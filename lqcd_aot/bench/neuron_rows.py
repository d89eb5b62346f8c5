"""The table of lqcd-neuron's benchmark: one row per (lattice, batch), applications of the Wilson operator a second.

    cpu        this machine's best CPU artifact: float32, one right-hand side, one thread
    neuron     one NeuronCore, one right-hand side          batched    one NeuronCore, `batch` right-hand sides a call
    multicore  every NeuronCore, `batch` each               speedup    the best of the three over cpu
    gflops     of multicore, 1320 a site                    gbytes_per_s  its spinors in and out, in the device's dtype

Owns the device that is asked and the refusal where there is none; a simulation must be asked for by name and is called one in
every row. Numpy in, numpy out, the gauge field resident, as there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lqcd_aot.bench.artifacts import AsMachine
from lqcd_aot.bench.machine import allowed_cpus, choose_cpus, pinned
from lqcd_aot.bench.neuron_report import timed_on
from lqcd_aot.bench.timing import time_call
from lqcd_aot.measure.ensure import Origin, build_for
from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.geometry import format_extents, volume
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import NEURON_TARGETS, SIM_TARGET, engine_of, this_host

if TYPE_CHECKING:
    from lqcd_runtime.bundle import Bundle

SCHEMA = "lqcd-aot/neuron-bench/v1"
OPERATOR = "wilson"
LATTICES = ((4, 4, 4, 4), (8, 4, 4, 4), (8, 8, 4, 4), (8, 8, 8, 4), (16, 8, 8, 8), (16, 16, 16, 16))
BATCHES = (8, 16, 32)
DTYPE = "bfloat16"
SPINOR_BYTES = 2 * 24 * 2  # in and out, bfloat16
Say = Callable[[str], None]


def device_target(simulated: bool) -> str:
    """The target of this machine's NeuronCores, or the simulator's. Errors: UsageError with the reason where there are none."""
    if simulated:
        return SIM_TARGET
    import lqcd_runtime

    cores = lqcd_runtime.devices()
    usable = next((core for core in cores if core.available), None)
    if usable is None:
        found = str(cores[0].reason) if cores else "this machine has no NeuronCore"
        raise UsageError(
            "bench --neuron: there is no NeuronCore to measure", found=found,
            hint="lqcd-aot devices says more; --compiler sim times the simulator, which says nothing about a device",
        )  # fmt: skip
    return str(usable.target)


def variants(target: str, lattices: Sequence[tuple[int, ...]], batches: Sequence[int], fused: bool) -> list[Spec]:
    """What is built, by the recipe that a user would write: slabs of T as the estimate says, builders of blocks included."""
    from lqcd_aot.recipe import expand, load

    text = (
        f'schema = 1\nname = "bench"\n[axes]\noperator = "{OPERATOR}"\n'
        f'lattice = [{", ".join(repr(format_extents(e)) for e in lattices)}]\ndtype = "{DTYPE}"\n'
        f'batch = {sorted({1, *batches})}\nfused = {str(fused).lower()}\nshards = "auto"\n'
        f'target = "{NEURON_TARGETS[0] if target == SIM_TARGET else target}"\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.toml"
        path.write_text(text, encoding="utf-8")
        return list(dict.fromkeys(variant.spec for variant in expand(load(path))))


def neuron_rows(
    lattices: Sequence[tuple[int, ...]], batches: Sequence[int], *, fused: bool, compiler: str | None, origin: Origin,
    seconds: float, say: Say,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Build what is missing, then a row as soon as it is measured. Errors: UsageError, CompileError, StoreError, NoVariant."""
    import lqcd_runtime
    from lqcd_aot.compilers import SIM

    target = device_target(compiler == SIM)
    specs = variants(target, lattices, batches, fused)
    builds = _built(specs, target, origin, say, compiler)
    best = this_host().best_target()
    if best is not None:
        builds |= _built([_baseline(lattice) for lattice in lattices], best, origin, say, None)
    with lqcd_runtime.open(str(origin.store)) as opened:
        bundle = AsMachine(opened, this_host(), builds)
        for lattice in lattices:
            cpu = _cpu(bundle, lattice, seconds)
            single = _timed(bundle, _of(specs, lattice, 1), target, seconds, every=False)
            for batch in batches:
                spec = _of(specs, lattice, batch)
                batched = _timed(bundle, spec, target, seconds, every=False)
                multicore = _timed(bundle, spec, target, seconds, every=True)
                rates = {"neuron": single, "batched": batched, "multicore": multicore}
                yield _row(
                    spec, target, cpu, {name: found["applications_per_second"] for name, found in rates.items()}, multicore
                )


def _built(specs: Sequence[Spec], target: str, origin: Origin, say: Say, compiler: str | None) -> dict[Spec, str]:
    """{spec: build key}. Errors: UsageError where there is no compiler, CompileError, StoreError."""
    keys = build_for(specs, target, origin, say, compiler)
    if keys is None:
        raise UsageError(f"bench --neuron: there is no compiler for {target}", hint="lqcd-aot doctor says why")
    return dict(zip(specs, keys, strict=True))


def _row(spec: Spec, target: str, cpu: float, rates: dict[str, float], multicore: dict[str, Any]) -> dict[str, Any]:
    sites = volume(spec.lattice)
    return {
        "operator": spec.operator, "lattice": list(spec.lattice), "batch": spec.batch, "dtype": spec.dtype, "fused": spec.fused,
        "shards": spec.shards, "target": target, "simulated": target == SIM_TARGET, "cpu": cpu, **rates,
        "cores": multicore["cores"], "speedup": max(rates.values()) / cpu, "gflops": multicore["gflops"],
        "gbytes_per_s": rates["multicore"] * sites * SPINOR_BYTES / 1e9,
    }  # fmt: skip


def _baseline(lattice: tuple[int, ...]) -> Spec:
    return Spec(OPERATOR, lattice, "float32")


def _of(specs: Sequence[Spec], lattice: tuple[int, ...], batch: int) -> Spec:
    found = [s for s in specs if s.operator == OPERATOR and (s.lattice, s.batch) == (tuple(lattice), batch)]
    if not found:
        raise NoVariant(f"no variant of the benchmark is {OPERATOR} {format_extents(lattice)} with batch {batch}")
    return found[0]


def _timed(bundle: Bundle, spec: Spec, target: str, seconds: float, *, every: bool) -> dict[str, Any]:
    entry = bundle.select(spec, engine=engine_of(target)).choice
    cores = tuple(bundle.load(entry).cores)
    return timed_on(bundle, entry, cores if every else cores[:1], seconds)


def _cpu(bundle: Bundle, lattice: tuple[int, ...], seconds: float) -> float:
    """Applications a second of the CPU artifact, numpy in and numpy out."""
    import numpy as np

    from lqcd_runtime.fields import random_links, random_spinor

    with pinned(choose_cpus(1, allowed_cpus())):
        operator = bundle.operator(
            OPERATOR, gauge=random_links(lattice, 1), mass=0.1, dtype="float32", threads=1, engine="cpu"
        )  # fmt: skip
        psi = random_spinor(lattice, 1).astype(np.complex64)
        return 1.0 / time_call(lambda: operator.apply(psi), seconds=seconds, rounds=5).seconds
