"""From what a caller asks to a running Dirac operator: spec, selection, baked constants, builder, gauge buffers, family.

Owns the order of the choice: the artifact with run-time constants, else one whose baked constants equal the caller's exactly;
never another dtype, batch, boundary or lattice. Used by `Bundle.operator` and by the operators themselves for their siblings.
"""

from __future__ import annotations

from itertools import combinations

from lqcd_runtime.arrays import as_numpy, links_of
from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.expressible import advice
from lqcd_runtime.geometry import volume
from lqcd_runtime.operator import DiracOperator
from lqcd_runtime.packed import pack_gauge
from lqcd_runtime.scalars import threads as checked_threads
from lqcd_runtime.select import check_engine, refusal
from lqcd_runtime.signature import Spec, kind_of
from lqcd_runtime.solver_choice import Solvers
from lqcd_runtime.target import CPU_TARGETS, this_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.engines.cpu import CpuArtifact
    from lqcd_runtime.inputs import Inputs
    from lqcd_runtime.manifest import Entry


def lattice_of(gauge: Any) -> tuple[int, int, int, int]:
    """Extents of a Gauge or of an array of links. Errors: UsageError."""
    from lqcd_runtime.geometry import parse_extents

    links = as_numpy(getattr(gauge, "links", gauge), "gauge field")
    if links.ndim != 7:
        raise UsageError("gauge field: has the wrong shape", expected="[T,Z,Y,X,4,3,3]", found=list(links.shape))
    return parse_extents(links.shape[:4])


class Running:
    """How an operator runs: threads of a CPU, engine ("cpu", "neuron", "sim" or None), NeuronCores (None: all)."""

    __slots__ = ("cores", "engine", "threads")

    def __init__(self, threads: int | None = None, engine: str | None = None, cores: tuple[int, ...] | None = None) -> None:
        """Errors: UsageError for a number of threads or an engine that cannot be."""
        check_engine(engine)
        self.threads, self.engine, self.cores = checked_threads(threads), engine, cores


def operator(bundle: Bundle, spec: Spec, gauge: Any, inputs: Inputs, how: Running) -> DiracOperator:
    """Select, load, pack. Errors: NoVariant, CorruptError, EngineError, UsageError."""
    if kind_of(spec.operator) != "dirac":
        raise UsageError(
            f"operator {spec.operator}: is no Dirac operator", found=kind_of(spec.operator), hint="bundle.observable"
        )
    entry = select_entry(bundle, spec, inputs, how.engine)
    its_builder = builder_entry(bundle, entry) if entry.spec.fused else None
    artifact = bundle.load(entry)
    builder = bundle.load(its_builder) if its_builder else None

    def sibling(word: str, its_inputs: Inputs, of: DiracOperator) -> DiracOperator:
        return operator(bundle, spec.replace(operator=word, baked={}), of.gauge, its_inputs, how)

    if entry.target not in CPU_TARGETS:
        from lqcd_runtime.neff_operator import NeffOperator
        from lqcd_runtime.neff_residents import residents

        held = residents(artifact, builder, gauge, inputs, bundle.packed_gauges)
        return NeffOperator(artifact, held, gauge, inputs, how.cores, sibling)
    packed = _packed(bundle, artifact, builder, gauge, inputs, how.threads)
    made = DiracOperator(artifact, packed, gauge, inputs, how.threads, sibling)
    made.solvers = Solvers(bundle, how)
    return made


def _packed(
    bundle: Bundle, artifact: CpuArtifact, builder: CpuArtifact | None, gauge: Any, inputs: Inputs, threads: int | None
) -> Any:
    from lqcd_runtime.engines.cpu import default_threads

    spec = artifact.entry.spec
    links = links_of(gauge, spec.dtype, spec.lattice)
    return pack_gauge(artifact, builder, links, inputs, threads or default_threads(volume(spec.lattice)), bundle.packed_gauges)


def select_entry(bundle: Bundle, spec: Spec, inputs: Inputs, engine: str | None) -> Entry:
    """The entry with run-time constants, or the one in which constants with exactly the caller's values are baked.

    Errors: NoVariant.
    """
    names = sorted(inputs.scalars)
    baked = [dict(pairs) for n in range(1, len(names) + 1) for pairs in combinations(inputs.scalars.items(), n)]
    for option in [spec, *(spec.replace(baked=values) for values in baked)]:
        if any(refusal(e, this_host(), engine) is None for e in bundle.find(option)):
            return bundle.select(option, engine=engine).choice
    return bundle.select(spec, engine=engine).choice


def builder_entry(bundle: Bundle, entry: Entry) -> Entry:
    """The `wilson_blocks` entry that makes the blocks of a fused entry: same lattice, dtype, slabs and target.

    Errors: NoVariant.
    """
    spec = entry.spec
    wanted = Spec("wilson_blocks", spec.lattice, spec.dtype, storage=spec.storage, shards=spec.shards, nc=spec.nc)
    for candidate in bundle.find(wanted):
        if candidate.target == entry.target:
            return candidate
    raise NoVariant(
        f"no variant of {bundle.path} is {wanted.name}@{entry.target}, which makes the blocks of {entry.name}",
        nearest=entry.name,
        differing={"operator": (wanted.operator, spec.operator)},
        hint=advice(wanted),
    )
