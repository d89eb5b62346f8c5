"""Gauge fields in an artifact's layout: packed once, shared by all operators that read the same layout of the same numbers.

Owns `PackedGauge` (one buffer per slab) and what makes two of them equal: layout name, extents, slabs, size, digest of the
links as rounded to the artifact's dtype, hop factors, phases. Refuses to know how operators are chosen.
"""

from __future__ import annotations

import math

from lqcd_runtime.arrays import address
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.engines.cpu import GAUGE, NOT_IN_GROUP, CpuArtifact, doubles
from lqcd_runtime.engines.memory import Buffer
from lqcd_runtime.errors import EngineError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.inputs import Inputs


# storage: (least, most, what to take instead). Links carry the factor f of the hop: outside these a float16 loses digits or
# overflows, and the product of two rows, f^2, or f^4 on the way to the third row's factor, leaves what its arithmetic holds.
SCALES = {
    "float16": (2.0**-10, 2.0**14, "storage='bfloat16' has float32's range"),
    "float32_12": (2.0**-45, 2.0**45, "plain float32 keeps all three rows"),
    "float64_12": (2.0**-240, 2.0**240, "plain float64 keeps all three rows"),
}


class PackedGauge:
    """Packed links or fused blocks: one Buffer per slab."""

    __slots__ = ("__weakref__", "layout", "slabs")

    def __init__(self, layout: str, slabs: list[Buffer]) -> None:
        self.layout = layout
        self.slabs = slabs

    @property
    def bytes(self) -> int:
        return sum(slab.size for slab in self.slabs)


def pack_gauge(
    artifact: CpuArtifact,
    builder: CpuArtifact | None,
    links: NDArray[Any],
    inputs: Inputs,
    threads: int,
    cache: MutableMapping[Any, PackedGauge] | None = None,
) -> PackedGauge:
    """The links in the layout of `artifact`, packed by itself or, for a fused one, by its builder.

    cache: where packed fields are looked up and left (weakly). Errors: EngineError where builder and artifact disagree,
    UsageError for an anisotropy that takes links stored as float16 out of its range, or for links that are not in SU(3) where
    the artifact keeps two rows of them.
    """
    packer = builder or artifact
    size = artifact.bytes_of(GAUGE)
    if packer.layout != artifact.layout or packer.bytes_of(GAUGE) != size:
        raise EngineError(
            f"artifact {artifact.entry.name}: its blocks are not what {packer.entry.name} makes",
            expected=f"{artifact.layout}, {size} bytes",
            found=f"{packer.layout}, {packer.bytes_of(GAUGE)} bytes",
            hint="build both from one recipe with one compiler",
        )
    shards = artifact.entry.spec.shards
    scale, phase = inputs.scale(), inputs.phase()
    storage = artifact.entry.spec.storage
    least, most, instead = SCALES.get(storage, (0.0, math.inf, ""))
    if not all(least <= abs(s) <= most for s in scale):
        raise UsageError(
            f"artifact {artifact.entry.name}: the anisotropy takes links out of the range of {storage}",
            expected=f"hop factors from {least:.3g} to {most:.3g}", found=list(scale), hint=instead,
        )  # fmt: skip
    key = (
        artifact.layout,
        size,
        links.shape,
        shards,
        str(links.dtype),
        sha256_hex(links.reshape(-1).view("u1").data),
        *scale,
        *phase,
    )
    packed = cache.get(key) if cache is not None else None
    if packed is None:
        slabs = [Buffer(size) for _ in range(shards)]
        for i, slab in enumerate(slabs):
            arguments = (slab.address, address(links), i, doubles(scale), doubles(phase))
            status = packer.status("lqcd_pack_gauge", *arguments, threads=threads)
            if status == NOT_IN_GROUP:
                from lqcd_runtime.special_unitary import not_in_group

                raise not_in_group(links, artifact.entry.name, artifact.entry.spec.storage)
            if status != 0:
                raise packer.refusal("lqcd_pack_gauge", status)
        packed = PackedGauge(artifact.layout, slabs)
        if cache is not None:
            cache[key] = packed
    return packed
