"""Parameter classes: for every attribute there is a change that acts, and a value that is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from lqcd_aot.core import ColorSpinorField, GaugeField, LatticeGeometry
from lqcd_aot.dirac import WilsonDirac
from lqcd_aot.params import (
    CloverParam,
    DslashType,
    EigParam,
    GaugeParam,
    InverterType,
    InvertParam,
    LinkType,
    Precision,
    ResidualType,
    TBoundary,
)
from lqcd_runtime.errors import UsageError
from tests.physics.torch_fields import C64, C128, relative

SIZE = (4, 2, 2, 2)
GEOM = LatticeGeometry(*SIZE)
GAUGE = GaugeParam(lattice_size=SIZE, precision=Precision.FLOAT64)
SOLVE = InvertParam(precision=Precision.FLOAT64, mass=0.4, tol=1e-7)
CLOVER = dataclasses.replace(SOLVE, dslash_type=DslashType.CLOVER_WILSON, clover=CloverParam())


def outcome(gauge: GaugeParam, invert: InvertParam, capsys: Any = None) -> dict[str, Any]:
    """Everything a change of a parameter can show: the solution, its dtype, the course of the solve, what was printed."""
    geom = LatticeGeometry(*gauge.lattice_size, nc=gauge.nc)
    U = GaugeField.random(geom, dtype=C128, seed=1)
    b = 3 * ColorSpinorField.gaussian(geom, dtype=C128, seed=2)
    x, info = invert.solve(U, b, gauge)
    printed = capsys.readouterr().out if capsys else ""
    return {"x": x.tensor, "dtype": x.dtype, "iterations": info.iterations, "history": info.residual_history, "printed": printed}


def differs(a: dict[str, Any], b: dict[str, Any]) -> bool:
    same_x = a["x"].shape == b["x"].shape and a["dtype"] == b["dtype"] and torch.equal(a["x"], b["x"])
    return not same_x or any(a[k] != b[k] for k in ("iterations", "history", "printed"))


GAUGE_ACTS = {
    "lattice_size": (4, 2, 2, 4),
    "nc": 2,
    "precision": Precision.FLOAT32,
    "t_boundary": TBoundary.PERIODIC,
    "anisotropy": 2.0,
}
GAUGE_REFUSED = {
    "lattice_size": (4, 2, 2, 1),
    "nc": 1,
    "precision": Precision.BFLOAT16,
    "link_type": "SU5",
    "t_boundary": 0,
    "anisotropy": 0.0,
    "tadpole_coeff": 0.9,
}


def test_every_gauge_attribute_is_tested() -> None:
    fields = {f.name for f in dataclasses.fields(GaugeParam)}
    assert fields == set(GAUGE_REFUSED)
    assert fields == {*GAUGE_ACTS, "link_type", "tadpole_coeff"}, "these two have tests of their own"


@pytest.mark.parametrize("name", GAUGE_ACTS)
def test_a_gauge_attribute_acts(name: str) -> None:
    changed, solve = dataclasses.replace(GAUGE, **{name: GAUGE_ACTS[name]}), SOLVE
    if name == "precision":
        solve = dataclasses.replace(SOLVE, precision=Precision.FLOAT32, tol=1e-4)
    assert differs(outcome(GAUGE, SOLVE), outcome(changed, solve))


@pytest.mark.parametrize("name", GAUGE_REFUSED)
def test_a_gauge_attribute_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        dataclasses.replace(GAUGE, **{name: GAUGE_REFUSED[name]})


def test_link_type_decides_whether_the_group_is_demanded() -> None:
    bent = GaugeField(GaugeField.random(GEOM, dtype=C128, seed=1).tensor * 1.2, GEOM)
    with pytest.raises(UsageError, match="are not in SU"):
        GAUGE.prepare(bent)
    assert GaugeParam(SIZE, precision=Precision.FLOAT32, link_type=LinkType.GENERAL).prepare(bent).dtype == C64


SOLVE_ACTS: dict[str, tuple[InvertParam, dict[str, Any]]] = {
    "dslash_type": (dataclasses.replace(SOLVE, clover=None), {"dslash_type": DslashType.CLOVER_WILSON}),
    "inv_type": (SOLVE, {"inv_type": InverterType.GCR}),
    "mass": (SOLVE, {"mass": 0.5}),
    "kappa": (dataclasses.replace(SOLVE, mass=None), {"kappa": 0.13}),
    "clover": (CLOVER, {"clover": CloverParam(csw=1.5)}),
    "mu": (dataclasses.replace(SOLVE, dslash_type=DslashType.TWISTED_MASS), {"mu": 0.3}),
    "tol": (SOLVE, {"tol": 1e-9}),
    "maxiter": (SOLVE, {"maxiter": 3}),
    "precision_sloppy": (SOLVE, {"precision_sloppy": Precision.FLOAT32}),
    "verbosity": (SOLVE, {"verbosity": 1}),
    "residual_type": (dataclasses.replace(SOLVE, tol=0.05), {"residual_type": ResidualType.L2_ABSOLUTE}),
}
SOLVE_REFUSED: dict[str, Any] = {
    "dslash_type": DslashType.STAGGERED,
    "inv_type": "LU",
    "mass": float("nan"),
    "kappa": 0.0,
    "clover": CloverParam(),
    "mu": 0.1,
    "tol": 0.0,
    "maxiter": 0,
    "precision": Precision.FLOAT16,
    "precision_sloppy": Precision.BFLOAT16,
    "verbosity": 7,
    "residual_type": "HEAVY_QUARK",
}


def test_every_solve_attribute_is_tested() -> None:
    fields = {f.name for f in dataclasses.fields(InvertParam)}
    assert fields == set(SOLVE_REFUSED)
    assert fields == {*SOLVE_ACTS, "precision"}, (
        "precision acts in test_a_gauge_attribute_acts and must agree with the gauge field"
    )


@pytest.mark.parametrize("name", SOLVE_ACTS)
def test_a_solve_attribute_acts(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    base, change = SOLVE_ACTS[name]
    assert differs(outcome(GAUGE, base, capsys), outcome(GAUGE, dataclasses.replace(base, **change), capsys))


@pytest.mark.parametrize("name", SOLVE_REFUSED)
def test_a_solve_attribute_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        dataclasses.replace(SOLVE, **{name: SOLVE_REFUSED[name]})


def test_clover_attributes() -> None:
    """csw acts above; precision rounds the field strength; compute_clover=False is refused."""
    rounded = dataclasses.replace(CLOVER, clover=CloverParam(precision=Precision.FLOAT32))
    a, b = outcome(GAUGE, CLOVER)["x"], outcome(GAUGE, rounded)["x"]
    assert 1e-10 < relative(b, a) < 1e-5
    assert {f.name for f in dataclasses.fields(CloverParam)} == {"csw", "precision", "compute_clover"}
    with pytest.raises(UsageError, match="compute_clover"):
        CloverParam(compute_clover=False)


def test_precision_must_agree_with_the_gauge_field() -> None:
    with pytest.raises(UsageError, match="differs between"):
        dataclasses.replace(SOLVE, precision=Precision.FLOAT32).make_operator(GAUGE)
    with pytest.raises(UsageError, match="is not below"):
        InvertParam(precision=Precision.FLOAT32, precision_sloppy=Precision.FLOAT64)


def test_verbosity_two_prints_iterations(capsys: pytest.CaptureFixture[str]) -> None:
    assert "iteration     0" in outcome(GAUGE, dataclasses.replace(SOLVE, verbosity=2), capsys)["printed"]
    assert outcome(GAUGE, SOLVE, capsys)["printed"] == ""


def test_absolute_residual() -> None:
    """|b - M x| <= tol itself."""
    U, b = GaugeField.random(GEOM, dtype=C128, seed=1), 1000 * ColorSpinorField.gaussian(GEOM, dtype=C128, seed=2)
    x, info = dataclasses.replace(SOLVE, tol=1e-3, residual_type=ResidualType.L2_ABSOLUTE).solve(U, b, GAUGE)
    D = WilsonDirac(0.4, t_boundary=-1)
    assert info.converged
    assert 1e-6 < float((D(x.tensor, U.tensor) - b.tensor).norm()) <= 1e-3


def test_mass_and_kappa() -> None:
    assert InvertParam().bare_mass == 0.1
    assert InvertParam(kappa=0.125).bare_mass == 0.0
    assert InvertParam(mass=0.0, kappa=0.125).bare_mass == 0.0
    with pytest.raises(UsageError, match="disagree"):
        InvertParam(mass=0.1, kappa=0.125)


def test_a_gauge_field_of_another_lattice_is_refused() -> None:
    with pytest.raises(UsageError, match="another lattice"):
        GaugeParam(lattice_size=(4, 4, 4, 4)).prepare(GaugeField.cold(GEOM))
    assert GAUGE.volume == 32


@pytest.mark.parametrize("change", [{"n_ev": 5}, {"n_kr": 20}, {"tol": 1e-2}, {"maxiter": 1}])
def test_an_eigensolver_attribute_acts(change: dict[str, Any]) -> None:
    U, base = GaugeField.random(GEOM, dtype=C128, seed=1), EigParam(n_ev=3, n_kr=12, tol=1e-8)
    values, _, info = base.solve(U, GAUGE, SOLVE)
    other, _, changed = dataclasses.replace(base, **change).solve(U, GAUGE, SOLVE)
    assert info.converged
    assert len(values) != len(other) or info != changed


@pytest.mark.parametrize("change", [{"n_ev": 0}, {"n_kr": 4}, {"tol": 0.0}, {"maxiter": 0}])
def test_an_eigensolver_attribute_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="out of range"):
        dataclasses.replace(EigParam(n_ev=3, n_kr=12), **change)
