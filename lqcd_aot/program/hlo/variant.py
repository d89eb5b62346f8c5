"""Spec and target -> HloProgram, and which specs no HLO program can express.

Owns the refusals. The same bytes serve every Neuron generation and the simulator: what a target changes is the compiler's
flags. Loads torch only where neither this process nor the cache has the program.
"""

from __future__ import annotations

import threading

from lqcd_aot.program.hlo import cache
from lqcd_aot.program.hlo.model import HloProgram
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import NEURON_DTYPES, OPERATORS, Spec
from lqcd_runtime.split_binding import binding
from lqcd_runtime.target import NEURON_TARGETS, SIM_TARGET

HLO_TARGETS = (*NEURON_TARGETS, SIM_TARGET)
FUSED = ("wilson_hop", "wilson", "wilson_dagger", "wilson_normal", "wilson_cg_chunk")
# Moving columns of one matrix-engine instruction (facts of the tensor engine): more would only split the dot again.
LARGEST_BATCH = 512
LARGEST_CHUNK = 256

_lowered: dict[Spec, bytes] = {}
_lock = threading.Lock()


def program_for(spec: Spec, target: str) -> HloProgram:
    """The program of a spec on a Neuron target or the simulator.

    Errors: UsageError with the reason where no program can express it (target, colours, dtype, storage, batch, shards, fused,
    extents, iterations, baked constants, gauge maps).
    """
    refusal = refuse(spec, target)
    if refusal is not None:
        raise refusal
    return HloProgram(hlo=lowered(spec), binding=binding(spec), identity=f"{spec.name}@{target}")


def lowered(spec: Spec) -> bytes:
    """Canonical HLO bytes: from this process, from the cache on disk, or lowered now and kept in both."""
    with _lock:
        hlo = _lowered.get(spec) or cache.load(spec)
        if hlo is None:
            from lqcd_aot.program.hlo.lower import lower

            hlo = lower(spec)
            cache.save(spec, hlo)
        _lowered[spec] = hlo
        return hlo


def refuse(spec: Spec, target: str) -> UsageError | None:
    """None where an HLO program can express the spec, else the error that says why not."""
    if target not in HLO_TARGETS:
        return _no(spec, f"target {target} takes no HLO program", "one of " + ", ".join(HLO_TARGETS), target)
    if spec.kind == "gauge_map":
        return _no(spec, "the matrix exponential of a gauge map has no lowering", "a CPU target", target)
    if spec.kind == "solver":
        return _no(spec, "a solver of a device is a chunk of iterations", "wilson_cg_chunk", spec.operator)
    if spec.nc != 3:
        return _no(spec, "the modules are written for three colours", "nc = 3", f"nc = {spec.nc}")
    if spec.dtype not in NEURON_DTYPES:
        return _no(spec, "the device has no double precision", " or ".join(NEURON_DTYPES), spec.dtype)
    if spec.storage != spec.dtype:
        return _no(spec, "fields are stored in the dtype", f"storage = {spec.dtype}", f"storage = {spec.storage}")
    if spec.baked:
        return _no(spec, "scalars are parameters, one program serves all of them", 'constants "external"', spec.constants)
    return _refuse_axes(spec) or _refuse_lattice(spec)


def _refuse_axes(spec: Spec) -> UsageError | None:
    batched = spec.kind in ("dirac", "chunk")
    if not 1 <= spec.batch <= (LARGEST_BATCH if batched else 1):
        limit = f"1 <= batch <= {LARGEST_BATCH}" if batched else "batch = 1"
        return _no(spec, "no such batch", limit, f"batch = {spec.batch}")
    if spec.fused and spec.operator not in FUSED:
        return _no(spec, "it has no fused blocks", ", ".join(FUSED), spec.operator)
    if spec.iterations > LARGEST_CHUNK:
        return _no(spec, "a chunk is unrolled", f"iterations <= {LARGEST_CHUNK}", f"iterations = {spec.iterations}")
    return None


def _refuse_lattice(spec: Spec) -> UsageError | None:
    even_odd = OPERATORS[spec.operator].get("parity") == "even"
    whole = even_odd or spec.kind not in ("dirac", "builder")
    if whole and spec.shards != 1:
        return _no(spec, "it is not cut into slabs", "shards = 1", f"shards = {spec.shards}")
    if spec.shards < 1 or spec.lattice[0] % spec.shards:
        return _no(spec, "shards must divide T", f"a divisor of {spec.lattice[0]}", f"shards = {spec.shards}")
    if even_odd and spec.lattice[3] < 4:
        return _no(spec, "a checkerboard keeps X/2 sites of a row, and two neighbours of a site must differ", "X >= 4", "X = 2")
    odd = [n for n in spec.lattice if n % 2]
    if even_odd and odd:
        return _no(spec, "even-odd needs even extents", "four even extents", f"an extent of {odd[0]}")
    return None


def _no(spec: Spec, reason: str, expected: str, found: str) -> UsageError:
    return UsageError(f"program {spec.name}: {reason}", expected=expected, found=found)
