"""Answers of an artifact of an HLO program (NEFF or NEFF-SIM) to the question of a witness: slab by slab, through split_layout.

Owns the running only; question and comparison are `witness`'s. It does not go through the operators of the runtime, so that what
is judged here is the program and nothing else.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.engines.neff_artifact import Resident
from lqcd_runtime.errors import UsageError
from lqcd_runtime.split_layout import (
    encode,
    finish,
    fold,
    pack_blocks,
    pack_links,
    pack_spinor,
    resident,
    scalars,
    unpack_spinor,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.engines.neff_artifact import NeffArtifact
    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.signature import Spec
    from lqcd_runtime.witness_question import Question


def answers(asked: Question, entry: Entry, artifact: NeffArtifact, builder: NeffArtifact | None) -> list[Any]:
    """What `witness.summary` takes. Errors: UsageError for a fused artifact without its builder; those of the engine."""
    spec = entry.spec
    if asked.kind == "observable":
        results = artifact.run(pack_links(spec, asked.links()))
        return [list(finish(spec, results, asked.inputs).values())]
    inputs = {k: v for k, v in asked.inputs.items() if k != "mass"}
    if "mass" in asked.inputs:
        inputs["diagonal"] = asked.inputs["mass"] + 1.0 + 3.0 * asked.ratio
    held = _residents(asked, spec, artifact, builder, inputs)
    try:
        columns = np.stack(list(asked.columns()))
        if asked.kind == "chunk":
            return _solutions(spec, artifact, held[0], columns, inputs)
        out = np.zeros_like(columns)
        for slab in range(spec.shards):
            given = {"psi": pack_spinor(spec, columns, slab), **scalars(spec, inputs)}
            unpack_spinor(spec, artifact.run(given, held[slab])["out"], out, slab)
        return list(out)
    finally:
        for slab_held in held:
            slab_held.close()


def _residents(
    asked: Question, spec: Spec, artifact: NeffArtifact, builder: NeffArtifact | None, inputs: dict[str, float]
) -> list[Resident]:
    """The gauge field of each slab, or its blocks, on the device."""
    links, scales = asked.links(), (1.0, *[asked.ratio] * 3)
    if not spec.fused:
        packed = [resident(spec, links, inputs, phases=asked.phases, scales=scales, slab=slab) for slab in range(spec.shards)]
        return [Resident(artifact.engine, arrays) for arrays in packed]
    if builder is None:
        raise UsageError(f"witness of {artifact.entry.name}: needs the wilson_blocks artifact that makes its blocks")
    folded, made = fold(links, asked.phases, scales), builder.entry.spec
    slabs = [builder.run(pack_links(made, folded, slab))["blocks"] for slab in range(made.shards)]
    return [Resident(artifact.engine, pack_blocks(spec, slabs, slab)) for slab in range(spec.shards)]


def _solutions(
    spec: Spec, artifact: NeffArtifact, held: Resident, columns: NDArray[np.complex128], inputs: dict[str, float]
) -> list[tuple[Any, float]]:
    """(x, steps) of each column after one call from x = 0 with r = p = b and no threshold to stop at."""
    start = pack_spinor(spec, columns, dtype="float32")
    norms = np.sum(np.abs(columns) ** 2, axis=tuple(range(1, columns.ndim)))
    state = artifact.begin({"x": np.zeros_like(start), "r": start, "p": start, "rr": encode(norms, "float32")})
    try:
        given = {"stop": np.zeros(spec.batch, np.float32), **scalars(spec, inputs)}
        steps = artifact.step(state, given, held)["steps"]
        out = np.zeros_like(columns)
        unpack_spinor(spec, state.read("x"), out, dtype="float32")
        return [(x, float(n)) for x, n in zip(out, steps, strict=True)]
    finally:
        state.close()
