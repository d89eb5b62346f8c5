"""numpy arrays <-> the parameters and results of an HLO program (split_binding.py says which there are).

Owns: real and imaginary parts, order of axes, bfloat16 (its bits in uint16, rounded to nearest even), slabs of T with periodic
halos, checkerboards, boundary phases and anisotropy folded into the gauge links, and the sums that a program leaves to the host.

    psi [B,T,Z,Y,X,4,3] complex, links [T,Z,Y,X,4,3,3] complex; everything else as in split_binding
"""

from __future__ import annotations

import math

import numpy as np

from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import parity
from lqcd_runtime.split_binding import CHECKERBOARD, SITES, binding, halo, layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.signature import Spec

    Array = NDArray[Any]

EVEN, ODD = 0, 1
NO_PHASES = (1.0, 1.0, 1.0, 1.0)


def encode(values: Array, dtype: str) -> Array:
    """Real numbers as "float32" (numpy's) or "bfloat16" (bits in uint16, rounded to nearest, ties to even)."""
    single = np.ascontiguousarray(values, np.float32)
    if dtype == "float32":
        return single
    bits = single.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    # Rounding up must not turn a NaN's payload into infinity or a sign.
    return np.where(np.isnan(single), np.uint32(0x7FC0), rounded).astype(np.uint16)


def decode(array: Array, dtype: str) -> Array:
    """float32 numbers of an encoded array."""
    if dtype == "float32":
        return np.asarray(array, np.float32)
    bits: Array = np.asarray(array).astype(np.uint32) << np.uint32(16)
    return bits.view(np.float32)


def gather(field: Array, axis: int, start: int, count: int) -> Array:
    """`count` slices of an axis from `start` on, around its ends."""
    extent = field.shape[axis]
    return np.take(field, [n % extent for n in range(start, start + count)], axis=axis)


def pack_spinor(spec: Spec, psi: Array, slab: int = 0, dtype: str | None = None) -> Array:
    """The parameter psi (for a chunk one of x, r, p; dtype="float32" there) of one slab, halo included.

    psi: complex [B,T,Z,Y,X,4,3], B = spec.batch. Even-odd programs read even sites only. Errors: UsageError for another shape.
    """
    if psi.shape != (spec.batch, *spec.lattice, 4, 3):
        raise UsageError("psi: has another shape", expected=[spec.batch, *spec.lattice, 4, 3], found=list(psi.shape))
    thick, h = spec.lattice[0] // spec.shards, halo(spec)
    if spec.shards > 1:
        psi = gather(psi, 1, slab * thick - h, thick + 2 * h)
    if layout(spec) == SITES:
        parts = np.stack([psi.real, psi.imag]).transpose(2, 3, 4, 5, 0, 6, 7, 1)
        return encode(parts.reshape(*parts.shape[:4], 24, spec.batch), dtype or spec.dtype)
    if layout(spec) == CHECKERBOARD:
        psi = _half(psi, 1, EVEN)
    return encode(np.stack([psi.real, psi.imag]).transpose(0, 6, 7, 1, 2, 3, 4, 5), dtype or spec.dtype)


def unpack_spinor(spec: Spec, array: Array, out: Array, slab: int = 0, dtype: str | None = None) -> None:
    """Write the result of one slab into `out`, complex [B,T,Z,Y,X,4,3]; odd sites of an even-odd result are zero."""
    real = decode(array, dtype or spec.dtype)
    if layout(spec) == SITES:
        split = real.reshape(*real.shape[:4], 2, 4, 3, spec.batch).transpose(4, 7, 0, 1, 2, 3, 5, 6)
    else:
        split = real.transpose(0, 3, 4, 5, 6, 7, 1, 2)
    values = split[0] + 1j * split[1]
    if layout(spec) == CHECKERBOARD:
        out[...] = 0
        out[:, parity(spec.lattice) == EVEN] = values.reshape(spec.batch, -1, 4, 3)
        return
    thick = spec.lattice[0] // spec.shards
    out[:, slab * thick : (slab + 1) * thick] = values


def fold(links: Array, phases: Sequence[complex] = NO_PHASES, scales: Sequence[float] = NO_PHASES) -> Array:
    """Links times scale of each direction, and times the phase of the direction on its last slice: complex128."""
    out = np.array(links, np.complex128)
    for mu in range(4):
        out[..., mu, :, :] *= scales[mu]
        last = [slice(None)] * 4 + [mu]
        last[mu] = -1
        out[tuple(last)] *= phases[mu]
    return out


def pack_links(spec: Spec, folded: Array, slab: int = 0) -> dict[str, Array]:
    """{"links"} of one slab, or {"links_even", "links_odd"}; folded: links as `fold` gives them (observables: as they are)."""
    if layout(spec) == CHECKERBOARD:
        halves = {name: _half(folded, 0, p) for name, p in (("links_even", EVEN), ("links_odd", ODD))}
        return {name: _links(half, spec.dtype) for name, half in halves.items()}
    if spec.shards > 1:
        thick, h = spec.lattice[0] // spec.shards, halo(spec) or 1
        folded = gather(folded, 0, slab * thick - h, thick + 2 * h - 1)
    return {"links": _links(folded, spec.dtype)}


