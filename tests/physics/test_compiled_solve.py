"""`lqcd.solve` through solver artifacts: published counts, systems, precisions, how columns end, no silent fallback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lqcd_runtime as lqcd
from lqcd_runtime import memory_use
from lqcd_runtime.errors import NoVariant, SolveError, UsageError
from lqcd_runtime.fields import random_spinor
from lqcd_runtime.signature import Spec
from tests.compiled_bundle import compiled_bundle

LATTICE = (8, 4, 4, 4)
CG_COUNTS = {1: {1e-6: 120, 1e-8: 196, 1e-10: 233}, -1: {1e-6: 98, 1e-8: 125, 1e-10: 158}}
SPECS = [Spec(f"wilson{form}", LATTICE, batch=4) for form in ("", "_dagger", "_normal")]
SPECS += [Spec(word, LATTICE, "float32", batch=4) for word in ("wilson", "wilson_schur_cg", "wilson_schur_bicgstab")]
SPECS += [Spec(word, LATTICE, batch=4) for word in ("wilson_cg", "wilson_schur_cg")]
HALVES = ("float16", "bfloat16")
SPECS += [Spec(word, LATTICE, "float32", storage=s, batch=4) for word in ("wilson_schur_cg", "wilson_bicgstab") for s in HALVES]

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_bundle(tmp_path_factory.mktemp("solve"), SPECS)


@pytest.fixture(scope="module")
def reference(data_dir: Path) -> Any:
    return np.load(data_dir / "wilson_reference_weakfield_4448.npz")


@pytest.fixture(scope="module")
def D(built: Path, reference: Any) -> Any:
    with lqcd.open(built) as bundle:
        yield bundle.operator("wilson", gauge=reference["U"], mass=0.1, t_boundary=-1, batch=4)


@pytest.fixture(scope="module")
def b() -> Any:
    return np.stack([random_spinor(LATTICE, 9, column) for column in range(6)])


def residuals(D: Any, x: Any, b: Any) -> Any:
    r = b - D.apply(x.astype(complex))
    return np.linalg.norm(r.reshape(len(b), -1), axis=1) / np.linalg.norm(b.reshape(len(b), -1), axis=1)


@pytest.mark.parametrize("t_boundary", [1, -1])
@pytest.mark.parametrize("tol", [1e-6, 1e-8, 1e-10])
def test_cg_takes_the_published_number_of_iterations(built: Path, reference: Any, t_boundary: int, tol: float) -> None:
    """Chroma stops on the residual of the normal equations, so the artifact is asked directly."""
    with lqcd.open(built) as bundle:
        D = bundle.operator("wilson", gauge=reference["U"], mass=0.1, t_boundary=t_boundary, batch=4)
        solver = D.solvers.make(D, D.solvers.artifact(D, "cg", "float64", False))
        source = np.zeros((4, *LATTICE, 4, 3), complex)
        source[0] = reference["point_src"]
        first = solver.begin(source, [1.0] * 4, [0] * 4)
        _, done, status = solver.iterate(first * tol**2, 400)
    assert abs(done[0] - CG_COUNTS[t_boundary][tol]) <= 1 and done[1:].tolist() == [0, 0, 0] and (status == 1).all()


@pytest.mark.parametrize(
    "words",
    [
        {"precision": "double"},
        {"precision": "mixed"},
        {"even_odd": False},
        {"method": "bicgstab", "precision": "mixed"},
    ],
    ids=str,
)
def test_every_engine_reaches_the_true_residual_and_the_same_solution(D: Any, b: Any, words: dict[str, Any]) -> None:
    """|x - y| <= |M^-1| (|r_x| + |r_y|), |M^-1| <= 40 on this field. Six columns on a batch of four."""
    x, info = lqcd.solve(D, b, tol=1e-10, compiled=True, **words)
    host, _ = lqcd.solve(D, b, tol=1e-10, compiled=False)
    dtype = "f32" if words.get("precision") == "mixed" else "f64"
    system = "wilson" if words.get("even_odd") is False else "wilson_schur"
    assert info.engine.startswith(f"{system}_{words.get('method', 'cg')}-8x4x4x4-{dtype}-b4@")
    true = residuals(D, x, b)
    assert info.converged and true.max() <= 1e-10 and len(info.columns) == 6
    assert np.allclose(true, [c.final_residual for c in info.columns], rtol=1e-5)
    assert np.linalg.norm(x - host) <= 80e-10 * np.linalg.norm(b)
    assert all(len(c.residual_history) == c.iterations + 1 for c in info.columns)


def test_even_odd_halves_the_iterations_and_mixed_needs_hardly_more(D: Any, b: Any) -> None:
    counts = {
        name: lqcd.solve(D, b, tol=1e-10, **words)[1].iterations
        for name, words in {"full": {"even_odd": False}, "double": {}, "mixed": {"precision": "mixed"}}.items()
    }
    assert counts["double"] < 0.6 * counts["full"] and counts["mixed"] <= 1.15 * counts["double"]


def test_the_estimate_of_the_residual_wastes_few_iterations(D: Any, b: Any) -> None:
    """The artifact stops on an estimate of |b - M x|: within 6 iterations of a solve that looks at the truth every time."""
    x, info = lqcd.solve(D, b[:1], tol=1e-8)
    count = info.iterations
    for limit in range(count - 6, count + 1):
        _, short = lqcd.solve(D, b[:1], tol=1e-8, max_iterations=limit)
        if short.converged:
            break
    assert short.iterations >= count - 5 and residuals(D, x[:1], b[:1])[0] <= 1e-8


def test_zero_nan_and_tiny_columns(D: Any, b: Any) -> None:
    odd_ones = b.copy()
    odd_ones[0], odd_ones[1, 0, 0, 0, 0, 0, 0], odd_ones[2], odd_ones[3] = 0, np.nan, b[2] * 1e-200, b[3] * 1e150
    for words in ({}, {"precision": "mixed"}, {"method": "bicgstab", "precision": "mixed"}):
        x, info = lqcd.solve(D, odd_ones, tol=1e-9, compiled=True, **words)
        assert [c.reason.value for c in info.columns] == ["converged", "not_finite", *["converged"] * 4]
        assert not x[0].any() and np.isnan(x[1]).all() and info.columns[0].iterations == 0
        plain, _ = lqcd.solve(D, b, tol=1e-9, compiled=True, **words)
        for column, size in ((2, 1e-200), (3, 1e150), (4, 1.0)):
            assert np.linalg.norm(x[column] / size - plain[column]) <= 80e-9 * np.linalg.norm(b[column])


@pytest.mark.parametrize("words", [{}, {"precision": "mixed"}, {"method": "bicgstab", "precision": "mixed"}], ids=str)
def test_an_answer_does_not_depend_on_its_neighbours(D: Any, b: Any, words: dict[str, Any]) -> None:
    """Bit by bit, whatever the size of the other columns of the batch: huge, tiny, zero, not a number."""
    alone, _ = lqcd.solve(D, b[:4], tol=1e-10, **words)
    for other in (1e120, 1e-120, 1e-200, 0.0, np.nan):
        columns = b[:4].copy()
        columns[1] *= other
        x, info = lqcd.solve(D, columns, tol=1e-10, **words)
        assert (x[0] == alone[0]).all() and (x[2:] == alone[2:]).all()
        assert info.columns[1].converged == bool(np.isfinite(other))


@pytest.mark.parametrize("method", ["cg", "bicgstab"])
def test_start_vectors_of_any_size_end_in_a_verdict(D: Any, b: Any, method: str) -> None:
    """Squares of such residuals overflow."""
    for rhs, start in ((b[:1], 1e155 * b[:1]), (1e-200 * b[:1], b[:1])):
        _, info = lqcd.solve(D, rhs, x0=start, tol=1e-10, method=method, precision="mixed", max_iterations=500)
        assert info.reason in ("converged", "stagnated", "max_iterations", "not_finite", "breakdown")


def test_a_solve_within_a_solve_is_refused(D: Any, b: Any) -> None:
    """An observer that solves with the same artifact would spoil the outer solve's state."""

    def nested(iteration: int, residuals: dict[int, float]) -> None:
        lqcd.solve(D, b[:1], tol=1e-6, precision="mixed")

    with pytest.raises(SolveError, match="running already"):
        lqcd.solve(D, b[:1], tol=1e-10, precision="mixed", observer=nested)
    assert lqcd.solve(D, b[:1], tol=1e-10, precision="mixed")[1].converged


