"""Which entry file and constants a spec needs on a CPU target, and which specs no CPU program can express.

Owns: the table operator -> entry file, the list of defines, the refusals. Refuses to know: compilers and their flags.
"""

from __future__ import annotations

from lqcd_aot.program.cpu.sources import reachable
from lqcd_aot.program.model import Program
from lqcd_runtime.digest import hex_float
from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import format_extents, volume
from lqcd_runtime.signature import CPU_STORAGES, OPERATORS, STORED_KINDS, Spec
from lqcd_runtime.target import CPU_TARGETS

VECTOR_BYTES = {"x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64, "aarch64": 16}
C_TYPE = {"float32": "float", "float64": "double"}
KIND_ENTRY = {"builder": "blocks_builder.cpp", "observable": "gauge_observable.cpp", "gauge_map": "gauge_map.cpp"}
FAMILY_ENTRY = {
    "wilson": "dirac_wilson.cpp",
    "twisted": "dirac_twisted.cpp",
    "clover": "dirac_clover.cpp",
    "wilson_schur": "dirac_schur.cpp",
    "clover_schur": "dirac_clover_schur.cpp",
}
SOLVER_ENTRY = {
    "wilson": "solver_wilson.cpp",
    "clover": "solver_clover.cpp",
    "twisted": "solver_twisted.cpp",
    "wilson_schur": "solver_schur.cpp",
    "clover_schur": "solver_clover_schur.cpp",
}
FUSED_ENTRY = "dirac_blocks.cpp"
BAKEABLE = ("mass", "csw", "mu")
LARGEST_BATCH = 64
# Site numbers of a batch fit a signed 32-bit integer; one more would be beyond any machine's memory anyway.
LARGEST_SITES = 2**31 - 1


def program_for(spec: Spec, target: str) -> Program:
    """The program of a spec on a CPU target.

    Errors: UsageError with the reason where the templates cannot express it (target, colours, storage, batch, shards, fused,
    extents, baked constants).
    """
    refusal = refuse(spec, target)
    if refusal is not None:
        raise refusal
    entry = entry_file(spec)
    return Program(files=reachable(entry), defines=tuple(_defines(spec, target)), entry=entry)


def entry_file(spec: Spec) -> str:
    """The .cpp file of a spec's operator."""
    if spec.kind in KIND_ENTRY:
        return KIND_ENTRY[spec.kind]
    if spec.kind == "solver":
        return SOLVER_ENTRY[OPERATORS[spec.operator]["solves"]]
    return FUSED_ENTRY if spec.fused else FAMILY_ENTRY[family(spec.operator)]


def family(operator: str) -> str:
    """wilson_normal -> wilson, clover_schur_dagger -> clover_schur, wilson_hop -> wilson."""
    for suffix in ("_hop", "_dagger", "_normal"):
        operator = operator.removesuffix(suffix)
    return operator


def _defines(spec: Spec, target: str) -> list[tuple[str, str]]:
    t, z, y, x = spec.lattice
    out = [
        ("LQCD_IDENTITY", f'"{spec.name}@{target}"'),
        (f"LQCD_OPERATOR_{spec.operator}", "1"),
        ("LQCD_REAL", C_TYPE[spec.dtype]),
        ("LQCD_T", str(t)),
        ("LQCD_VECTOR_BYTES", str(VECTOR_BYTES[target])),
        ("LQCD_X", str(x)),
        ("LQCD_Y", str(y)),
        ("LQCD_Z", str(z)),
    ]
    if spec.kind == "solver":
        out += [("LQCD_SOLVER", "1"), (f"LQCD_SOLVER_{OPERATORS[spec.operator]['method']}", "1")]
    if spec.kind in ("dirac", "builder", "solver"):
        out += [("LQCD_BATCH", str(spec.batch)), ("LQCD_SHARDS", str(spec.shards))]
        if OPERATORS[spec.operator]["parity"] == "even":
            out.append(("LQCD_EVEN_ODD", "1"))
    if spec.storage != spec.dtype:
        out.append((f"LQCD_STORAGE_{spec.storage}", "1"))
    out += [(f"LQCD_BAKED_{name.upper()}", hex_float(value)) for name, value in spec.baked]
    return sorted(out)


def refuse(spec: Spec, target: str) -> UsageError | None:
    """None where the templates can express the spec, else the error that says why not."""
    if target not in CPU_TARGETS:
        return _no(spec, f"target {target} is not a CPU", "one of " + ", ".join(CPU_TARGETS), target)
    if spec.kind == "chunk":
        return _no(spec, "a CPU solver runs on the host, it needs no chunks", "a Neuron target or sim", target)
    if spec.dtype not in C_TYPE:
        return _no(spec, f"the templates do not compute in {spec.dtype}", " or ".join(C_TYPE), spec.dtype)
    if spec.nc != 3:
        return _no(spec, "the templates are written for three colours", "nc = 3", f"nc = {spec.nc}")
    if spec.storage != spec.dtype:
        refusal = _refuse_storage(spec, target)
        if refusal is not None:
            return refusal
    if volume(spec.lattice) * spec.batch > LARGEST_SITES:
        found = f"{format_extents(spec.lattice)} with batch {spec.batch}"
        return _no(spec, "the lattice is too large for one artifact", f"at most {LARGEST_SITES} sites times batch", found)
    if spec.kind == "dirac":
        return _refuse_dirac(spec)
    if spec.kind == "solver":
        return _refuse_solver(spec)
    if spec.kind == "builder":
        return _refuse_axes(spec, ("batch", "fused")) or _refuse_shards(spec) or _refuse_baked(spec)
    return _refuse_axes(spec, ("batch", "fused", "shards")) or _refuse_baked(spec)


def _refuse_storage(spec: Spec, target: str) -> UsageError | None:
    found, allowed = f"storage = {spec.storage}", CPU_STORAGES[spec.dtype]
    if spec.kind not in STORED_KINDS or spec.fused:
        what = "fused blocks" if spec.fused else f"kind {spec.kind}"
        return _no(spec, f"{what} are stored as they are computed with", f"storage = {spec.dtype}", found)
    if spec.storage not in allowed:
        return _no(spec, f"the templates do not store {spec.dtype} as {spec.storage}", f"storage = {' or '.join(allowed)}", found)
    if (spec.storage, target) == ("float16", "x86-64-v2"):
        return _no(spec, "x86-64-v2 has no instruction between float16 and float32", "bfloat16, or target x86-64-v3", found)
    return None


def _refuse_dirac(spec: Spec) -> UsageError | None:
    if spec.fused and family(spec.operator) != "wilson":
        allowed = "wilson_hop, wilson, wilson_dagger or wilson_normal"
        return _no(spec, "only the Wilson operators have fused blocks", allowed, spec.operator)
    if OPERATORS[spec.operator]["parity"] == "even" and spec.shards != 1:
        return _no(spec, "even-odd operators are not cut into slabs", "shards = 1", f"shards = {spec.shards}")
    return _refuse_batch(spec) or _refuse_odd(spec) or _refuse_shards(spec) or _refuse_baked(spec)


def _refuse_solver(spec: Spec) -> UsageError | None:
    return _refuse_axes(spec, ("fused", "shards")) or _refuse_batch(spec) or _refuse_odd(spec) or _refuse_baked(spec)


def _refuse_batch(spec: Spec) -> UsageError | None:
    if not 1 <= spec.batch <= LARGEST_BATCH:
        return _no(spec, "no such batch", f"1 <= batch <= {LARGEST_BATCH}", f"batch = {spec.batch}")
    return None


def _refuse_odd(spec: Spec) -> UsageError | None:
    odd = [n for n in spec.lattice if n % 2]
    if OPERATORS[spec.operator]["parity"] == "even" and odd:
        return _no(spec, "even-odd needs even extents", "four even extents", f"an extent of {odd[0]}")
    return None


def _refuse_shards(spec: Spec) -> UsageError | None:
    if spec.shards < 1 or spec.lattice[0] % spec.shards:
        return _no(spec, "shards must divide T", f"a divisor of {spec.lattice[0]}", f"shards = {spec.shards}")
    return None


def _refuse_axes(spec: Spec, names: tuple[str, ...]) -> UsageError | None:
    plain = {"batch": 1, "fused": False, "shards": 1}
    for name in names:
        if getattr(spec, name) != plain[name]:
            return _no(
                spec, f"{name} does not apply to kind {spec.kind}", f"{name} = {plain[name]}", f"{name} = {getattr(spec, name)}"
            )
    return None


def _refuse_baked(spec: Spec) -> UsageError | None:
    inputs = OPERATORS[spec.operator]["inputs"] if spec.kind in ("dirac", "solver") else ()
    allowed = [name for name in inputs if name in BAKEABLE]
    for name, _ in spec.baked:
        if name not in allowed:
            return _no(spec, f"{name} cannot be baked in", ", ".join(allowed) or "no baked constants", name)
    return None


def _no(spec: Spec, reason: str, expected: str, found: str) -> UsageError:
    return UsageError(f"program {spec.name}: {reason}", expected=expected, found=found)
