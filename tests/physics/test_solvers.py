"""Solvers: published iteration counts, true residuals, and every way in which a column can go wrong.

The operator is tests/physics/numpy_wilson.py; the matrices of the abstract tests are given by their spectrum.
"""

from __future__ import annotations

import numpy as np
import pytest

from lqcd_runtime.errors import SolveError, UsageError
from lqcd_runtime.fields import random_links, random_spinor
from lqcd_runtime.solvers import Reason, bicgstab, cg, defect_correction, gcr, multishift_cg, solve
from lqcd_runtime.solvers.result import ColumnInfo, SolveInfo
from tests.physics.numpy_wilson import NumpyWilson

LATTICE = (4, 2, 3, 2)
ALGORITHMS = {"cg": cg, "bicgstab": bicgstab, "gcr": gcr}
CG_COUNTS = {1: {1e-6: 120, 1e-8: 196, 1e-10: 233}, -1: {1e-6: 98, 1e-8: 125, 1e-10: 158}}


@pytest.fixture(scope="module")
def reference(data_dir):
    return np.load(data_dir / "wilson_reference_weakfield_4448.npz")


@pytest.fixture(scope="module")
def small():
    """A Wilson operator on a rough field, well conditioned at this mass, with three right-hand sides."""
    D = NumpyWilson(random_links(LATTICE, 3), mass=0.5, t_boundary=-1)
    return D, np.stack([random_spinor(LATTICE, 5, column) for column in range(3)])


def relative(apply, x, b):
    return [float(np.linalg.norm(r) / np.linalg.norm(c)) for r, c in zip(b - apply(x), b, strict=True)]


def spectrum(values):
    """A diagonal operator on columns [.., n] with these eigenvalues."""
    return lambda v: v * np.asarray(values, v.dtype)


@pytest.mark.data
@pytest.mark.parametrize("t_boundary", [1, -1])
@pytest.mark.parametrize("tol", [1e-6, 1e-8, 1e-10])
def test_cg_takes_the_published_number_of_iterations(reference, t_boundary, tol):
    D = NumpyWilson(reference["U"], 0.1, t_boundary)
    b = D.dagger.apply(reference["point_src"])[None]
    _, info = cg(D.normal.apply, b, tol=tol)
    assert info.converged and abs(info.iterations - CG_COUNTS[t_boundary][tol]) <= 1
    _, infos = multishift_cg(D.normal.apply, b, [0.3, 0.0], tol=tol)
    assert abs(infos[1].iterations - CG_COUNTS[t_boundary][tol]) <= 1 and infos[0].iterations < infos[1].iterations


@pytest.mark.data
@pytest.mark.parametrize(("t_boundary", "word"), [(1, "periodic"), (-1, "antiperiodic")])
@pytest.mark.parametrize("method", ["cg", "bicgstab", "gcr"])
def test_the_solution_is_that_of_the_independent_reference(reference, t_boundary, word, method):
    """|x - x_ref| <= (r + r_ref) |M^-1|, and |M^-1| <= 40 on this field (the smallest singular value is 0.027)."""
    D = NumpyWilson(reference["U"], 0.1, t_boundary)
    x, info = solve(D, reference["point_src"], tol=1e-12, method=method)
    assert info.converged and info.final_residual <= 1e-12
    assert np.linalg.norm(x - reference[f"std_{word}_point_solve_M"]) < 40 * (1e-12 + 3e-14)
    assert info.flops == info.applications * 1320 * 512 > 0


@pytest.mark.data
def test_bicgstab_passes_its_exact_breakdown_on_a_point_source(reference):
    """After one iteration shadow residual and residual are orthogonal: (1-g)(1+g) = 0. Counts: the reference's +-10%."""
    D = NumpyWilson(reference["U"], 0.1)
    _, info = solve(D, reference["point_src"], tol=1e-10, method="bicgstab")
    assert info.converged and abs(info.iterations - int(reference["std_periodic_point_bicgstab_iters_1e-10"])) <= 13
    _, info = solve(D, reference["generic_src"], tol=1e-10, method="bicgstab")
    assert info.iterations == int(reference["std_periodic_generic_bicgstab_iters_1e-10"])


