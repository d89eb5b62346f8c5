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
    from collections.abc import Iterator, Sequence
    from typing import Any

    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.witness_question import Question


def runs(asked: Question, entry: Entry, artifact: Any, builder: Any, threads: Sequence[int]) -> Iterator[list[Any]]:
    """What `witness.summary` takes, once for every number of threads; artifact, builder: CpuArtifact, or NeffArtifact (run once).

    Errors: UsageError for a fused artifact without its builder; those of the engine.
    """
    if not isinstance(artifact, CpuArtifact):
        from lqcd_runtime import replay_split

        yield replay_split.answers(asked, entry, artifact, builder)
        return
    if entry.spec.fused and builder is None:
        raise UsageError(f"witness of {entry.name}: needs the wilson_blocks artifact that makes its blocks")
    # Made once for all runs, and rounded as the artifact takes it: an operator would do both again each time.
    links = asked.links() if asked.kind == "solver" else links_of(asked.links(), entry.spec.dtype)
    columns = None
    if asked.kind in ("dirac", "solver"):
        columns = np.stack(list(asked.columns())).astype(np.complex128 if asked.kind == "solver" else COMPLEX[entry.spec.dtype])
    for count in threads:
        yield _answers(asked, artifact, builder, count, links, columns)


def _answers(asked: Question, artifact: CpuArtifact, builder: Any, threads: int, links: Any, columns: Any) -> list[Any]:
    if asked.kind == "observable":
        return [list(Observable(artifact, threads)(links, **asked.inputs).values())]
    if asked.kind == "gauge_map":
        return [GaugeMap(artifact, threads)(links, **asked.inputs)]
    inputs = Inputs(dict(asked.inputs), asked.phases, *asked.anisotropy)
    packed = pack_gauge(artifact, builder, links_of(links, artifact.entry.spec.dtype), inputs, threads)
    if asked.kind == "solver":
        return _iterate(CompiledSolver(artifact, packed, links, inputs, threads), columns, asked.iterations)
    return list(DiracOperator(artifact, packed, links, inputs, threads, None).apply(columns))


def same_bits(these: list[Any], those: list[Any]) -> bool:
    """Whether two answers are equal bit by bit; a NaN equals itself."""
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(these, those, strict=True))


def _iterate(solver: CompiledSolver, columns: Any, iterations: int) -> list[Any]:
    """The solutions after the iterations of a witness, from zero."""
    whole = [1.0] * solver.batch
    solver.begin(columns, whole, [0] * solver.batch)
    solver.resident(iterations)
    return list(solver.end(np.zeros_like(columns), whole))
