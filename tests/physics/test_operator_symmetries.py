"""What every Dirac operator must do whatever the field: covariance, hermiticity, translations, plane waves, boundary signs."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.core.shift import shifted
from lqcd_aot.dirac import (
    CloverSchur,
    CloverWilsonDirac,
    EvenOddWilsonDslash,
    TwistedMassDirac,
    WilsonDirac,
    WilsonDslash,
    WilsonSchur,
    apply_gamma5,
    degrand_rossi_gammas,
)
from tests.physics.torch_fields import C128, SMALL, links, relative, rotation, spinor

ANISO = {"xi0": 2.464, "nu": 0.95}
TILT = (1j, -1, 1, complex(math.cos(0.7), math.sin(0.7)))
OPERATORS: dict[str, Any] = {
    "hop": lambda **o: WilsonDslash(**o),
    "wilson": lambda **o: WilsonDirac(0.1, **o),
    "clover": lambda **o: CloverWilsonDirac(0.1, 1.3, **o),
    "twisted": lambda **o: TwistedMassDirac(0.1, 0.4, **o),
    "even-odd": lambda **o: EvenOddWilsonDslash(**o),
    "wilson-schur": lambda **o: WilsonSchur(0.1, **o),
    "clover-schur": lambda **o: CloverSchur(0.1, 1.3, **o),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "antiperiodic": {"t_boundary": -1},
    "phases": {"phases": TILT},
    "aniso": {"anisotropy": ANISO},
}
# A few thousand rounded operations a component in float64.
BOUND = 1e-13
every = pytest.mark.parametrize("name", OPERATORS)
each = pytest.mark.parametrize("options", OPTIONS)


def rotated(g: torch.Tensor, psi: torch.Tensor) -> torch.Tensor:
    return torch.einsum("TZYXab,...TZYXsb->...TZYXsa", g, psi)


@every
@each
def test_gauge_covariance(name: str, options: str) -> None:
    """D[U^g] g psi = g D[U] psi, with boundary phases too: the transformation does not touch them."""
    D, U, psi, g = OPERATORS[name](**OPTIONS[options]), links(), spinor(), rotation()
    transformed = GaugeField(U, SMALL).gauge_transform(g).tensor
    assert relative(D(rotated(g, psi), transformed), rotated(g, D(psi, U))) < BOUND


@every
@each
def test_dagger_is_the_adjoint(name: str, options: str) -> None:
    D, U, psi, chi = OPERATORS[name](**OPTIONS[options]), links(), spinor(), spinor(seed=9)
    left = torch.vdot(chi.reshape(-1), D(psi, U).reshape(-1))
    right = torch.vdot(D.dagger(chi, U).reshape(-1), psi.reshape(-1))
    assert abs(complex(left - right)) < BOUND * float(D(psi, U).norm())


@every
@each
def test_gamma5_hermiticity(name: str, options: str) -> None:
    """g5 D g5 = D^dag; for twisted mass the partner with -mu."""
    D, U, psi = OPERATORS[name](**OPTIONS[options]), links(), spinor()
    partner = TwistedMassDirac(0.1, -0.4, **OPTIONS[options]) if name == "twisted" else D
    assert relative(apply_gamma5(partner(apply_gamma5(psi), U)), D.dagger(psi, U)) < BOUND


@every
def test_normal_is_dagger_after_forward_and_positive(name: str) -> None:
    D, U, psi = OPERATORS[name](t_boundary=-1), links(), spinor()
    assert torch.equal(D.normal(psi, U), D.dagger(D(psi, U), U))
    value = complex(torch.vdot(psi.reshape(-1), D.normal(psi, U).reshape(-1)))
    assert value.real > 0
    assert abs(value.imag) < BOUND * value.real


@every
@pytest.mark.parametrize("mu", range(4))
def test_translation_covariance(name: str, mu: int) -> None:
    """Shifting links and spinor by two sites (parity is kept) shifts the result."""
    D, U, psi = OPERATORS[name](anisotropy=ANISO), links(), spinor()

    def move(f: torch.Tensor) -> torch.Tensor:
        return shifted(shifted(f, mu, 1), mu, 1)

    assert torch.equal(D(move(psi), move(U)), move(D(psi, U)))


@every
def test_linearity(name: str) -> None:
    D, U, psi, chi, a = OPERATORS[name](), links(), spinor(), spinor(seed=9), 0.3 - 1.7j
    assert relative(D(psi + a * chi, U), D(psi, U) + a * D(chi, U)) < BOUND


@pytest.mark.parametrize("momentum", [(0, 0, 0, 0), (1, 0, 0, 0), (3, 1, 1, 2)])
@pytest.mark.parametrize("anisotropy", [None, ANISO])
def test_plane_waves_are_eigenvectors_of_the_free_operator(momentum: tuple[int, ...], anisotropy: Any) -> None:
    """M e^{ipx} u = [d - sum_mu s_mu (cos p_mu - i g_mu sin p_mu)] e^{ipx} u, p_T = 2 pi (n + 1/2)/T when antiperiodic."""
    D = WilsonDirac(0.1, t_boundary=-1, anisotropy=anisotropy)
    ratio = 1.0 if anisotropy is None else ANISO["nu"] / ANISO["xi0"]
    scale = (1.0, ratio, ratio, ratio)
    p = [
        2 * math.pi * (n + (0.5 if mu == 0 else 0)) / extent
        for mu, (n, extent) in enumerate(zip(momentum, SMALL.shape, strict=True))
    ]
    sites = torch.meshgrid(*[torch.arange(n, dtype=torch.float64) for n in SMALL.shape], indexing="ij")
    phase = sum(k * x for k, x in zip(p, sites, strict=True))
    wave = torch.polar(torch.ones_like(phase), phase)
    u = spinor()[0, 0, 0, 0]
    G = degrand_rossi_gammas(C128)
    one = torch.eye(4, dtype=C128)
    matrix = (0.1 + 1 + 3 * ratio) * one
    for mu in range(4):
        matrix = matrix - scale[mu] * (math.cos(p[mu]) * one - 1j * math.sin(p[mu]) * G[mu])
    psi = wave[..., None, None] * u
    expected = wave[..., None, None] * (matrix @ u)
    assert relative(D(psi, GaugeField.cold(SMALL, C128).tensor), expected) < BOUND


@every
def test_the_boundary_phase_is_a_phase_of_the_last_links(name: str) -> None:
    """Phases in the operator equal phases written into the links, except in the clover term, whose loops are closed."""
    U, psi = links(), spinor()
    tilted = U.clone()
    for mu, phase in enumerate(TILT):
        tilted.select(mu, -1)[..., mu, :, :] *= phase
    assert relative(OPERATORS[name](phases=TILT)(psi, U), OPERATORS[name]()(psi, tilted)) < BOUND


def test_the_antiperiodic_sign_is_seen_by_one_slice_of_hops() -> None:
    """The difference of the two boundary conditions lives on the first and last time slice only, and is not zero there."""
    geom = LatticeGeometry(6, 2, 2, 2)
    U, psi = links(geom), spinor(geom)
    difference = WilsonDirac(0.1, t_boundary=-1)(psi, U) - WilsonDirac(0.1)(psi, U)
    assert float(difference[1:-1].abs().max()) == 0
    assert float(difference[0].norm()) > 0.1 * float(psi.norm()) / 6
    assert float(difference[-1].norm()) > 0.1 * float(psi.norm()) / 6


def test_kappa_is_another_spelling_of_mass() -> None:
    U, psi = links(), spinor()
    D = WilsonDirac(kappa=0.135)
    assert D.mass == pytest.approx(1 / 0.27 - 4, rel=1e-15)
    assert D.kappa == pytest.approx(0.135, rel=1e-15)
    assert torch.equal(D(psi, U), WilsonDirac(1 / 0.27 - 4)(psi, U))


def test_twisted_mass_operator_squares_to_the_wilson_one_plus_mu_squared() -> None:
    """M_tm^dag M_tm = M^dag M + mu^2, because g5 M = M^dag g5 makes the cross terms cancel."""
    U, psi, mu = links(), spinor(), 0.4
    expected = WilsonDirac(0.1).normal(psi, U) + mu**2 * psi
    assert relative(TwistedMassDirac(0.1, mu).normal(psi, U), expected) < BOUND
