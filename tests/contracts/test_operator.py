"""`DiracOperator` over a tiny artifact: shapes, dtypes, batches, slabs, inputs; every misuse a clear error.

The tiny artifact computes M psi = diagonal psi + (slab + 1) phase_T ratio u with u the first link element: enough to see what
reaches the entry points. The physics of real artifacts is tested in test_dirac_artifacts and e2e.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lqcd_runtime.bundle import Bundle, open_bundle
from lqcd_runtime.errors import EngineError, NoVariant, UsageError
from lqcd_runtime.inputs import resolve
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host
from tests.made import bundle_bytes, record
from tests.tiny import compile_tiny

LATTICE = (4, 2, 2, 3)
WILSON = Spec("wilson", LATTICE, "float64", batch=3)
SHARDED = WILSON.replace(shards=2, batch=1)
BAKED = WILSON.replace(batch=2, baked={"mass": 0.25})
HOP = WILSON.replace(operator="wilson_hop")
DAGGER = WILSON.replace(operator="wilson_dagger")
TWISTED = WILSON.replace(operator="twisted")
LINKS = np.full((*LATTICE, 4, 3, 3), 0.5 + 0.25j)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("operator")
    target = this_host().best_target()
    assert target is not None
    codes = {s: compile_tiny(folder, s) for s in (WILSON, SHARDED, BAKED, HOP, DAGGER, TWISTED)}
    path = folder / "x.lqcd"
    path.write_bytes(bundle_bytes([record(s, target, c) for s, c in codes.items()], codes.values()))
    return open_bundle(path)


def field(columns: int | None, seed: int = 1) -> Any:
    shape = (*LATTICE, 4, 3) if columns is None else (columns, *LATTICE, 4, 3)
    parts = np.random.default_rng(seed).normal(size=(2, *shape))
    return parts[0] + 1j * parts[1]


@pytest.mark.parametrize("columns", [None, 0, 1, 2, 3, 4, 7])
def test_any_number_of_columns_in_chunks_of_the_batch(bundle: Bundle, columns: int | None) -> None:
    D = bundle.operator("wilson", gauge=LINKS, mass=0.5, batch=3)
    psi = field(columns)
    before = psi.copy()
    out = D(psi)
    np.testing.assert_allclose(out, 4.5 * psi + LINKS.flat[0], rtol=1e-15)
    assert out.shape == psi.shape and not np.may_share_memory(out, psi) and np.array_equal(psi, before)


def test_each_slab_is_packed_applied_and_unpacked(bundle: Bundle) -> None:
    D = bundle.operator("wilson", gauge=LINKS, mass=0.5, shards=2)
    psi = field(2)
    slab = np.array([1, 1, 2, 2]).reshape(1, 4, 1, 1, 1, 1, 1)
    np.testing.assert_allclose(D(psi), 4.5 * psi + slab * LINKS.flat[0], rtol=1e-15)
    assert len(D.packed.slabs) == 2


def test_apply_into_even_in_place(bundle: Bundle) -> None:
    D = bundle.operator("wilson", gauge=LINKS, mass=0.5, batch=3)
    psi = field(5)
    expected = D(psi)
    out = np.empty_like(psi)
    D.apply_into(out, psi)
    assert np.array_equal(out, expected)
    D.apply_into(psi, psi)
    assert np.array_equal(psi, expected)
    shifted = np.zeros((6, *psi.shape[1:]), complex)
    shifted[:5] = field(5)
    D.apply_into(shifted[1:], shifted[:5])
    assert np.array_equal(shifted[1:], expected)


def test_strided_and_torch_arrays(bundle: Bundle) -> None:
    torch = pytest.importorskip("torch")
    D = bundle.operator("wilson", gauge=torch.from_numpy(LINKS), mass=0.5, batch=3)
    psi = field(4)
    assert np.array_equal(D(np.asfortranarray(psi)), D(psi))
    assert np.array_equal(D(psi[::2]), D(psi[::2].copy()))
    assert np.array_equal(D(torch.from_numpy(psi)), D(psi))
    assert np.array_equal(D(torch.from_numpy(psi).conj()), D(psi.conj()))
    assert np.array_equal(D(torch.from_numpy(psi).requires_grad_()), D(psi))


@pytest.mark.parametrize(
    ("psi", "words"),
    [
        (np.zeros((4, 2, 2, 2, 4, 3), complex), "wrong shape"),
        (np.zeros((4, 2, 2, 3, 3, 4), complex), "wrong shape"),
        (np.zeros((1, 1, 4, 2, 2, 3, 4, 3), complex), "wrong shape"),
        (np.zeros((*LATTICE, 4, 3), np.complex64), "wrong dtype"),
        (np.zeros((*LATTICE, 4, 3)), "wrong dtype"),
        ("psi", "no array|wrong shape"),
        (None, "no array|wrong shape"),
    ],
)
def test_wrong_spinors(bundle: Bundle, psi: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        bundle.operator("wilson", gauge=LINKS, mass=0.5, batch=3)(psi)


def test_wrong_outputs(bundle: Bundle) -> None:
    D = bundle.operator("wilson", gauge=LINKS, mass=0.5, batch=3)
    psi, frozen = field(2), field(2)
    frozen.flags.writeable = False
    for out in (field(3), field(2).astype(np.complex64), np.asfortranarray(field(2)), frozen, field(None)):
        with pytest.raises(UsageError, match="out:"):
            D.apply_into(out, psi)


@pytest.mark.parametrize(
    ("gauge", "words"),
    [
        (np.zeros((4, 2, 2, 3, 4, 3, 2), complex), "wrong shape or dtype"),
        (np.zeros((4, 2, 2, 3, 4, 3, 3)), "wrong shape or dtype"),
        (np.zeros((4, 2, 2, 4, 3, 3), complex), "wrong shape"),
        (np.zeros((1, 2, 2, 3, 4, 3, 3), complex), "is not four extents"),
    ],
)
def test_wrong_gauge_fields(bundle: Bundle, gauge: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        bundle.operator("wilson", gauge=gauge, mass=0.5, batch=3)


@pytest.mark.parametrize(
    ("name", "inputs", "words"),
    [
        ("wilson", {}, "needs mass or kappa"),
        ("wilson", {"mass": 0.1, "kappa": 0.125}, "one input"),
        ("wilson", {"mass": float("nan")}, "not a finite number"),
        ("wilson", {"mass": "heavy"}, "not a finite number"),
        ("wilson", {"kappa": 0.0}, "has no mass"),
        ("wilson", {"mass": 0.1, "csw": 1.0}, "has no input csw"),
        ("wilson_hop", {"mass": 0.1}, "has no input mass"),
        ("twisted", {"mass": 0.1}, "needs mu"),
        ("clover", {"mass": 0.1}, "needs csw"),
        ("wilson", {"mass": 0.1, "t_boundary": 0}, "neither sign"),
        ("wilson", {"mass": 0.1, "t_boundary": -1, "phases": (1, 1, 1, 1)}, "one input"),
        ("wilson", {"mass": 0.1, "phases": (1, 1, 1)}, "four numbers of modulus 1"),
        ("wilson", {"mass": 0.1, "phases": (2, 1, 1, 1)}, "four numbers of modulus 1"),
        ("wilson", {"mass": 0.1, "anisotropy": (2.0, 1.0, 1.0)}, "not understood"),
        ("wilson", {"mass": 0.1, "anisotropy": {"xi": 2.0}}, "not understood|not a finite"),
        ("wilson", {"mass": 0.1, "anisotropy": -2.0}, "must be positive"),
        ("wilson", {"mass": 0.1, "threads": 0}, "threads"),
        ("plaquette", {}, "no Dirac operator"),
        ("wilsom", {"mass": 0.1}, "did you mean 'wilson'"),
        ("wilson", {"mass": 0.1, "dtype": "complex128"}, "dtype"),
    ],
)
def test_inputs_that_cannot_mean_anything(bundle: Bundle, name: str, inputs: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        bundle.operator(name, gauge=LINKS, **{"batch": 3, **inputs})


def test_diagonal_scale_and_phase() -> None:
    """Against the formulas of Chroma's anisotropic Wilson operator: kappa 0.135, xi0 2.464, nu 0.95."""
    plain = resolve("wilson", kappa=0.125)
    assert plain.diagonal == 4.0 and plain.scale() == [1, 1, 1, 1] and plain.phase() == [1, 0] * 4
    for form in ((2.464, 0.95), {"xi0": 2.464, "nu": 0.95}):
        aniso = resolve("wilson", kappa=0.135, anisotropy=form, t_boundary=-1)
        assert aniso.diagonal == pytest.approx(1 / (2 * 0.135) - 4 + 1 + 3 * 0.95 / 2.464, rel=1e-15)
        assert aniso.scale() == [1.0] + [pytest.approx(0.95 / 2.464, rel=1e-15)] * 3
        assert aniso.phase() == [-1, 0, 1, 0, 1, 0, 1, 0]
    assert resolve("wilson", mass=0.1, anisotropy=2.0).ratio == 0.5
    assert resolve("wilson_hop").vector() == [0.0] * 8
    assert resolve("twisted", mass=0.5, mu=-0.25).vector()[:3] == [4.5, 0.0, -0.25]
    assert resolve("clover", mass=0.5, csw=1.5).vector()[:3] == [4.5, 1.5, 0.0]


