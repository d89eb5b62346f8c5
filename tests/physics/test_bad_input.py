"""What operators are handed by mistake: each is refused with a sentence that names it, never computed with."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.dirac import CloverSchur, CloverWilsonDirac, SplitForm, TwistedMassDirac, WilsonDirac, WilsonDslash, WilsonSchur
from lqcd_runtime.errors import UsageError
from tests.physics.test_operator_symmetries import OPERATORS, every
from tests.physics.torch_fields import C64, C128, SMALL, links, spinor


@every
@pytest.mark.parametrize(
    ("psi", "text"),
    [
        (lambda: spinor()[:2], "does not fit the links"),
        (lambda: spinor(LatticeGeometry(4, 2, 2, 4, nc=2)), "does not fit the links"),
        (lambda: spinor().transpose(0, 1), "does not fit the links"),
        (lambda: spinor()[..., 0], "does not fit the links"),
        (lambda: spinor().real, "complex64 or"),
        (lambda: spinor(dtype=C64), "differ in dtype"),
        (lambda: spinor().to("meta"), "different devices"),
        (lambda: spinor().numpy(), "torch tensors"),
        (lambda: None, "torch tensors"),
    ],
)
def test_unfit_spinors_are_refused(name: str, psi: Any, text: str) -> None:
    D, U = OPERATORS[name](), links()
    for form in (D, D.dagger, D.normal):
        with pytest.raises(UsageError, match=text):
            form(psi(), U)


@pytest.mark.parametrize("U", [lambda: links()[..., 0, :, :], lambda: links()[..., :2], lambda: links()[:, :, :, :, :3]])
def test_unfit_links_are_refused(U: Any) -> None:
    with pytest.raises(UsageError, match="links: have the wrong shape"):
        WilsonDslash()(spinor(), U())


def test_what_the_operator_was_made_for_is_checked() -> None:
    with pytest.raises(UsageError, match="3 colours"):
        WilsonDirac(0.1, nc=2)(spinor(), links())
    with pytest.raises(UsageError, match="has dtype"):
        WilsonDirac(0.1, dtype=C64)(spinor(), links())
    assert WilsonDirac(0.1, nc=3, dtype=C128)(spinor(), links()).dtype == C128


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"mass": 0.1, "kappa": 0.13},
        {"mass": float("nan")},
        {"mass": "heavy"},
        {"kappa": 0.0},
        {"mass": 0.1, "t_boundary": 0},
        {"mass": 0.1, "t_boundary": -1, "phases": (1, 1, 1, 1)},
        {"mass": 0.1, "phases": (1, 1, 1)},
        {"mass": 0.1, "phases": (0, 1, 1, 1)},
        {"mass": 0.1, "anisotropy": -1.0},
        {"mass": 0.1, "anisotropy": (2.0, 1.0, 1.0)},
        {"mass": 0.1, "anisotropy": {"xi": 2.0}},
    ],
)
def test_senseless_parameters_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        WilsonDirac(**arguments)


def test_senseless_clover_and_twist_are_refused() -> None:
    with pytest.raises(UsageError, match="csw"):
        CloverWilsonDirac(0.1, float("inf"))
    with pytest.raises(UsageError, match="mu"):
        TwistedMassDirac(0.1, float("nan"))


@pytest.mark.parametrize("extents", [(5, 2, 2, 2), (2, 3, 2, 2), (4, 4, 4, 3)])
@pytest.mark.parametrize("kind", [WilsonSchur, CloverSchur])
def test_even_odd_refuses_odd_extents(kind: Any, extents: tuple[int, int, int, int]) -> None:
    geom = LatticeGeometry(*extents)
    with pytest.raises(UsageError, match="odd extent"):
        kind(0.1)(spinor(geom), links(geom))


def test_a_singular_even_odd_diagonal_is_reported() -> None:
    with pytest.raises(UsageError, match="diagonal 4\\+m vanishes"):
        WilsonSchur(-4.0)
    # On the cold field the clover term vanishes, so A = 4+m = 0 on every site.
    with pytest.raises(UsageError, match=f"singular on {SMALL.volume} sites"):
        CloverSchur(-4.0)(spinor(), GaugeField.cold(SMALL, C128).tensor)
    assert CloverSchur(-4.0)(spinor(), links()).isfinite().all()


def test_split_form_refuses_what_it_cannot_do() -> None:
    U, psi = links(), spinor()
    module = SplitForm(WilsonDirac(0.1))
    with pytest.raises(UsageError, match="differ in dtype"):
        module(psi.real, psi.imag, U.real.float(), U.imag.float())
    with pytest.raises(UsageError, match="takes real tensors"):
        module(psi, psi, U, U)
    with pytest.raises(UsageError, match="do not fit"):
        module(psi.real[:1], psi.imag[:1], U.real, U.imag)
    with pytest.raises(UsageError, match="has no split form"):
        SplitForm(CloverSchur(0.1))
    with pytest.raises(UsageError, match="form 'backward'"):
        SplitForm(WilsonDirac(0.1), "backward")


def test_unknown_noise_is_refused() -> None:
    from lqcd_aot.core import ColorSpinorField

    with pytest.raises(UsageError, match="noise 'z3'"):
        ColorSpinorField.noise(SMALL, "z3")


def test_nan_flows_through_an_operator() -> None:
    """An operator computes what it is given; it is the solver that stops."""
    psi = spinor()
    psi[0, 0, 0, 0, 0, 0] = torch.nan
    result = WilsonDirac(0.1)(psi, links())
    # The site itself and its neighbours (T and X extents of 4 have two, Z and Y extents of 2 have one), and no other site.
    assert int(result.isnan().any(-1).any(-1).sum()) == 1 + 2 + 1 + 1 + 2
