"""The numpy side of HLO programs: rounding, packing, slabs, checkerboards, folded phases, the clover term."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from lqcd_aot.dirac import compute_clover
from lqcd_aot.dirac.clover_schur import CloverSchur
from lqcd_runtime import split_layout
from lqcd_runtime.errors import UsageError
from lqcd_runtime.fields import random_links, random_spinor
from lqcd_runtime.signature import Spec
from lqcd_runtime.split_binding import binding
from lqcd_runtime.split_clover import clover_term, inverse_diagonal

LATTICE = (4, 2, 3, 6)
EVEN_LATTICE = (4, 2, 2, 6)


def spinors(lattice: tuple[int, int, int, int], batch: int) -> Any:
    return np.stack([random_spinor(lattice, 5, column) for column in range(batch)])


def test_bfloat16_rounds_as_torch_does() -> None:
    values = np.concatenate([np.random.default_rng(1).standard_normal(4000), [0.0, -0.0, np.inf, -np.inf, 1e-40, 3.4e38]])
    ties = (np.arange(0x3F80_0000, 0x3F80_0000 + 9 * 0x8000, 0x8000, dtype=np.uint32)).view(np.float32)
    values = np.concatenate([values, ties, -ties]).astype(np.float32)
    bits = split_layout.encode(values, "bfloat16")
    expected = torch.from_numpy(values).to(torch.bfloat16)
    np.testing.assert_array_equal(bits, expected.view(torch.uint16).numpy())
    np.testing.assert_array_equal(split_layout.decode(bits, "bfloat16"), expected.float().numpy())
    assert np.isnan(split_layout.decode(split_layout.encode(np.array([np.nan, -np.nan]), "bfloat16"), "bfloat16")).all()


@pytest.mark.parametrize(("fused", "shards"), [(False, 1), (False, 2), (True, 1), (True, 4)])
def test_spinors_go_and_come_back(fused: bool, shards: int) -> None:
    spec = Spec("wilson_normal", LATTICE, "float32", batch=3, fused=fused, shards=shards)
    psi, out = spinors(LATTICE, 3), np.full((3, *LATTICE, 4, 3), np.nan, complex)
    thick, h = LATTICE[0] // shards, 2 * (shards > 1)
    for slab in range(shards):
        packed = split_layout.pack_spinor(spec, psi, slab)
        assert list(packed.shape) == binding(spec)["parameters"][0]["shape"]
        t, x, spin, colour = 0, 5, 2, 1
        site = psi[1, (slab * thick - h + t) % LATTICE[0], 1, 2, x, spin, colour]
        row = 3 * spin + colour
        found = packed[t, 1, 2, x, [row, 12 + row], 1] if fused else packed[:, spin, colour, 1, t, 1, 2, x]
        assert complex(*found) == np.complex64(site)
        own = packed[h : h + thick] if fused else packed[..., h : h + thick, :, :, :]
        split_layout.unpack_spinor(spec, own, out, slab)
    np.testing.assert_array_equal(out, psi.astype(np.complex64))


def test_even_sites_are_found_by_coordinates() -> None:
    spec = Spec("wilson_schur", EVEN_LATTICE, "float32", batch=1)
    psi = spinors(EVEN_LATTICE, 1)
    packed = split_layout.pack_spinor(spec, psi)
    for t, z, y, xh in np.ndindex(*EVEN_LATTICE[:3], EVEN_LATTICE[3] // 2):
        x = 2 * xh + (t + z + y) % 2
        np.testing.assert_array_equal(packed[0, :, :, 0, t, z, y, xh], psi[0, t, z, y, x].real.astype(np.float32))
    out = np.full_like(psi, np.nan)
    split_layout.unpack_spinor(spec, packed, out)
    odd = np.indices(EVEN_LATTICE).sum(axis=0) % 2 == 1
    assert not out[:, odd].any()
    np.testing.assert_array_equal(out[:, ~odd], psi[:, ~odd].astype(np.complex64))


def test_links_carry_scale_and_phase_where_they_belong() -> None:
    links = random_links(EVEN_LATTICE, 3)
    folded = split_layout.fold(links, (-1, 1, 1j, 1), (1, 0.5, 0.5, 0.5))
    np.testing.assert_array_equal(folded[-1, ..., 0, :, :], -links[-1, ..., 0, :, :])
    np.testing.assert_array_equal(folded[:-1, ..., 0, :, :], links[:-1, ..., 0, :, :])
    np.testing.assert_array_equal(folded[:, :, -1, :, 2], 0.5j * links[:, :, -1, :, 2])
    np.testing.assert_array_equal(folded[..., 1, :, :], 0.5 * links[..., 1, :, :])
    packed = split_layout.pack_links(Spec("wilson", EVEN_LATTICE, "float32"), folded)["links"]
    assert packed[1, 2, 0, 1, 3, 1, 1, 4] == np.float32(folded[3, 1, 1, 4, 2, 0, 1].imag)
    even = split_layout.pack_links(Spec("wilson_schur", EVEN_LATTICE, "float32"), folded)
    assert even["links_odd"][0, 3, 2, 1, 1, 0, 0, 2] == np.float32(folded[1, 0, 0, 4, 3, 2, 1].real)


def test_a_slab_s_links_begin_before_it() -> None:
    links = random_links(EVEN_LATTICE, 3)
    spec = Spec("wilson", EVEN_LATTICE, "float32", shards=2)
    packed = split_layout.pack_links(spec, links, 0)["links"]
    whole = split_layout.pack_links(spec.replace(shards=1), links)["links"]
    np.testing.assert_array_equal(packed, whole[..., [3, 0, 1], :, :, :])


def test_the_clover_term_is_that_of_the_torch_module() -> None:
    """Other text, other order of the leaves: equal to rounding; and the torch module's off-diagonal blocks are zero."""
    links = random_links(LATTICE, 3)
    mine, theirs = clover_term(links), compute_clover(torch.from_numpy(links), 1.0).numpy().reshape(*LATTICE, 2, 6, 2, 6)
    for chirality in (0, 1):
        block = theirs[..., chirality, :, chirality, :]
        assert np.abs(mine[..., chirality, :, :] - block).max() <= 64 * 2.0**-53 * 9  # 16 loops of four links per entry
        assert not theirs[..., chirality, :, 1 - chirality, :].any()
    np.testing.assert_allclose(mine, mine.conj().swapaxes(-1, -2), rtol=0, atol=1e-15)


