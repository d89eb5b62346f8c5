"""Answers of a loaded artifact to the question of a witness. Owns the running only; question and comparison are `witness`'s."""

from __future__ import annotations

import numpy as np

from lqcd_runtime.arrays import COMPLEX, links_of
from lqcd_runtime.compiled_solver import CompiledSolver
from lqcd_runtime.engines.cpu import CpuArtifact
from lqcd_runtime.errors import UsageError
from lqcd_runtime.gauge_calls import GaugeMap, Observable
from lqcd_runtime.inputs import Inputs
from lqcd_runtime.operator import DiracOperator
from lqcd_runtime.packed import pack_gauge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.witness import Question


def answers(asked: Question, entry: Entry, artifact: Any, builder: Any, threads: int) -> list[Any]:
    """What `witness.summary` takes; artifact, builder: CpuArtifact, or NeffArtifact (threads is then not read).

    Errors: UsageError for a fused artifact without its builder; those of the engine.
    """
    if not isinstance(artifact, CpuArtifact):
        from lqcd_runtime import replay_split

        return replay_split.answers(asked, entry, artifact, builder)
    links = asked.links()
    if asked.kind == "observable":
        return [list(Observable(artifact, threads)(links, **asked.inputs).values())]
    if asked.kind == "gauge_map":
        return [GaugeMap(artifact, threads)(links, **asked.inputs)]
    if entry.spec.fused and builder is None:
        raise UsageError(f"witness of {entry.name}: needs the wilson_blocks artifact that makes its blocks")
    inputs = Inputs(dict(asked.inputs), asked.phases)
    packed = pack_gauge(artifact, builder, links_of(links, entry.spec.dtype), inputs, threads)
    if asked.kind == "solver":
        solver = CompiledSolver(artifact, packed, links, inputs, threads)
        return _iterate(solver, np.stack(list(asked.columns())), asked.iterations)
    operator = DiracOperator(artifact, packed, links, inputs, threads, None)
    columns = np.stack(list(asked.columns())).astype(COMPLEX[entry.spec.dtype])
    return list(operator.apply(columns))


def _iterate(solver: CompiledSolver, columns: Any, iterations: int) -> list[Any]:
    """The solutions after the iterations of a witness, from zero."""
    whole = [1.0] * solver.batch
    solver.begin(columns, whole, [0] * solver.batch)
    solver.resident(iterations)
    return list(solver.end(np.zeros_like(columns), whole))
