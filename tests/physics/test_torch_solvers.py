"""The torch face of the solvers: published counts, true residuals, columns, mixed precision, shifts, failures as values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from lqcd_aot.core import ColorSpinorField, GaugeField, LatticeGeometry
from lqcd_aot.dirac import CloverSchur, CloverWilsonDirac, WilsonDirac, WilsonSchur
from lqcd_aot.solvers import GCR, BiCGStab, ConjugateGradient, Lanczos, MixedPrecision, MultiShiftCG, Solver, invert
from lqcd_runtime.errors import SolveError, UsageError
from tests.physics.torch_fields import C64, C128, links, relative, spinor, weak_field_reference

SMALL = LatticeGeometry(4, 4, 2, 2)
GENERAL = [ConjugateGradient, BiCGStab, GCR]
COUNTS = {1: {1e-6: 120, 1e-8: 196, 1e-10: 233}, -1: {1e-6: 98, 1e-8: 125, 1e-10: 158}}


@pytest.mark.data
@pytest.mark.parametrize(("t_boundary", "tol"), [(b, t) for b in COUNTS for t in COUNTS[b]])
def test_published_cg_counts(data_dir: Path, t_boundary: int, tol: float) -> None:
    ref = weak_field_reference(data_dir)
    U, b = torch.from_numpy(ref["U"]), torch.from_numpy(ref["point_src"])
    D = WilsonDirac(0.1, t_boundary=t_boundary)
    rhs = D.dagger(b, U)
    x, info = ConjugateGradient(tol=tol).solve(lambda v: D.normal(v, U), rhs)
    assert info.converged
    assert info.iterations == COUNTS[t_boundary][tol]
    true = relative(D.normal(x, U), rhs)
    assert info.final_residual == pytest.approx(true, rel=1e-6)


@pytest.mark.data
@pytest.mark.parametrize("word", ["M", "clover"])
@pytest.mark.parametrize("method", ["cg", "bicgstab", "gcr"])
def test_invert_finds_the_published_solution(data_dir: Path, word: str, method: str) -> None:
    """cond(M) is about 50 here, so a residual of 1e-12 leaves an error below 1e-10."""
    ref = weak_field_reference(data_dir)
    U, b = torch.from_numpy(ref["U"]), torch.from_numpy(ref["point_src"])
    options: dict[str, Any] = {"t_boundary": -1}
    D = WilsonDirac(0.1, **options) if word == "M" else CloverWilsonDirac(0.1, 1.0, **options)
    x, info = invert(D, U, b, method=method, tol=1e-12)
    assert info.converged, info.prose
    assert relative(D(x, U), b) <= 1e-12
    assert relative(x, ref[f"std_antiperiodic_point_solve_{word}"]) < 1e-10


@pytest.mark.parametrize("kind", GENERAL)
def test_solvers_solve_and_report_the_true_residual(kind: type[Solver]) -> None:
    D, U, b = WilsonDirac(0.3), links(SMALL), spinor(SMALL)
    x, info = kind(tol=1e-9).solve(lambda v: D.normal(v, U), b)
    assert info.converged
    assert info.reason == "converged"
    assert relative(D.normal(x, U), b) == pytest.approx(info.final_residual, rel=1e-6)
    assert info.final_residual <= 1e-9
    assert len(info.residual_history) >= info.iterations
    again, second = kind(tol=1e-9).solve(lambda v: D.normal(v, U), b, x0=x)
    assert second.iterations == 0
    assert torch.equal(again, x)


@pytest.mark.parametrize("kind", GENERAL)
def test_column_i_of_a_batch_is_the_single_solve_i(kind: type[Solver]) -> None:
    D, U = WilsonDirac(0.3), links(SMALL)
    batch = torch.stack([spinor(SMALL, seed=s) * 10.0**s for s in range(4)])
    x, info = kind(tol=1e-9).solve(lambda v: D.normal(v, U), batch, columns=True)
    for i in range(4):
        single, alone = kind(tol=1e-9).solve(lambda v: D.normal(v, U), batch[i])
        # Both are within 1e-9 of the solution; cond(M^dag M) < 1e3 at this mass on disordered links.
        assert relative(x[i], single) < 1e-6
        assert abs(info.columns[i].iterations - alone.iterations) <= 1


def test_even_odd_solution_is_the_full_solution() -> None:
    """S x_e = b', completed on the odd sites, solves M x = b; for Wilson and clover, in fewer iterations."""
    U, b = links(SMALL), spinor(SMALL)
    for full, schur in (
        (WilsonDirac(0.1, t_boundary=-1), WilsonSchur(0.1, t_boundary=-1)),
        (CloverWilsonDirac(0.1, 1.2, t_boundary=-1), CloverSchur(0.1, 1.2, t_boundary=-1)),
    ):
        even, fast = invert(schur, U, schur.even_source(b, U), tol=1e-11)
        _, slow = invert(full, U, b, tol=1e-11)
        assert relative(full(schur.full_solution(even, b, U), U), b) < 1e-10
        assert fast.iterations < 0.8 * slow.iterations