def test_the_inverse_is_that_of_the_torch_module() -> None:
    links = random_links(EVEN_LATTICE, 3)
    inverse = inverse_diagonal(clover_term(links), 4.1, 0.5)
    theirs = CloverSchur(0.1, 0.5).prepare_links(torch.from_numpy(links))[1].numpy()
    assert np.abs(inverse - theirs).max() <= 1e-14
    with pytest.raises(UsageError, match="singular"):
        inverse_diagonal(clover_term(np.broadcast_to(np.eye(3, dtype=complex), (*EVEN_LATTICE, 4, 3, 3))), 0.0, 1.0)


def test_residents_are_what_the_binding_names() -> None:
    links, inputs = random_links(EVEN_LATTICE, 3), {"diagonal": 4.1, "csw": 0.5}
    for operator in ("wilson", "clover_normal", "wilson_schur", "clover_schur"):
        for shards in (1,) if "schur" in operator else (1, 2):
            spec = Spec(operator, EVEN_LATTICE, "bfloat16", shards=shards)
            packed = split_layout.resident(spec, links, inputs, slab=shards - 1)
            wanted = {p["name"]: p["shape"] for p in binding(spec)["parameters"] if p["role"] == "resident"}
            assert {name: list(array.shape) for name, array in packed.items()} == wanted
            assert {array.dtype for array in packed.values()} == {np.dtype(np.uint16)}
    with pytest.raises(UsageError, match="another program"):
        split_layout.resident(Spec("wilson", EVEN_LATTICE, "float32", fused=True), links, inputs)


def test_a_wrong_shape_is_refused() -> None:
    with pytest.raises(UsageError, match="another shape"):
        split_layout.pack_spinor(Spec("wilson", LATTICE, "float32", batch=2), spinors(LATTICE, 1))
