"""The report of the first person with a NeuronCore: build a recipe, replay its witnesses, time its operators; one JSON object.

    {"schema": "lqcd-aot/neuron-report/v1", "simulated", "versions", "machine", "devices", "compiler", "builds", "checks", "rows",
     "chunks"}

Owns what is in the report and the measurements. No host name, user, path or serial number is in it. An error of one artifact is
a line of the report, never the end of it.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Any

from lqcd_aot.bench.timing import time_call
from lqcd_aot.build.device_estimate import as_json, device_estimate
from lqcd_runtime.errors import LqcdError
from lqcd_runtime.geometry import format_extents
from lqcd_runtime.target import CPU_TARGETS, engine_of

if TYPE_CHECKING:
    from lqcd_aot.build.job import Result
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.manifest import Entry

SCHEMA = "lqcd-aot/neuron-report/v1"
FLOPS_PER_SITE = 1320
MASS = 0.1
LOG_LINES = 40
_PACKAGES = ("lqcd-aot", "lqcd-runtime", "numpy", "torch", "neuronx-cc", "nrtpy", "jaxlib")
Say = Callable[[str], None]


def facts(compiler: dict[str, str], target: str) -> dict[str, Any]:
    """Machine, versions and devices. compiler: identity of the toolchain of `target`."""
    import lqcd_runtime

    versions: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "schema": SCHEMA,
        "simulated": engine_of(target) == "sim",
        "versions": {"python": platform.python_version(), **versions},
        "machine": {"architecture": platform.machine(), "processors": os.cpu_count(), "kernel": platform.release()},
        "devices": [core.as_dict() for core in lqcd_runtime.devices()],
        "target": target,
        "compiler": compiler,
    }


def build_row(result: Result) -> dict[str, Any]:
    """One variant: outcome, compile time, what the NEFF says, witness, estimate; or the failure with the end of its log."""
    record = result.record
    row = {
        "name": result.item.variant.name,
        "build_key": result.item.build_key,
        "outcome": result.outcome,
        "compile_ms": record["provenance"].get("compile_ms") if record else None,
        "size": record["outputs"]["code"]["size"] if record else None,
        "neff": record.get("neff") if record else None,
        "witness": record["witness_status"] if record else None,
        "estimate": as_json(device_estimate(result.item)),
    }
    if result.error is not None or result.outcome == "blocked":
        error = result.error
        row |= {
            "failure_class": result.failure_class,
            "error": error.fact if error else result.item.reason,
            "hint": error.hint if error else None,
            "log": [without_paths(line) for line in getattr(error, "log", "").splitlines()[-LOG_LINES:]],
        }
    return row


def without_paths(line: str) -> str:
    """A line of a log with absolute paths cut to their last part: they name users and folders."""
    return re.sub(r"(?<![\w.])/(?:[^\s/'\":,]+/)+", ".../", line)


def check_rows(bundle: Bundle, entries: Iterable[Entry], say: Say) -> Iterator[dict[str, Any]]:
    """The witness of each entry, replayed here: judged by torch in complex128 when it was built."""
    from lqcd_runtime.operator_choice import builder_entry
    from lqcd_runtime.witness import replay

    for entry in entries:
        if entry.spec.kind == "builder" or entry.witness is None:
            continue
        row: dict[str, Any] = {"name": entry.name, "passed": False}
        try:
            builder = bundle.load(builder_entry(bundle, entry)) if entry.spec.fused else None
            outcome = replay(entry, bundle.load(entry), builder)
            row |= {"passed": outcome.passed, "worst": repr(outcome.worst), "bound": repr(outcome.bound), "text": str(outcome)}
        except LqcdError as error:
            row["error"] = without_paths(str(error))
        say(f"{'agrees' if row['passed'] else 'DIFFERS'}  {entry.name}  {row.get('text') or row.get('error')}")
        yield row


def time_rows(bundle: Bundle, entries: Iterable[Entry], say: Say, *, seconds: float) -> Iterator[dict[str, Any]]:
    """Applications per second of each Dirac operator, on one core and on all: numpy in, numpy out, gauge field resident."""
    for entry in entries:
        spec = entry.spec
        if spec.kind != "dirac":
            continue
        row: dict[str, Any] = {
            "operator": spec.operator, "lattice": format_extents(spec.lattice), "dtype": spec.dtype, "batch": spec.batch,
            "fused": spec.fused, "shards": spec.shards,
        }  # fmt: skip
        try:
            row |= _timed(bundle, entry, seconds)
        except LqcdError as error:
            row["error"] = without_paths(str(error))
        say(f"{entry.name}  {_number(row, 'applications_per_second')} applications/s")
        yield row


def _timed(bundle: Bundle, entry: Entry, seconds: float) -> dict[str, Any]:
    cores = tuple(bundle.load(entry).cores)
    found: dict[str, Any] = {
        label: timed_on(bundle, entry, used, seconds) for label, used in (("one_core", cores[:1]), ("all_cores", cores))
    }
    found["applications_per_second"] = found["one_core"]["applications_per_second"]
    return found


def timed_on(bundle: Bundle, entry: Entry, cores: tuple[int, ...], seconds: float) -> dict[str, Any]:
    """A Dirac operator on some cores, each with a batch of its own: numpy in, numpy out, gauge field resident.

    {"cores", "columns", "seconds", "fastest", "slowest", "applications_per_second", "gflops"}; a column is an application.
    """
    import numpy as np

    from lqcd_runtime.fields import random_links, random_spinor

    spec = entry.spec
    one = np.stack([random_spinor(spec.lattice, 1, column) for column in range(spec.batch)]).astype(np.complex64)
    # Scalars that an operator does not take are not given: each word has its own.
    inputs: dict[str, Any] = {} if spec.operator == "wilson_hop" else {"mass": MASS}
    operator = bundle.operator(
        spec.operator, gauge=random_links(spec.lattice, 1), dtype=spec.dtype, batch=spec.batch, fused=spec.fused,
        shards=spec.shards, engine=engine_of(entry.target), cores=cores, **inputs,
    )  # fmt: skip
    psi = np.concatenate([one] * len(cores))
    timing = time_call(lambda: operator.apply(psi), seconds=seconds, rounds=5)
    rate = len(psi) / timing.seconds
    sites = int(np.prod(spec.lattice))
    return {
        "cores": len(cores), "columns": len(psi), "seconds": timing.seconds, "fastest": timing.fastest,
        "slowest": timing.slowest, "applications_per_second": rate, "gflops": rate * sites * FLOPS_PER_SITE / 1e9,
    }  # fmt: skip


def chunk_rows(bundle: Bundle, entries: Iterable[Entry], say: Say, *, seconds: float) -> Iterator[dict[str, Any]]:
    """Seconds per call and per iteration of each solver chunk, the state staying on the device."""
    import numpy as np

    from lqcd_runtime.engines.neff_artifact import Resident
    from lqcd_runtime.fields import random_links
    from lqcd_runtime.split_layout import resident, scalars

    for entry in entries:
        spec = entry.spec
        if spec.kind != "chunk" or spec.fused:
            continue
        row: dict[str, Any] = {"name": entry.name, "iterations": spec.iterations, "batch": spec.batch}
        try:
            artifact = bundle.load(entry)
            inputs = {"diagonal": 4.0 + MASS}
            held = Resident(artifact.engine, resident(spec, random_links(spec.lattice, 1), inputs))
            shapes = {slot.name: slot.shape for slot in artifact.binding.named("state")}
            state = artifact.begin({name: np.ones(shape, np.float32) for name, shape in shapes.items()})
            given = {"stop": np.zeros(spec.batch, np.float32), **scalars(spec, inputs)}
            timing = time_call(lambda a=artifact, s=state, g=given, h=held: a.step(s, g, h), seconds=seconds, rounds=5)  # type: ignore[misc]
            row |= {"seconds_per_call": timing.seconds, "seconds_per_iteration": timing.seconds / spec.iterations}
            state.close()
            held.close()
        except LqcdError as error:
            row["error"] = without_paths(str(error))
        say(f"{entry.name}  {_number(row, 'seconds_per_iteration')} s an iteration")
        yield row


def _number(row: dict[str, Any], name: str) -> str:
    return f"{row[name]:.4g}" if name in row else str(row.get("error"))


def of_device(bundle: Bundle, names: set[str]) -> list[Entry]:
    """The entries of a recipe that no CPU runs, by lattice, so that those of one lattice share its fields."""
    found = [e for e in bundle.entries() if e.name in names and e.target not in CPU_TARGETS]
    return sorted(found, key=lambda e: (e.spec.lattice, e.name))