def test_mixed_precision_reaches_double() -> None:
    D, U, b = WilsonDirac(0.1), links(SMALL), spinor(SMALL)
    low = U.to(C64)
    solver = MixedPrecision(ConjugateGradient(tol=1e-4), lambda v: D.normal(v, low), tol=1e-12)
    x, info = solver.solve(lambda v: D.normal(v, U), b)
    assert info.converged, info.prose
    assert relative(D.normal(x, U), b) <= 1e-12
    y, info = invert(D, U, b, tol=1e-12, mixed=True)
    assert info.converged
    assert relative(D(y, U), b) <= 1e-12
    with pytest.raises(UsageError, match="outer precision"):
        solver.solve(lambda v: D.normal(v, low), b.to(C64))


def test_multishift_solves_every_shift() -> None:
    D, U, b = WilsonDirac(0.1), links(SMALL), spinor(SMALL)
    shifts = [0.5, 0.0, 0.01]
    solutions, infos = MultiShiftCG(shifts, tol=1e-10).solve(lambda v: D.normal(v, U), b)
    for sigma, x, info in zip(shifts, solutions, infos, strict=True):
        assert info.converged
        assert relative(D.normal(x, U) + sigma * x, b) <= 1e-10
    with pytest.raises(UsageError, match="no start vector"):
        MultiShiftCG(shifts).solve(lambda v: D.normal(v, U), b, x0=b)


@pytest.mark.parametrize("cold", [False, True])
def test_lanczos_finds_the_lowest_eigenvalues(cold: bool) -> None:
    """Against the dense spectrum of M^dag M on 2x2x2x2 (192 dimensions); the cold field is highly degenerate."""
    geom = LatticeGeometry(2, 2, 2, 2)
    U, D = GaugeField.cold(geom, C128).tensor if cold else links(geom), WilsonDirac(0.1, t_boundary=-1)
    n = 192
    dense = D.normal(torch.eye(n, dtype=C128).reshape(n, *geom.spinor_shape), U).reshape(n, n).T
    exact = torch.linalg.eigvalsh(dense)
    values, vectors, info = Lanczos(n_ev=4, n_kr=24, tol=1e-10).solve(lambda v: D.normal(v, U), spinor(geom))
    if cold:
        # One start vector sees one vector of every degenerate eigenspace: the distinct eigenvalues come out, in order.
        exact = exact[torch.cat([torch.tensor([True]), exact[1:] - exact[:-1] > 1e-9])]
    k = min(len(values), len(exact), 4)
    assert k >= 3
    # A Hermitian eigenvalue is as good as its residual, relative to the largest eigenvalue.
    assert float((values[:k] - exact[:k]).abs().max()) < 1e-9 * float(exact.max())
    for value, v, residual in zip(values, vectors, info.residuals, strict=True):
        assert float((D.normal(v, U) - value * v).norm()) <= 1.01 * residual * float(exact.max()) + 1e-14
        assert float(v.norm()) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("kind", GENERAL)
