"""Which specs a program can express at all, so that nobody is advised to build one that cannot be built.

Owns the sentences for a user of the runtime, which has no programs at hand. Programs refuse for themselves and in more detail, in
lqcd_aot/program/*/variant.py; a property test holds the two together: who widens one, widens the other.
"""

from __future__ import annotations

from lqcd_runtime.signature import CPU_DTYPES, CPU_STORAGES, NEURON_DTYPES, OPERATORS, STORED_KINDS, Spec

# Per engine: columns that one call may have.
LARGEST_BATCH = {"cpu": 64, "neuron": 512}
LARGEST_SITES = 2**31 - 1
LARGEST_CHUNK = 256
FUSED = ("wilson_hop", "wilson", "wilson_dagger", "wilson_normal")
FUSED_CHUNKS = ("wilson_cg_chunk",)
BATCHED = {"cpu": ("dirac", "solver"), "neuron": ("dirac", "chunk")}
ABSENT = {"cpu": ("chunk",), "neuron": ("gauge_map", "solver")}
SHARDED = ("dirac", "builder")


def advice(spec: Spec) -> str:
    """What to do about a spec that nobody built: add it to a recipe, or, where no program can express it, what is wrong."""
    if why_not(spec, "cpu") is None or why_not(spec, "neuron") is None:
        return f"add {spec.name} to the recipe and build it"
    fits_cpu = spec.dtype in CPU_DTYPES and spec.kind not in ABSENT["cpu"]
    return f"no program can express {spec.name}: {why_not(spec, 'cpu' if fits_cpu else 'neuron')}"


def why_not(spec: Spec, engine: str) -> str | None:
    """None where a program for an engine ("cpu" or "neuron") can express the spec, else one sentence that names the field."""
    dtypes = CPU_DTYPES if engine == "cpu" else NEURON_DTYPES
    if spec.kind in ABSENT[engine]:
        return f"operator {spec.operator} is not for engine {engine}"
    if spec.dtype not in dtypes:
        return f"dtype is {spec.dtype}, on engine {engine} it is {' or '.join(dtypes)}"
    if spec.storage != spec.dtype and (engine != "cpu" or spec.fused or spec.kind not in STORED_KINDS):
        return f"storage is {spec.storage}, it must be the dtype, {spec.dtype}"
    if engine == "cpu" and spec.storage not in CPU_STORAGES[spec.dtype]:
        return f"storage is {spec.storage}, with {spec.dtype} it is {' or '.join(CPU_STORAGES[spec.dtype])}"
    if spec.nc != 3:
        return f"nc is {spec.nc}, it must be 3"
    return _counts(spec, engine) or _slabs(spec) or _extents(spec, engine) or _fused(spec, engine) or _baked(spec, engine)


def _counts(spec: Spec, engine: str) -> str | None:
    largest = LARGEST_BATCH[engine] if spec.kind in BATCHED[engine] else 1
    if not 1 <= spec.batch <= largest:
        return f"batch is {spec.batch}, it must be {'1' if largest == 1 else f'from 1 to {largest}'}"
    if spec.iterations > LARGEST_CHUNK:
        return f"iterations is {spec.iterations}, it must be at most {LARGEST_CHUNK}"
    return None


def _is_even_odd(spec: Spec) -> bool:
    return bool(OPERATORS[spec.operator].get("parity") == "even")


def _slabs(spec: Spec) -> str | None:
    if spec.shards != 1 and (spec.kind not in SHARDED or _is_even_odd(spec)):
        return f"shards is {spec.shards}, it must be 1 for {spec.operator}"
    if spec.shards < 1 or spec.lattice[0] % spec.shards:
        return f"shards is {spec.shards}, it must divide T = {spec.lattice[0]}"
    return None


def _extents(spec: Spec, engine: str) -> str | None:
    odd = [n for n in spec.lattice if n % 2]
    if _is_even_odd(spec) and odd:
        return f"lattice has an extent of {odd[0]}, {spec.operator} is even-odd and needs even ones"
    if engine == "neuron" and _is_even_odd(spec) and spec.lattice[3] < 4:
        return f"lattice has X = {spec.lattice[3]}, {spec.operator} needs X >= 4"
    sites = spec.lattice[0] * spec.lattice[1] * spec.lattice[2] * spec.lattice[3] * spec.batch
    if engine == "cpu" and sites > LARGEST_SITES:
        return f"lattice times batch has {sites} sites, it must be at most {LARGEST_SITES}"
    return None


def _fused(spec: Spec, engine: str) -> str | None:
    allowed = FUSED + (FUSED_CHUNKS if engine == "neuron" else ())
    if spec.fused and spec.operator not in allowed:
        return f"fused is true, it is for {', '.join(allowed)} only"
    return None


def _baked(spec: Spec, engine: str) -> str | None:
    inputs = OPERATORS[spec.operator]["inputs"] if engine == "cpu" and spec.kind in ("dirac", "solver") else ()
    wrong = [name for name, _ in spec.baked if name not in inputs]
    return f"{wrong[0]} cannot be baked into {spec.operator} for engine {engine}" if wrong else None