@pytest.mark.data
@pytest.mark.parametrize("method", ["cg", "bicgstab", "gcr"])
def test_single_precision_does_not_claim_what_it_cannot_reach(reference, method):
    D = NumpyWilson(reference["U"], 0.1, dtype="float32")
    x, info = solve(D, reference["point_src"], tol=1e-10, method=method)
    assert x.dtype == np.complex64 and info.reason == Reason.STAGNATED and not info.converged
    honest = relative(NumpyWilson(reference["U"], 0.1).apply, x[None].astype(complex), reference["point_src"][None])[0]
    assert info.recursive_residual < 1e-8 < honest < 1e-6 and info.final_residual == pytest.approx(honest, rel=0.5)
    assert info.iterations < 1000 and "stays at" in info.prose


@pytest.mark.data
def test_mixed_precision_reaches_double_precision_from_single_precision_solves(reference):
    D, b = NumpyWilson(reference["U"], 0.1, -1), reference["point_src"]
    x, info = solve(D, b, tol=1e-12, inner=NumpyWilson(reference["U"], 0.1, -1, dtype="float32"))
    assert info.converged and relative(D.apply, x[None], b[None])[0] <= 1e-12 and x.dtype == np.complex128
    assert len(info.residual_history) <= 6 and info.residual_history[-1] == info.final_residual


@pytest.mark.parametrize("method", ["cg", "bicgstab", "gcr"])
def test_a_column_does_not_depend_on_its_neighbours(small, method):
    D, b = small
    together, info = solve(D, b, tol=1e-9, method=method)
    assert info.converged and max(relative(D.apply, together, b)) <= 1e-9
    for column in range(3):
        alone, single = solve(D, b[column], tol=1e-9, method=method)
        assert single.iterations == info.columns[column].iterations
        assert np.array_equal(alone, together[column])


@pytest.mark.parametrize("method", ["cg", "bicgstab", "gcr"])
def test_bad_columns_do_not_touch_good_ones(small, method):
    D, b = small
    good, _ = solve(D, b[0], tol=1e-9, method=method)
    bad = b[0].copy()
    bad[0, 0, 0, 0, 0, 0] = np.nan
    x, info = solve(D, np.stack((np.zeros_like(b[0]), bad, b[0], np.where(np.isnan(bad), np.inf, bad))), tol=1e-9, method=method)
    assert [c.reason for c in info.columns] == ["converged", "not_finite", "converged", "not_finite"]
    assert not x[0].any() and np.array_equal(x[2], good) and np.isnan(x[1]).all()
    assert info.columns[0].iterations == info.columns[1].iterations == 0 and info.columns[0].final_residual == 0.0
    assert not info.converged and info.reason is Reason.NOT_FINITE and "right-hand side holds NaN" in info.prose


@pytest.mark.parametrize("method", ["cg", "bicgstab", "gcr"])
@pytest.mark.parametrize("size", [1e-20, 1e-200, 1e150])
def test_the_size_of_the_source_does_not_matter(small, method, size):
    D, b = small
    ordinary, expected = solve(D, b[0], tol=1e-9, method=method)
    x, info = solve(D, b[0] * size, tol=1e-9, method=method)
    assert info.converged and abs(info.iterations - expected.iterations) <= 1
    # Rounding of the scaled source moves the solution by 2^-52 |M^-1| only; the two may stop one iteration apart.
    assert np.linalg.norm(x / size - ordinary) < 1e-7 * np.linalg.norm(ordinary)


@pytest.mark.parametrize(
    ("size", "reason"), [(1e-20, "converged"), (1e-42, "stagnated"), (1e-46, "stagnated"), (1e39, "not_finite")]
)
def test_a_solution_its_dtype_cannot_hold_is_not_converged(small, size, reason):
    D, b = small
    single = NumpyWilson(D.periodic_links, D.mass, D.t_boundary, dtype="float32")
    x, info = solve(single, b[:1] * size, tol=1e-4)
    assert info.reason == reason
    if info.converged:
        assert max(relative(D.apply, x.astype(complex) / size, b[:1])) <= 1e-4
    else:
        assert not info.final_residual <= 1e-4 and "does not fit into complex64" in info.prose