def test_phase_and_anisotropy_reach_the_links(bundle: Bundle) -> None:
    psi, u = field(None), LINKS.flat[0]
    turn = np.exp(0.7j)
    D = bundle.operator("wilson", gauge=LINKS, mass=0.5, batch=3, phases=(turn, 1, 1, 1), anisotropy=(2.0, 0.5))
    np.testing.assert_allclose(D(psi), (0.5 + 1 + 3 * 0.25) * psi + 0.25 * turn * u, rtol=1e-14)


def test_family_shares_the_packed_links_and_keeps_the_inputs(bundle: Bundle) -> None:
    D = bundle.operator("wilson", gauge=LINKS, mass=0.5, batch=3, t_boundary=-1)
    assert D.dagger.spec == DAGGER and D.dagger.packed is D.packed and D.dagger.inputs == D.inputs
    assert D.dagger.dagger.spec == WILSON and D.with_operator("wilson_hop").inputs["phases"] == D.inputs["phases"]
    with pytest.raises(UsageError, match="needs mu"):
        D.with_operator("twisted")
    normal = D.normal
    assert "no variant" in normal.note and "wilson_dagger" in normal.note and D.note == ""
    psi = field(4)
    assert np.array_equal(normal(psi), D.dagger(D(psi)))
    assert normal.flops == D.flops + D.dagger.flops == 2 * 1320 * 48
    assert normal.dagger is normal and normal.normal(psi).tolist() == normal(psi).tolist()
    out = np.empty_like(psi)
    normal.apply_into(out, psi)
    assert np.array_equal(out, normal(psi))
    heavier = normal.with_inputs(mass=1.5)
    assert np.array_equal(heavier(psi), D.with_inputs(mass=1.5).dagger(D.with_inputs(mass=1.5)(psi)))


