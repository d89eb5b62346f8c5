"""What one application or iteration has to do: flops, the least bytes it must move, the bytes it works on.

Flops by the convention of the field: 1320 per site and hop, 504 per clover term. Least bytes: every sweep over the lattice reads
each of its links once (4 a site; both half sweeps of an even-odd hop read all of them), each clover block once (72 reals), and
every vector of the sweep once, its neighbours being in cache; nothing is read only to be overwritten. Working set: the
artifact's own buffers, whatever layout it chose. Knows sizes of stored numbers; refuses to know machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lqcd_runtime.engines.cpu import CLOVER, GAUGE, SPINOR_IN, SPINOR_OUT, STATE, WORKSPACE
from lqcd_runtime.geometry import volume
from lqcd_runtime.operator import flops_per_site
from lqcd_runtime.signature import OPERATORS, Spec

if TYPE_CHECKING:
    from lqcd_runtime.engines.cpu import CpuArtifact

LINKS, SPINOR_REALS, CLOVER_REALS = 4, 24, 72
# Fields that an iteration of CG reads or writes: 2 + 3 in its two sweeps, one more each for an even-odd half sweep, 5 in the
# update.
ITERATION_FIELDS = 11
REAL_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
LINK_REALS = 18


class Work(NamedTuple):
    """Of one application (an iteration of a solver) to all right-hand sides: flops, least bytes, working set in bytes."""

    flops: int
    least_bytes: int
    working_set: int

    @property
    def intensity(self) -> float:
        """Flops per byte."""
        return self.flops / self.least_bytes


def work_of(spec: Spec, artifact: CpuArtifact) -> Work:
    """For a spec of kind dirac or solver and its loaded artifact."""
    word = OPERATORS[spec.operator].get("solves", spec.operator)
    applications = 2 if spec.kind == "solver" else 1
    flops = applications * flops_per_site(word) * volume(spec.lattice) * spec.batch
    blocks = artifact.bytes_of(GAUGE) * spec.shards if spec.fused else None
    return Work(flops, least_bytes(spec, blocks), working_set(spec, artifact))


def least_bytes(spec: Spec, blocks: int | None = None) -> int:
    """See the module. blocks: bytes of the per-site blocks that stand in the place of links in a fused artifact."""
    sites, real = volume(spec.lattice), real_bytes(spec)
    even = OPERATORS[spec.operator]["parity"] == "even"
    word = OPERATORS[spec.operator].get("solves", spec.operator)
    applications = 2 if spec.kind == "solver" or word.endswith("_normal") else 1
    links = blocks if blocks is not None else sites * LINKS * link_reals(spec) * real
    clover = sites * CLOVER_REALS * real if word.startswith("clover") else 0
    if spec.kind == "solver":
        vectors = ITERATION_FIELDS * SPINOR_REALS * sites * spec.batch * real // (2 if even else 1)
    else:
        vectors = applications * 2 * SPINOR_REALS * sites * spec.batch * real
    return int(applications * (links * (2 if even else 1) + clover) + vectors)


def real_bytes(spec: Spec) -> int:
    """Bytes of a stored number of links and vectors."""
    return REAL_BYTES[spec.storage]


def link_reals(spec: Spec) -> int:
    """Stored numbers of a link: 18, or 12 where two rows are kept and the third is computed."""
    return LINK_REALS


def working_set(spec: Spec, artifact: CpuArtifact) -> int:
    """Bytes of all buffers of an application or iteration."""
    slabs = spec.shards * (artifact.bytes_of(GAUGE) + artifact.bytes_of(CLOVER))
    return slabs + sum(artifact.bytes_of(what) for what in (SPINOR_IN, SPINOR_OUT, WORKSPACE, STATE))