def test_a_propagator_takes_what_a_solve_takes(D: Any) -> None:
    source = lqcd.point_source((0, 0, 0, 0))
    S = lqcd.propagator(D, source, precision="mixed", storage="bfloat16")
    assert S.converged and S.info is not None and "bfloat16" in S.info.engine
    x0 = np.ascontiguousarray(np.moveaxis(S.data.reshape(*LATTICE, 4, 3, 12), -1, 0))
    again = lqcd.propagator(D, source, precision="mixed", x0=x0, tol=1e-9)
    assert again.info is not None and again.info.iterations == 0


def test_limits_and_floors_are_told(D: Any, b: Any) -> None:
    x, info = lqcd.solve(D, b, tol=1e-10, max_iterations=10, precision="mixed")
    assert info.reason == "max_iterations" and all(c.iterations == 10 for c in info.columns)
    assert np.allclose(residuals(D, x, b), [c.final_residual for c in info.columns], rtol=1e-5)
    assert 1e-10 < info.final_residual < 1
    for words in ({}, {"precision": "mixed"}):
        x, info = lqcd.solve(D, b[:2], tol=1e-17, max_iterations=3000, **words)
        assert info.reason == "stagnated" and "true residual stays" in info.prose and 1e-17 < info.final_residual < 1e-13
        assert info.iterations < 1000
    none, info = lqcd.solve(D, b[:1], max_iterations=0)
    assert info.reason == "max_iterations" and info.final_residual == 1.0 and not none.any()