def test_other_inputs_over_the_same_links(bundle: Bundle) -> None:
    D = bundle.operator("wilson", gauge=LINKS, mass=0.5, batch=3, anisotropy=2.0)
    other = D.with_inputs(kappa=0.2)
    assert other.packed is D.packed and other.artifact is D.artifact
    assert other.inputs["mass"] == pytest.approx(-1.5) and other.inputs["xi0"] == 2.0 and D.inputs["mass"] == 0.5
    with pytest.raises(UsageError, match="has no input csw"):
        D.with_inputs(csw=1.0)


def test_baked_constants_must_be_the_callers(bundle: Bundle) -> None:
    """The artifact with mass 0.25 compiled in is served for 0.25 exactly, and for nothing else."""
    assert bundle.operator("wilson", gauge=LINKS, mass=0.25, batch=2).spec == BAKED
    for mass in (0.5, float(np.nextafter(0.25, 1))):
        with pytest.raises(NoVariant) as caught:
            bundle.operator("wilson", gauge=LINKS, mass=mass, batch=2)
        assert caught.value.nearest is not None
    with pytest.raises(NoVariant):
        bundle.operator("wilson", gauge=LINKS, mass=0.25, batch=2).with_inputs(mass=0.5)
    assert bundle.operator("wilson", gauge=LINKS, mass=0.25, batch=3).spec == WILSON


def test_extents_without_a_variant_name_the_nearest(bundle: Bundle) -> None:
    with pytest.raises(NoVariant) as caught:
        bundle.operator("wilson", gauge=np.zeros((4, 2, 2, 4, 4, 3, 3), complex), mass=0.1, batch=3)
    assert caught.value.differing == {"lattice": ([4, 2, 2, 4], [4, 2, 2, 3])}


def test_a_fused_operator_without_its_builder_is_a_miss(tmp_path: Path) -> None:
    target = this_host().best_target()
    assert target is not None
    fused = Spec("wilson", LATTICE, "float64", fused=True)
    path = tmp_path / "fused.lqcd"
    path.write_bytes(bundle_bytes([record(fused, target)]))
    with open_bundle(path) as bundle, pytest.raises(NoVariant, match="wilson_blocks"):
        bundle.operator("wilson", gauge=LINKS, mass=0.1, fused=True)


def test_arbitrary_bytes_as_code_are_an_engine_error(tmp_path: Path) -> None:
    target = this_host().best_target()
    assert target is not None
    path = tmp_path / "bytes.lqcd"
    path.write_bytes(bundle_bytes([record(WILSON, target), record(Spec("plaquette", LATTICE), target)]))
    with open_bundle(path) as bundle:
        with pytest.raises(EngineError, match="is no shared object"):
            bundle.operator("wilson", gauge=LINKS, mass=0.1, batch=3)
        with pytest.raises(EngineError, match="is no shared object"):
            bundle.observable("plaquette", LATTICE)
        with pytest.raises(UsageError, match="another kind"):
            bundle.observable("stout_smear", LATTICE)
        with pytest.raises(UsageError, match="another kind"):
            bundle.gauge_map("plaquette", LATTICE)