def test_nothing_prints_unless_asked(kind: type[Solver], capsys: pytest.CaptureFixture[str]) -> None:
    D, U, b = WilsonDirac(0.3), links(SMALL), spinor(SMALL)
    kind(tol=1e-6).solve(lambda v: D.normal(v, U), b)
    assert capsys.readouterr() == ("", "")
    kind(tol=1e-6, verbose=True, print_every=5).solve(lambda v: D.normal(v, U), b)
    out = capsys.readouterr().out
    assert "iteration     5" in out
    assert "iteration     6" not in out
    assert "converged" in out


@pytest.mark.parametrize("kind", GENERAL)
def test_a_field_gives_a_field(kind: type[Solver]) -> None:
    D, U = WilsonDirac(0.3), links(SMALL)
    b = ColorSpinorField.point_source(SMALL, 0, 0, 0, 0, dtype=C128)
    x, info = kind(tol=1e-8).solve(lambda v: D.normal(v, U), b)
    assert isinstance(x, ColorSpinorField)
    assert info.converged


def test_a_mass_that_makes_m_singular_is_reported() -> None:
    """Free field, periodic, m = 0: constant spinors are zero modes. A source that overlaps them has no solution."""
    U = GaugeField.cold(SMALL, C128).tensor
    b = torch.ones(SMALL.spinor_shape, dtype=C128) + 0.1 * spinor(SMALL)
    for method in ("cg", "bicgstab", "gcr"):
        _, info = invert(WilsonDirac(0.0), U, b, method=method, tol=1e-10, maxiter=3000)
        assert not info.converged
        assert info.reason in ("stagnated", "breakdown")
        assert info.iterations < 3000
        assert not info.final_residual < 0.5, "the zero mode's share of the source cannot be reached"


@pytest.mark.parametrize("poison", ["source", "links", "start"])
@pytest.mark.parametrize("kind", GENERAL)
def test_nan_is_found_before_the_second_iteration(kind: type[Solver], poison: str) -> None:
    D, U, b = WilsonDirac(0.3), links(SMALL), spinor(SMALL)
    x0 = torch.zeros_like(b)
    {"source": b, "links": U, "start": x0}[poison].view(-1)[17] = math.nan
    calls = 0

    def normal(v: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return D.normal(v, U)

    _, info = kind().solve(normal, b, x0=x0 if poison == "start" else None)
    assert info.reason == "not_finite"
    assert not info.converged
    assert info.iterations <= 1
    assert calls <= {"source": 0, "links": 3, "start": 2}[poison]


def test_bad_requests_are_refused() -> None:
    D, U, b = WilsonDirac(0.3), links(SMALL), spinor(SMALL)
    solver = ConjugateGradient()
    with pytest.raises(UsageError, match="wrong shape"):
        solver.solve(lambda v: D.normal(v, U), b, x0=b[:1])
    with pytest.raises(UsageError, match="differ in dtype"):
        solver.solve(lambda v: D.normal(v, U), b, x0=b.to(C64))
    with pytest.raises(UsageError, match="complex64 or"):
        solver.solve(lambda v: v, b.real)
    with pytest.raises(UsageError, match="print_every"):
        ConjugateGradient(print_every=0)
    with pytest.raises(SolveError, match="out of range"):
        ConjugateGradient(tol=0).solve(lambda v: D.normal(v, U), b)
    with pytest.raises(UsageError, match="is not known"):
        invert(D, U, b, method="jacobi")
    with pytest.raises(UsageError, match="links: holds NaN"):
        invert(D, U * math.nan, b)
    with pytest.raises(UsageError, match="basis"):
        GCR(basis=0)
