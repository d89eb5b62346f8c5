"""Geometry, gauge fields and spinors: group membership, Haar measure, transformations, quark sources, files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from lqcd_aot.core import ColorSpinorField, GaugeField, LatticeGeometry
from lqcd_aot.core.su_n import project_su_n, random_su_n
from lqcd_runtime.errors import UsageError
from tests.physics.torch_fields import C64, C128, SMALL, relative, rotation

# |U U^dag - 1|: rounding of the storage dtype, three products a component.
GROUP_BOUND = {C64: 1e-6, C128: 1e-13}


def test_shapes() -> None:
    geom = LatticeGeometry(T=8, Z=4, Y=3, X=2, nc=4)
    assert geom.shape == (8, 4, 3, 2)
    assert geom.volume == 192
    assert geom.spatial_volume == 24
    assert geom.gauge_shape == (8, 4, 3, 2, 4, 4, 4)
    assert geom.spinor_shape == (8, 4, 3, 2, 4, 4)
    assert LatticeGeometry.of_links(geom.gauge_shape) == geom


@pytest.mark.parametrize("bad", [{"T": 1}, {"X": 0}, {"Z": -4}, {"T": 2.5}, {"nc": 1}, {"ns": 2}, {"Y": True}])
def test_impossible_lattices_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        LatticeGeometry(**{"T": 4, "Z": 4, "Y": 4, "X": 4, **bad})  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [C64, C128])
@pytest.mark.parametrize("nc", [2, 3, 4])
def test_random_links_are_in_the_group(nc: int, dtype: torch.dtype) -> None:
    U = GaugeField.random(LatticeGeometry(4, 4, 4, 4, nc=nc), dtype=dtype, seed=7)
    assert max(U.deviation()) < GROUP_BOUND[dtype]
    assert U.norm2() == pytest.approx(4 * 256 * nc, rel=1e-6)


def test_random_links_are_reproducible_in_every_dtype() -> None:
    a, b = (GaugeField.random(SMALL, dtype=C128, seed=5).tensor for _ in range(2))
    assert torch.equal(a, b)
    assert torch.equal(GaugeField.random(SMALL, seed=5).tensor, a.to(C64))
    assert relative(GaugeField.random(SMALL, dtype=C128, seed=6).tensor, a) > 1
    assert relative(GaugeField.random(SMALL, dtype=C128).tensor, GaugeField.random(SMALL, dtype=C128).tensor) > 1


@pytest.mark.parametrize("nc", [2, 3])
def test_random_links_follow_the_haar_measure(nc: int) -> None:
    """Moments over SU(N): <tr U> = 0, <|tr U|^2> = 1, <(tr U)^2> = 1 for N=2 and 0 for N=3, <(tr U)^3> = 0 or 1 (Weingarten),
    and the same for V U W (invariance). 5 standard errors of n samples; |tr U|^3 has variance below 15."""
    n = 40_000
    u = random_su_n((n,), nc, seed=11)
    v, w = random_su_n((2,), nc, seed=12)
    for matrices in (u, v @ u @ w):
        tr = torch.einsum("naa->n", matrices)
        moments = {"tr": tr.mean(), "|tr|^2": (tr.abs() ** 2).mean(), "tr^2": (tr**2).mean(), "tr^3": (tr**3).mean()}
        expected = {"tr": 0, "|tr|^2": 1, "tr^2": 1 if nc == 2 else 0, "tr^3": 1 if nc == 3 else 0}
        for name, value in moments.items():
            assert abs(complex(value) - expected[name]) < 5 * math.sqrt(15 / n), name


def test_unitarize_projects_onto_the_group() -> None:
    U = GaugeField.random(SMALL, dtype=C128, seed=1)
    generator = torch.Generator().manual_seed(0)
    noise = torch.view_as_complex(torch.randn((*U.tensor.shape, 2), generator=generator, dtype=torch.float64))
    bent = GaugeField(U.tensor * (1.1 + 0.2j) + 1e-3 * noise, SMALL)
    assert max(bent.deviation()) > 0.1
    assert max(bent.unitarize().deviation()) < GROUP_BOUND[C128]
    assert max(bent.to(dtype=C64).unitarize().deviation()) < GROUP_BOUND[C64]
    assert relative(U.unitarize().tensor, U.tensor) < 1e-14, "group elements stay"
    near = GaugeField(U.tensor + 1e-6 * noise, SMALL).unitarize()
    assert relative(near.tensor, U.tensor) < 1e-5


def test_unitarize_finds_the_nearest_matrix() -> None:
    """V H with H positive is nearest to V: the polar factor is unique."""
    hermitian = torch.diag(torch.tensor([1.0, 0.5, 2.0], dtype=C128))
    v = random_su_n((), 3, seed=2)
    assert relative(project_su_n(v @ hermitian), v) < 1e-14


def test_singular_and_non_finite_links_are_refused() -> None:
    U = GaugeField.cold(SMALL, C128)
    U.tensor[0, 0, 0, 0, 0] = torch.ones(3, 3)
    with pytest.raises(UsageError, match="singular"):
        U.unitarize()
    U.tensor[0, 0, 0, 0, 0, 0, 0] = math.nan
    with pytest.raises(UsageError, match="NaN"):
        U.unitarize()
    with pytest.raises(UsageError, match="are not in SU"):
        U.require_group()


def test_shift_dagger_link_and_gauge_transformation() -> None:
    U, g = GaugeField.random(SMALL, dtype=C128, seed=1), rotation()
    for mu in range(4):
        assert torch.equal(U.shift(mu).tensor, torch.roll(U.tensor, -1, mu))
        assert torch.equal(U.shift(mu, forward=False).tensor, torch.roll(U.tensor, 1, mu))
        assert torch.equal(U.link(mu), U.tensor[..., mu, :, :])
        assert torch.equal(U.dagger().link(mu), U.link(mu).mH)
        expected = g @ U.link(mu) @ torch.roll(g, -1, mu).mH
        assert torch.equal(U.gauge_transform(g).link(mu), expected)
    back = U.gauge_transform(g).gauge_transform(g.mH.resolve_conj())
    assert relative(back.tensor, U.tensor) < 1e-14
    with pytest.raises(UsageError, match="direction 4"):
        U.link(4)


def test_spinor_algebra_and_sources() -> None:
    a, b = (ColorSpinorField.gaussian(SMALL, dtype=C128, seed=s) for s in (1, 2))
    assert float(a.norm()) == pytest.approx(1, rel=1e-14)
    assert complex(a.inner(b)) == pytest.approx(complex((a.tensor.conj() * b.tensor).sum()), rel=1e-12)
    assert float((a + b).norm2()) == pytest.approx(float(a.norm2() + b.norm2()) + 2 * complex(a.inner(b)).real, rel=1e-12)
    assert relative((a - b + b).tensor, a.tensor) < 1e-15
    assert relative((2j * a).tensor, (a * 2j).tensor) == 0
    point = ColorSpinorField.point_source(SMALL, t=1, z=0, y=1, x=3, spin=2, color=1)
    assert float(point.norm2()) == 1
    assert complex(point.tensor[1, 0, 1, 3, 2, 1]) == 1
    wall = ColorSpinorField.wall(SMALL, t=2, spin=1, color=2)
    assert float(wall.norm2()) == SMALL.spatial_volume
    assert float(wall.tensor[2, :, :, :, 1, 2].real.sum()) == SMALL.spatial_volume
    g = rotation()
    assert float(a.gauge_transform(g).norm()) == pytest.approx(1, rel=1e-13)
    assert complex(a.gauge_transform(g).inner(b.gauge_transform(g))) == pytest.approx(complex(a.inner(b)), abs=1e-14)


@pytest.mark.parametrize(("kind", "power"), [("z2", 2), ("z4", 4)])
def test_noise_is_unit_and_white(kind: str, power: int) -> None:
    """Components are roots of unity; the mean and the neighbour correlation vanish within 5 standard errors."""
    geom = LatticeGeometry(8, 8, 8, 8)
    eta = ColorSpinorField.noise(geom, kind, seed=4, dtype=C128).tensor.reshape(-1)
    assert float((eta**power - 1).abs().max()) < 1e-15
    assert len(torch.unique(torch.view_as_real(eta), dim=0)) == power
    bound = 5 / math.sqrt(len(eta))
    assert abs(complex(eta.mean())) < bound
    assert abs(complex((eta[1:].conj() * eta[:-1]).mean())) < bound


@pytest.mark.parametrize("index", [{"t": 4}, {"x": -1}, {"spin": 4}, {"color": 3}])
def test_sources_outside_of_the_lattice_are_refused(index: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="outside of the lattice"):
        ColorSpinorField.point_source(SMALL, **{"t": 0, "z": 0, "y": 0, "x": 0, **index})


def test_wrong_shapes_and_dtypes_are_refused() -> None:
    with pytest.raises(ValueError, match="wrong shape"):
        GaugeField(torch.zeros(4, 2, 2, 4, 3, 3, 3, dtype=C64), SMALL)
    with pytest.raises(ValueError, match="complex64 or"):
        GaugeField(torch.zeros(SMALL.gauge_shape), SMALL)
    with pytest.raises(ValueError, match="wrong shape"):
        ColorSpinorField(torch.zeros(4, 4, 4, 4, 3, 3, dtype=C64), SMALL)
    with pytest.raises(UsageError, match="differ in dtype"):
        ColorSpinorField.zeros(SMALL) + ColorSpinorField.zeros(SMALL, dtype=C128)
    with pytest.raises(UsageError, match="different devices"):
        ColorSpinorField.zeros(SMALL).inner(ColorSpinorField.zeros(SMALL, device="meta"))


@pytest.mark.data
def test_a_gauge_field_loads_and_survives_a_round_trip(data_dir: Path, tmp_path: Path) -> None:
    U = GaugeField.load(data_dir / "pyquda" / "weak_field.lime")
    assert U.geom == LatticeGeometry(8, 4, 4, 4)
    assert max(U.deviation()) < 1e-13
    U.save(tmp_path / "copy.lime")
    assert torch.equal(GaugeField.load(tmp_path / "copy.lime").tensor, U.tensor)
    assert GaugeField.load(tmp_path / "copy.lime", dtype=C64).dtype == C64
