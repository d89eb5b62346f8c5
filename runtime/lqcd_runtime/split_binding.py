"""The parameters and results of an HLO program: names, shapes, dtypes, roles, aliases. One spec, one binding.

Owns the calling form of programs for targets without complex numbers. What the arrays hold is packed by split_layout.py; the
program itself is made by lqcd_aot.program.hlo from this very table, and a record carries it (`record["binding"]`).

    components      psi [2,4,3,B,T,Z,Y,X], links [2,4,3,3,T,Z,Y,X]: (re,im), spin or direction, colour, then sites
    sites           psi [T,Z,Y,X,24,B], blocks [T,Z,Y,X,24,96]: fused; 24 = (re,im) x spin x colour
    checkerboard    components on the sites of one parity: [..., T,Z,Y,X/2]

A slab of T (shards > 1) is entered with `halo` more slices of psi on each side. Roles: input (one call), resident (stays on the
device while gauge field and inputs stay), scalar, state (result of one call, parameter of the next), output, partial (sums that
split_layout.finish adds up in double precision).
"""

from __future__ import annotations

from lqcd_runtime.signature import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.signature import Spec

    Field = dict[str, Any]

COMPONENTS, SITES, CHECKERBOARD = "components", "sites", "checkerboard"
SPINOR_ROWS, HALF_ROWS = 24, 96
AXES = ("T", "Z", "Y", "X")


def family_and_form(operator: str) -> tuple[str, str]:
    """ "clover_schur_dagger" -> ("clover_schur", "dagger"); "wilson_hop" -> ("wilson", "hop"); form "forward" otherwise."""
    for form in ("hop", "dagger", "normal"):
        if operator.endswith("_" + form):
            return operator[: -len(form) - 1], form
    return operator, "forward"


def halo(spec: Spec) -> int:
    """Slices of T beyond each end of a slab that a call reads: 0 for the whole lattice."""
    if spec.shards == 1 or spec.kind != "dirac":
        return 0
    return 2 if spec.operator.endswith("_normal") else 1


def layout(spec: Spec) -> str:
    """COMPONENTS, SITES or CHECKERBOARD."""
    if spec.fused:
        return SITES
    return CHECKERBOARD if OPERATORS[spec.operator].get("parity") == "even" else COMPONENTS


def binding(spec: Spec) -> dict[str, Any]:
    """{"layout", "halo", "parameters", "results", "aliases"} of the program of a spec.

    parameters: {"number", "name", "shape", "dtype", "role"} in the order of their numbers; results: the same without number, in
    the order of the tuple; aliases: [result, parameter] pairs that share a buffer. JSON-able.
    """
    parameters, results = {"dirac": _dirac, "builder": _builder, "observable": _observable, "chunk": _chunk}[spec.kind](spec)
    names = [p["name"] for p in parameters]
    return {
        "layout": layout(spec),
        "halo": halo(spec),
        "parameters": [{"number": i, **p} for i, p in enumerate(parameters)],
        "results": results,
        "aliases": [[i, names.index(r["name"])] for i, r in enumerate(results) if r["role"] == "state"],
    }


def spinor_shape(spec: Spec, halos: int) -> list[int]:
    """Shape of a spinor parameter whose slab has `halos` more slices on each side."""
    t, z, y, x = spec.lattice
    site = [t // spec.shards + 2 * halos, z, y, x // 2 if layout(spec) == CHECKERBOARD else x]
    return [*site, SPINOR_ROWS, spec.batch] if spec.fused else [2, 4, 3, spec.batch, *site]


def _field(name: str, shape: list[int], dtype: str, role: str) -> Field:
    return {"name": name, "shape": shape, "dtype": dtype, "role": role}


def _resident(spec: Spec) -> list[Field]:
    """Gauge links, blocks and clover terms of an operator, or of the operator inside a chunk."""
    t, z, y, x = spec.lattice
    slab, h = t // spec.shards, halo(spec)
    family = "wilson_schur" if spec.operator == "wilson_schur_cg_chunk" else family_and_form(spec.operator)[0]
    if spec.fused:
        slices = slab + 2 * (h - 1) if h else slab
        return [_field("blocks", [slices, z, y, x, SPINOR_ROWS, HALF_ROWS], spec.dtype, "resident")]
    if layout(spec) == CHECKERBOARD:
        half = [t, z, y, x // 2]
        fields = [_field(f"links_{p}", [2, 4, 3, 3, *half], spec.dtype, "resident") for p in ("even", "odd")]
        if family == "clover_schur":
            fields += [_field(name, [2, 2, 2, 3, 6, *half], spec.dtype, "resident") for name in ("clover_even", "inverse_odd")]
        return fields
    fields = [_field("links", [2, 4, 3, 3, slab + max(2 * h - 1, 0), z, y, x], spec.dtype, "resident")]
    if family == "clover":
        fields.append(_field("clover", [2, 2, 2, 3, 6, slab + 2 * max(h - 1, 0), z, y, x], spec.dtype, "resident"))
    return fields


def _scalars(spec: Spec) -> list[Field]:
    names = ["diagonal"] if "mass" in OPERATORS[spec.operator]["inputs"] else []
    names += [name for name in ("csw", "mu") if name in OPERATORS[spec.operator]["inputs"]]
    return [_field(name, [], "float32", "scalar") for name in names]


def _dirac(spec: Spec) -> tuple[list[Field], list[Field]]:
    psi = _field("psi", spinor_shape(spec, halo(spec)), spec.dtype, "input")
    out = _field("out", spinor_shape(spec, 0), spec.dtype, "output")
    return [psi, *_resident(spec), *_scalars(spec)], [out]


def _chunk(spec: Spec) -> tuple[list[Field], list[Field]]:
    """The state is float32 for every dtype: recurrences of CG in bfloat16 would lose their meaning after a few iterations."""
    state = [_field(name, spinor_shape(spec, 0), "float32", "state") for name in ("x", "r", "p")]
    state.append(_field("rr", [spec.batch], "float32", "state"))
    stop = _field("stop", [spec.batch], "float32", "scalar")
    steps = _field("steps", [spec.batch], "float32", "output")
    return [*state, *_resident(spec), *_scalars(spec), stop], [*map(dict, state), steps]


def _builder(spec: Spec) -> tuple[list[Field], list[Field]]:
    t, z, y, x = spec.lattice
    slab = t // spec.shards
    links = _field("links", [2, 4, 3, 3, slab + (spec.shards > 1), z, y, x], spec.dtype, "input")
    return [links], [_field("blocks", [slab, z, y, x, SPINOR_ROWS, HALF_ROWS], spec.dtype, "output")]


def _observable(spec: Spec) -> tuple[list[Field], list[Field]]:
    t, z, y, x = spec.lattice
    shapes: dict[str, dict[str, list[int]]] = {
        "plaquette": {"planes": [6, t, z]},
        "wilson_action": {"deficits": [6, t, z]},
        "polyakov_loop": {"T": [2, z, y], "Z": [2, t, y], "Y": [2, t, z], "X": [2, t, z]},
        "topological_charge": {"charge": [t, z]},
        "energy_density": {"energy": [t, z]},
    }
    links = _field("links", [2, 4, 3, 3, t, z, y, x], spec.dtype, "input")
    return [links], [_field(name, shape, "float32", "partial") for name, shape in shapes[spec.operator].items()]