def pack_clover(spec: Spec, links: Array, inputs: Mapping[str, float], slab: int = 0) -> dict[str, Array]:
    """{"clover"}, or {"clover_even", "inverse_odd"}; links without phases; inputs: diagonal and csw, read by the inverse only."""
    from lqcd_runtime.split_clover import clover_term, inverse_diagonal

    term = clover_term(np.asarray(links, np.complex128))
    if layout(spec) == CHECKERBOARD:
        odd = inverse_diagonal(_half(term, 0, ODD), inputs["diagonal"], inputs["csw"])
        return {"clover_even": _blocks(_half(term, 0, EVEN), spec.dtype), "inverse_odd": _blocks(odd, spec.dtype)}
    if spec.shards > 1:
        thick, more = spec.lattice[0] // spec.shards, halo(spec) - 1
        term = gather(term, 0, slab * thick - more, thick + 2 * more)
    return {"clover": _blocks(term, spec.dtype)}


def pack_blocks(spec: Spec, slabs: Sequence[Array], slab: int = 0) -> dict[str, Array]:
    """{"blocks"} of one slab from the results of the `wilson_blocks` program, in order of their slabs."""
    whole = np.concatenate(list(slabs))
    thick, more = spec.lattice[0] // spec.shards, max(halo(spec) - 1, 0)
    return {"blocks": whole if spec.shards == 1 else gather(whole, 0, slab * thick - more, thick + 2 * more)}


def resident(
    spec: Spec,
    links: Array,
    inputs: Mapping[str, float],
    *,
    phases: Sequence[complex] = NO_PHASES,
    scales: Sequence[float] = NO_PHASES,
    slab: int = 0,
) -> dict[str, Array]:
    """Every resident parameter of one slab but `blocks` (see pack_blocks). inputs: what the program's scalars are."""
    wanted = {p["name"] for p in binding(spec)["parameters"] if p["role"] == "resident"}
    if wanted == {"blocks"}:
        raise UsageError(f"program {spec.name}: its blocks come from another program", expected="wilson_blocks and pack_blocks")
    out = pack_links(spec, fold(links, phases, scales), slab)
    if wanted - set(out):
        out |= pack_clover(spec, links, inputs, slab)
    return out


def scalars(spec: Spec, inputs: Mapping[str, float]) -> dict[str, Array]:
    """The numbers of one call as arrays without axes: diagonal, csw, mu as far as the program has them."""
    names = [p["name"] for p in binding(spec)["parameters"] if p["role"] == "scalar" and not p["shape"]]
    return {name: np.asarray(inputs[name], np.float32) for name in names}


def finish(spec: Spec, results: Mapping[str, Array], inputs: Mapping[str, float]) -> dict[str, float]:
    """What an observable is, from the partial sums of its program: {name of OPERATORS: value}, added up in double precision."""
    from lqcd_runtime.signature import OPERATORS

    names, sites = OPERATORS[spec.operator]["results"], math.prod(spec.lattice)
    sums = {name: np.asarray(value, np.float64) for name, value in results.items()}
    if spec.operator == "plaquette":
        values = list(sums["planes"].sum((1, 2)) / sites)
    elif spec.operator == "wilson_action":
        values = [inputs["beta"] * sums["deficits"].sum()]
    elif spec.operator == "polyakov_loop":
        loops = [sums[axis].sum((1, 2)) * extent / sites for axis, extent in zip("TZYX", spec.lattice, strict=True)]
        values = [part for loop in loops for part in loop]
    elif spec.operator == "topological_charge":
        values = [sums["charge"].sum()]
    else:
        values = [sums["energy"].sum() / sites]
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _half(field: Array, axis: int, which: int) -> Array:
    """The sites of one parity: the site axes, from `axis` on, become [T,Z,Y,X/2] with x ascending in every row."""
    lead, rest = field.shape[:axis], field.shape[axis + 4 :]
    t, z, y, x = field.shape[axis : axis + 4]
    mask = parity((t, z, y, x)) == which
    return field[(slice(None),) * axis + (mask,)].reshape(*lead, t, z, y, x // 2, *rest)


def _links(links: Array, dtype: str) -> Array:
    return encode(np.stack([links.real, links.imag]).transpose(0, 5, 6, 7, 1, 2, 3, 4), dtype)


def _blocks(term: Array, dtype: str) -> Array:
    """[T,Z,Y,X,2,6,6] -> [2,chirality,spin,3,6,T,Z,Y,X]."""
    parts = np.stack([term.real, term.imag]).reshape(2, *term.shape[:5], 2, 3, 6)
    return encode(parts.transpose(0, 5, 6, 7, 8, 1, 2, 3, 4), dtype)
