"""What one application or iteration has to do: flops, the least bytes it must move, the bytes it works on.

Flops by the convention of the field: 1320 per site and hop, 504 per clover term. Least bytes: every sweep over the lattice reads
each of its links once (4 a site; both half sweeps of an even-odd hop read all of them), each clover block once (72 reals of the
dtype), and every vector of the sweep once, its neighbours being in cache; nothing is read only to be overwritten. Working set:
the artifact's own buffers, whatever layout it chose. Knows sizes of stored numbers; refuses to know machines.
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
# storage: (bytes of a number, bytes of a scale that a site's spinor has beside its numbers).
FORMATS = {"float64": (8, 0), "float32": (4, 0), "float16": (2, 4), "bfloat16": (2, 0)}
WHOLE, TWO_ROWS = 18, 12


class Stored(NamedTuple):
    """Bytes of what a sweep reads and writes: a site's spinor, a link."""

    spinor: int
    link: int


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
    return Work(
        flops, least_bytes(spec, stored(spec, artifact.bytes_of(GAUGE) * spec.shards), blocks), working_set(spec, artifact)
    )


def stored(spec: Spec, gauge: int | None = None) -> Stored:
    """How a spec stores its numbers: by the word of its storage, as far as FORMATS knows how the word begins, else as its dtype.

    gauge: bytes of packed links. A storage that is more than the name of a format may keep two rows of a link; they say whether.
    """
    base = next((word for word in sorted(FORMATS, key=len, reverse=True) if spec.storage.startswith(word)), spec.dtype)
    real, scale = FORMATS[base]
    link = WHOLE
    if gauge is not None and spec.storage not in FORMATS and not spec.fused:
        # Packed links are stored once or, where that is faster, twice: 72 or 144 numbers a site, 48 or 96 without the third rows.
        numbers = gauge / real / volume(spec.lattice)
        link = TWO_ROWS if min((48, 72, 96, 144), key=lambda n: abs(n - numbers)) in (48, 96) else WHOLE
    return Stored(SPINOR_REALS * real + scale, link * real)


def least_bytes(spec: Spec, form: Stored | None = None, blocks: int | None = None) -> int:
    """See the module. form: `stored`; blocks: bytes of the per-site blocks in the place of links in a fused artifact."""
    sites, form = volume(spec.lattice), form or stored(spec)
    even = OPERATORS[spec.operator]["parity"] == "even"
    word = OPERATORS[spec.operator].get("solves", spec.operator)
    applications = 2 if spec.kind == "solver" or word.endswith("_normal") else 1
    links = blocks if blocks is not None else sites * LINKS * form.link
    clover = sites * CLOVER_REALS * FORMATS[spec.dtype][0] if word.startswith("clover") else 0
    if spec.kind == "solver":
        vectors = ITERATION_FIELDS * sites * spec.batch * form.spinor // (2 if even else 1)
    else:
        vectors = applications * 2 * sites * spec.batch * form.spinor
    return int(applications * (links * (2 if even else 1) + clover) + vectors)


def working_set(spec: Spec, artifact: CpuArtifact) -> int:
    """Bytes of all buffers of an application or iteration."""
    slabs = spec.shards * (artifact.bytes_of(GAUGE) + artifact.bytes_of(CLOVER))
    return slabs + sum(artifact.bytes_of(what) for what in (SPINOR_IN, SPINOR_OUT, WORKSPACE, STATE))