def test_a_start_vector_shortens_the_solve_and_an_exact_one_ends_it(small):
    D, b = small
    x, info = solve(D, b, tol=1e-10)
    _, again = solve(D, b, tol=1e-6, x0=x)
    assert again.converged and again.iterations == 0
    _, closer = solve(D, b, tol=1e-10, x0=x + 1e-6 * b)
    assert closer.converged and 0 < closer.iterations < info.iterations
    broken = x.copy()
    broken[1, 0, 0, 0, 0, 0, 0] = np.nan
    _, partly = solve(D, b, tol=1e-6, x0=broken)
    assert [c.reason for c in partly.columns] == ["converged", "not_finite", "converged"]


@pytest.mark.parametrize("method", ["cg", "bicgstab", "gcr"])
def test_the_iteration_limit_is_kept_and_reported(small, method):
    D, b = small
    x, info = solve(D, b, tol=1e-10, max_iterations=3, method=method)
    assert info.reason == "max_iterations" and info.iterations == 3 and len(info.residual_history) == 4
    assert info.final_residual == pytest.approx(max(relative(D.apply, x, b)), rel=1e-6) and info.final_residual > 1e-10


@pytest.mark.parametrize("method", ["cg", "bicgstab", "gcr"])
def test_a_singular_operator_is_reported(method):
    """m = 0 on the free field: constant spinors are zero modes, and this source has a constant part that M cannot reach."""
    links = np.broadcast_to(np.eye(3, dtype=complex), (*LATTICE, 4, 3, 3))
    b = random_spinor(LATTICE, 2) + 1.0
    _, info = solve(NumpyWilson(links, mass=0.0), b, method=method, max_iterations=3000)
    unreachable = np.linalg.norm(b.mean(axis=(0, 1, 2, 3))) * np.sqrt(np.prod(LATTICE)) / np.linalg.norm(b)
    assert info.reason in ("stagnated", "breakdown") and info.iterations < 3000
    assert info.final_residual >= unreachable * (1 - 1e-6)


def test_a_source_in_the_null_space_is_reported_at_once():
    links = np.broadcast_to(np.eye(3, dtype=complex), (*LATTICE, 4, 3, 3))
    _, info = solve(NumpyWilson(links, mass=0.0), np.ones((*LATTICE, 4, 3), complex))
    assert info.reason == "breakdown" and info.iterations <= 1
    assert info.final_residual == pytest.approx(1.0, abs=1e-12) and "singular" in info.prose


def test_cg_refuses_an_indefinite_operator():
    _, info = cg(spectrum([1.0, -2.0, 3.0]), np.ones((1, 3), complex))
    assert info.reason == "breakdown" and "not positive definite" in info.prose and info.iterations <= 2


@pytest.mark.parametrize("method", ["bicgstab", "gcr"])
def test_a_skew_operator_breaks_the_recursions_that_need_a_symmetric_part(method):
    """(r, A r) is imaginary-free zero for a real skew A on real vectors: neither half step can lower the residual."""
    rotate = lambda v: np.stack((v[:, 1], -v[:, 0]), axis=1)  # noqa: E731
    _, info = ALGORITHMS[method](rotate, np.array([[1.0, 0.0]], complex), max_iterations=500)
    assert info.reason == "breakdown" and info.iterations < 20


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_operator_that_returns_nan_is_noticed(name):
    calls = []

    def sick(v):
        calls.append(1)
        return v * (np.nan if len(calls) > 3 else np.linspace(1, 2, 50))

    with np.errstate(all="ignore"):
        _, info = ALGORITHMS[name](sick, np.ones((1, 50), complex))
    assert info.reason == "not_finite" and info.iterations < 5


@pytest.mark.parametrize("name", ALGORITHMS)
def test_torch_and_numpy_follow_the_same_path(name):
    torch = pytest.importorskip("torch")
    values = np.linspace(1.0, 30.0, 60)
    b = random_spinor((2, 2, 2, 2), 1).reshape(3, -1)[:, :60]
    x, info = ALGORITHMS[name](spectrum(values), np.ascontiguousarray(b), tol=1e-10)
    diagonal = torch.from_numpy(values)
    y, other = ALGORITHMS[name](lambda v: v * diagonal, torch.from_numpy(b.copy()), tol=1e-10)
    assert abs(info.iterations - other.iterations) <= 1 and other.converged and isinstance(y, torch.Tensor)
    assert np.abs(y.numpy() - x).max() < 2e-9 and np.abs(x - b / values).max() < 1e-9