def test_a_start_vector_is_used(D: Any, b: Any) -> None:
    x, _ = lqcd.solve(D, b, tol=1e-6)
    again, more = lqcd.solve(D, b, tol=1e-10, x0=x)
    assert more.converged and residuals(D, again, b).max() <= 1e-10 and more.iterations < 0.8 * lqcd.solve(D, b)[1].iterations
    _, done = lqcd.solve(D, b, tol=1e-9, x0=again)
    assert done.converged and done.iterations == 0


def test_the_bits_do_not_depend_on_threads(built: Path, reference: Any, b: Any) -> None:
    found = []
    with lqcd.open(built) as bundle:
        for threads in (1, 3):
            D = bundle.operator("wilson", gauge=reference["U"], mass=0.1, t_boundary=-1, batch=4, threads=threads)
            x, info = lqcd.solve(D, b, precision="mixed")
            found.append((x, [c.residual_history for c in info.columns]))
    assert (found[0][0] == found[1][0]).all() and found[0][1] == found[1][1]


def test_an_interrupt_between_calls_leaves_everything_usable(D: Any, b: Any) -> None:
    """Calls last at most 16 iterations; the observer is told between them, as a signal handler would run there."""
    told: list[int] = []

    def observer(iteration: int, residuals: dict[int, float]) -> None:
        told.append(iteration)
        assert set(residuals) <= set(range(4)) and all(r > 0 for r in residuals.values())
        if iteration > 30:
            raise KeyboardInterrupt

    source = b[:4].copy()
    with pytest.raises(KeyboardInterrupt):
        lqcd.solve(D, source, observer=observer)
    assert len(told) >= 3 and max(np.diff(told)) <= 16 and (source == b[:4]).all()
    x, info = lqcd.solve(D, source)
    assert info.converged and residuals(D, x, source).max() <= 1e-10


def test_there_is_no_silent_fallback(D: Any, b: Any) -> None:
    _, info = lqcd.solve(D, b[:1], tol=1e-3, method="bicgstab")
    assert info.engine.startswith("host: bicgstab, no variant of") and "wilson_schur_bicgstab-8x4x4x4-f64-b4" in info.engine
    assert info.as_dict()["engine"] == info.engine
    _, info = lqcd.solve(D, b[:1], tol=1e-3, method="gcr")
    assert info.engine == "host: gcr, no solver artifact is written for gcr"
    with pytest.raises(NoVariant, match="wilson_schur_bicgstab"):
        lqcd.solve(D, b[:1], method="bicgstab", compiled=True)
    with pytest.raises(NoVariant):
        lqcd.solve(D, b[:1], method="bicgstab", even_odd=True)
    x, info = lqcd.solve(D, b[:1], tol=1e-9, precision="mixed", method="gcr", compiled=False)
    assert info.converged and info.engine.startswith("host") and residuals(D, x, b[:1])[0] <= 1e-9


