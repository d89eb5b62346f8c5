"""What stays on a device for an operator: gauge links, fused blocks, clover terms, one group of arrays each, shared where equal.

Owns the groups and what makes two of them equal: engine, names and shapes, slab, digest of the links, hop factors, phases, and
the numbers that an inverse depends on. Packing is split_layout's, memory the engine's. Packed when a core first needs them.
"""

from __future__ import annotations

from lqcd_runtime import split_layout
from lqcd_runtime.arrays import links_of
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.engines.neff_artifact import Resident
from lqcd_runtime.errors import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.engines.neff_artifact import NeffArtifact
    from lqcd_runtime.inputs import Inputs

    Arrays = Mapping[str, NDArray[Any]]


class Residents:
    """The groups of one slab, seen as one."""

    def __init__(self, groups: list[Resident]) -> None:
        self._groups = groups

    def on(self, core: int) -> dict[str, Any]:
        """{name: device tensor} on a core. Errors: those of the engine."""
        return {name: tensor for group in self._groups for name, tensor in group.on(core).items()}


def numbers(inputs: Inputs) -> dict[str, float]:
    """What the scalars of a program are called: diagonal, csw, mu."""
    named = {name: value for name, value in inputs.scalars.items() if name != "mass"}
    return {"diagonal": inputs.diagonal, **named} if "mass" in inputs.scalars else named


def residents(
    artifact: NeffArtifact, builder: NeffArtifact | None, gauge: Any, inputs: Inputs, cache: MutableMapping[Any, Resident]
) -> list[Residents]:
    """One per slab. cache: where groups are looked up and left (weakly). builder: the `wilson_blocks` artifact of a fused one.

    Errors: UsageError for another gauge field; EngineError for an artifact whose residents this release does not know.
    """
    spec = artifact.entry.spec
    links = links_of(gauge, "float64", spec.lattice)
    digest = sha256_hex(links.reshape(-1).view("u1").data)
    phases, scales, scalars = inputs.phases, inputs.scale(), numbers(inputs)

    def folded() -> NDArray[Any]:
        return split_layout.fold(links, phases, scales)

    def blocks(slab: int) -> Arrays:
        assert builder is not None
        made, whole = builder.entry.spec, folded()
        slabs = [builder.run(split_layout.pack_links(made, whole, i))["blocks"] for i in range(made.shards)]
        return split_layout.pack_blocks(spec, slabs, slab)

    # group: (begins of its names, how it is made, what else than the links it depends on)
    known: list[tuple[tuple[str, ...], Callable[[int], Arrays], tuple[Any, ...]]] = [
        (("links",), lambda slab: split_layout.pack_links(spec, folded(), slab), (phases, tuple(scales))),
        (("blocks",), blocks, (phases, tuple(scales), builder and builder.entry.build_key)),
        (("clover_", "inverse_"), lambda slab: split_layout.pack_clover(spec, links, scalars, slab), tuple(scalars.items())),
        (("clover",), lambda slab: split_layout.pack_clover(spec, links, scalars, slab), ()),
    ]
    return [Residents(_groups(artifact, known, slab, digest, cache)) for slab in range(spec.shards)]


def _groups(
    artifact: NeffArtifact,
    known: list[tuple[tuple[str, ...], Callable[[int], Arrays], tuple[Any, ...]]],
    slab: int,
    digest: str,
    cache: MutableMapping[Any, Resident],
) -> list[Resident]:
    wanted = {slot.name: slot for slot in artifact.binding.named("resident")}
    groups = []
    for begins, make, facts in known:
        names = sorted(name for name in wanted if name.startswith(begins))
        if not names:
            continue
        shapes = tuple((name, wanted[name].dtype, wanted[name].shape) for name in names)
        for name in names:
            del wanted[name]
        key = ("resident", id(artifact.engine), shapes, slab, artifact.entry.spec.shards, digest, facts)
        group = cache.get(key)
        if group is None:
            group = Resident(artifact.engine, make=lambda make=make: make(slab))  # type: ignore[misc]
            cache[key] = group
        groups.append(group)
    if wanted:
        raise EngineError(f"artifact {artifact.entry.name}: has residents that are not known", found=", ".join(wanted))
    return groups