def test_multishift_solves_every_shifted_system():
    values = np.geomspace(0.01, 10.0, 80)
    b = np.stack((np.ones(80), np.zeros(80), np.linspace(1, 2, 80), np.full(80, np.nan))).astype(complex)
    shifts = [0.5, 0.0, 3.0, 0.5]
    xs, infos = multishift_cg(spectrum(values), b, shifts, tol=1e-11)
    for sigma, x, info in zip(shifts, xs, infos, strict=True):
        assert [c.reason for c in info.columns] == ["converged", "converged", "converged", "not_finite"]
        # The error of component k is at most its residual over its eigenvalue: tol |b| / (value + sigma).
        for c in (0, 2):
            bound = 1e-11 * np.linalg.norm(b[c]) / (values + sigma)
            assert (np.abs(x[c] - b[c] / (values + sigma)) <= bound + 1e-13).all()
    with pytest.raises(SolveError, match="shifts"):
        multishift_cg(spectrum(values), b, [])


def test_defect_correction_reports_an_inner_solver_that_does_not_help():
    b = np.ones((2, 5), complex)
    b[1] = 0
    x, info = defect_correction(spectrum(np.arange(1, 6)), lambda r: cg(spectrum([1] * 5), r * 0 + 1, tol=1e-3), b)
    assert [c.reason for c in info.columns] == ["stagnated", "converged"] and not x[1].any()


def test_inputs_are_not_written_to_and_observers_see_every_iteration(small):
    D, b = small
    kept, seen = b.copy(), []
    x0 = 0.1 * b
    x0_kept = x0.copy()
    _, info = solve(D, b, x0=x0, tol=1e-8, observer=lambda i, residuals: seen.append((i, dict(residuals))))
    assert np.array_equal(b, kept) and np.array_equal(x0, x0_kept)
    assert [i for i, _ in seen] == list(range(info.iterations + 1)) and set(seen[0][1]) == {0, 1, 2}
    assert info.residual_history == [max(r.values()) for _, r in seen]


def test_an_interrupt_passes_through(small):
    D, b = small

    def stop(iteration, _):
        if iteration == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(D, b, observer=stop)


@pytest.mark.parametrize(
    ("kwargs", "error", "text"),
    [
        ({"method": "bicgtsab"}, UsageError, "did you mean 'bicgstab'"),
        ({"tol": 0.0}, SolveError, "tolerance"),
        ({"tol": float("nan")}, SolveError, "tolerance"),
        ({"max_iterations": -1}, SolveError, "limit"),
        ({"x0": np.zeros((*LATTICE, 4, 3))}, UsageError, "start vector"),
    ],
)
def test_senseless_requests_are_refused(small, kwargs, error, text):
    D, b = small
    with pytest.raises(error, match=text):
        solve(D, b, **kwargs)
    with pytest.raises(UsageError, match="does not fit"):
        solve(D, b[:, :2])


def test_columns_that_ended_alike_are_one_line():
    info = SolveInfo([ColumnInfo() for _ in range(6)])
    rows = [("max_iterations", 5, 0.1, ""), ("stagnated", 7, 2e-8, "stays at 2e-08"), ("max_iterations", 5, 0.3, "")]
    rows += [("stagnated", 9, 3e-8, "stays at 3e-08"), ("converged", 4, 1e-12, ""), ("not_finite", 0, float("nan"), "")]
    for column, (reason, column.iterations, column.final_residual, column.note) in zip(info.columns, rows, strict=True):
        column.reason = Reason(reason)
    assert info.prose.splitlines() == [
        f"columns 0, 2: max_iterations after 5 iterations at residual 0.1 to 0.3: {Reason.MAX_ITERATIONS.prose}",
        "columns 1, 3: stagnated after 7 to 9 iterations at residual 2e-08 to 3e-08: stays at 3e-08",
        f"column 5: not_finite after 0 iterations at residual nan: {Reason.NOT_FINITE.prose}",
    ]