@pytest.mark.parametrize(
    "words", [{"precision": "single"}, {"precision": "half"}, {"compiled": False, "even_odd": True}], ids=str
)
def test_words_that_contradict_each_other_are_refused(D: Any, b: Any, words: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        lqcd.solve(D, b[:1], **words)


def test_single_precision_stops_at_its_own_floor(built: Path, reference: Any, b: Any) -> None:
    with lqcd.open(built) as bundle:
        D = bundle.operator("wilson", gauge=reference["U"], mass=0.1, t_boundary=-1, dtype="float32", batch=4)
        x, info = lqcd.solve(D, b, tol=1e-5)
        assert info.converged and x.dtype == np.complex64 and "f32" in info.engine
        _, info = lqcd.solve(D, b[:1], tol=1e-10)
        assert info.reason == "stagnated" and info.final_residual > 1e-10
        with pytest.raises(UsageError):
            lqcd.solve(D, b[:1], precision="mixed")


def test_memory_is_predicted_and_a_solve_that_does_not_fit_says_so(D: Any, b: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links: 4 or 8 of 18 float64 per site; state of the even-odd artifact: x, r, p and the odd source, half a field each."""
    parts = lqcd.memory(D, 4)
    sites = 8 * 4 * 4 * 4
    assert parts["links"] in (sites * n * 18 * 8 for n in (4, 8)) and parts["spinors"] == 2 * 4 * sites * 24 * 8
    fields = 4 * sites * 24 * 8 // 2
    links = parts["links"]
    assert links + 6 * fields < parts["solver"] < links + 6.2 * fields
    assert parts["total"] == sum(v for k, v in parts.items() if k != "total")
    monkeypatch.setattr(memory_use, "available", lambda: 1 << 20)
    with pytest.raises(SolveError, match="does not fit into memory"):
        lqcd.solve(D, b)
    monkeypatch.undo()
    free = memory_use.available()
    assert free is None or free > 1 << 20


@pytest.mark.parametrize("storage", HALVES)
@pytest.mark.parametrize("even_odd", [True, False])
def test_vectors_in_halves_reach_the_true_residual(D: Any, b: Any, storage: str, even_odd: bool) -> None:
    """Every round gains a few bits; the residual that counts is float64's."""
    x, info = lqcd.solve(D, b, tol=1e-10, precision="mixed", storage=storage, method="cg" if even_odd else "bicgstab")
    assert storage in info.engine and info.converged
    assert residuals(D, x, b).max() <= 1e-10


def test_halves_are_never_taken_unasked_and_never_replaced(D: Any, b: Any) -> None:
    assert "store" not in lqcd.solve(D, b, tol=1e-8, precision="mixed")[1].engine
    with pytest.raises(NoVariant, match=r"wilson_schur_bicgstab-8x4x4x4-f32-store\.float16-b4"):
        lqcd.solve(D, b, precision="mixed", storage="float16", method="bicgstab", even_odd=True)
    with pytest.raises(UsageError, match="precision='mixed'"):
        lqcd.solve(D, b, storage="float16")
    with pytest.raises(UsageError, match="precision='mixed'"):
        lqcd.solve(D, b, precision="mixed", compiled=False, storage="float16")


def test_halves_say_where_they_stagnate(D: Any, b: Any) -> None:
    """Beyond float64 there is nothing to reach, and nothing is claimed."""
    x, info = lqcd.solve(D, b[:1], tol=1e-17, precision="mixed", storage="bfloat16", max_iterations=3000)
    column = info.columns[0]
    assert column.reason == "stagnated" and column.note and 1e-17 < column.final_residual < 1e-13
    assert column.final_residual == pytest.approx(residuals(D, x, b[:1])[0], rel=0.5)


@pytest.mark.parametrize("name", ["milc/lat.sample.l4448", "pyquda/weak_field.lime"])
@pytest.mark.parametrize("storage", HALVES)
def test_halves_reach_the_true_residual_on_configurations_of_others(
    built: Path, data_dir: Path, b: Any, name: str, storage: str
) -> None:
    with lqcd.open(built) as bundle:
        D = bundle.operator("wilson", gauge=lqcd.load_gauge(data_dir / name), mass=0.02, t_boundary=-1, batch=4)
        x, info = lqcd.solve(D, b[:4], tol=1e-10, precision="mixed", storage=storage)
        assert storage in info.engine and info.converged
        assert residuals(D, x, b[:4]).max() <= 1e-10
