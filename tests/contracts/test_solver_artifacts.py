"""Solver artifacts through the engine: witnesses, iterates against the host, threads, retirement, state between calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lqcd_runtime as lqcd
from lqcd_aot.bench.rows import Settings, row
from lqcd_aot.build.witness import Judge
from lqcd_aot.compilers import find_toolchain
from lqcd_aot.program import program_for
from lqcd_runtime.bundle import Bundle
from lqcd_runtime.compiled_solver import BELOW_STOP, NOT_FINITE, RUNNING, CompiledSolver
from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.fields import random_links, random_spinor
from lqcd_runtime.geometry import parity
from lqcd_runtime.operator_choice import Running
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.solver_choice import Solvers
from lqcd_runtime.solvers import bicgstab, cg
from lqcd_runtime.target import this_host
from lqcd_runtime.witness import replay
from tests.made import bundle_bytes, record

EVEN, ODD = (6, 2, 6, 2), (3, 2, 5, 2)  # EVEN: even-odd sub-lattices of odd extents
WORDS = [word for word, entry in OPERATORS.items() if entry["kind"] == "solver"]
INPUTS = {"wilson": {"mass": 0.4}, "clover": {"mass": 0.4, "csw": 0.8}, "twisted": {"mass": 0.4, "mu": 0.3}}


def specs() -> list[Spec]:
    out = [Spec(word, EVEN, batch=2) for word in WORDS]
    out += [Spec(word, EVEN, "float32", batch=2) for word in ("wilson_schur_cg", "clover_schur_bicgstab", "twisted_cg")]
    out += [Spec("wilson_cg", ODD, batch=3)]
    for lattice, batch in ((EVEN, 2), (ODD, 3)):
        out += [Spec(f"wilson{form}", lattice, batch=batch) for form in ("", "_dagger", "_normal")]
    out += [Spec(f"twisted{form}", EVEN, batch=2) for form in ("", "_dagger", "_normal")]
    return [*out, Spec("clover", EVEN, batch=2)]


@pytest.fixture(scope="session")
def solver_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every solver word on a small lattice, with its witness, and the operators that check them."""
    folder, toolchain, target = tmp_path_factory.mktemp("solvers"), find_toolchain(), this_host().best_target()
    assert target is not None

    def compiled(spec: Spec) -> bytes:
        return toolchain.compile(program_for(spec, target), target, timeout=300, workdir=folder)

    with ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(compiled, specs()))
    judge = Judge()
    records = [record(s, target, code, judge.make_witness(s)) for s, code in zip(specs(), codes, strict=True)]
    path = folder / "solvers.lqcd"
    path.write_bytes(bundle_bytes(records, codes))
    return path


@pytest.fixture
def bundle(solver_bundle: Path) -> Any:
    with lqcd.open(solver_bundle) as opened:
        yield opened


def columns(lattice: tuple[int, ...], count: int) -> Any:
    return np.stack([random_spinor(lattice, 4, column) for column in range(count)])


def made(bundle: Bundle, word: str, dtype: str = "float64", lattice: Any = EVEN, threads: int = 1) -> tuple[CompiledSolver, Any]:
    """(the solver, the float64 operator M of its system on all sites)."""
    family = word.partition("_")[0]
    batch = 2 if lattice == EVEN else 3
    D = bundle.operator(family, gauge=random_links(lattice, 3), t_boundary=-1, batch=batch, threads=threads, **INPUTS[family])
    solvers = Solvers(bundle, Running(threads))
    return solvers.make(D, solvers.artifact(D, OPERATORS[word]["method"], dtype, "_schur" in word)), D


def solve(solver: CompiledSolver, b: Any, stop: float, step: int = 8, limit: int = 400) -> tuple[Any, Any]:
    """(x, iterations of the columns), in calls of `step` iterations."""
    whole, spent = [1.0] * len(b), np.zeros(len(b), int)
    first = solver.begin(b, whole, [0] * len(b))
    for _ in range(limit // step):
        _, done, status = solver.iterate(first * stop**2, step)
        spent += done
        if (status != RUNNING).all():
            assert (status == BELOW_STOP).all()
            return solver.end(np.zeros_like(b), whole), spent
    raise AssertionError("no end")


@pytest.mark.parametrize("spec", [s for s in specs() if s.kind == "solver"], ids=lambda s: s.name)
def test_the_witness_passes_and_one_iteration_less_fails(bundle: Bundle, spec: Spec, monkeypatch: Any) -> None:
    entry = bundle.select(spec).choice
    outcome = replay(entry, bundle.load(entry))
    assert outcome.passed and 0 < outcome.worst <= outcome.bound < (1e-7 if spec.dtype == "float64" else 2e-2)
    resident = CompiledSolver.resident
    monkeypatch.setattr(CompiledSolver, "resident", lambda self, n: resident(self, n - 1))
    assert not replay(entry, bundle.load(entry)).passed


@pytest.mark.parametrize("spec", [s for s in specs() if s.kind == "solver" and s.lattice == EVEN], ids=lambda s: s.name)
def test_the_solution_solves_the_full_system(bundle: Bundle, spec: Spec) -> None:
    """|b - M x| is at most |M^-1| (1/0.4; clover: 10 seen) times the residual of the equation iterated; 4 for its drift."""
    b = columns(EVEN, 2)
    stop, limit = (1e-11, 4e-10) if spec.dtype == "float64" else (1e-4, 4e-3)
    solver, D = made(bundle, spec.operator, spec.dtype)
    x, _ = solve(solver, b, stop)
    assert 0 < np.linalg.norm(b - D.apply(x)) <= limit * np.linalg.norm(b)


@pytest.mark.parametrize(
    ("word", "lattice"),
    [("wilson_cg", EVEN), ("wilson_cg", ODD), ("wilson_bicgstab", EVEN), ("twisted_cg", EVEN), ("twisted_bicgstab", EVEN)],
)
def test_iterates_and_counts_are_those_of_the_host(bundle: Bundle, word: str, lattice: Any) -> None:
    """On all sites both run the same recursion; only rounding differs, which 1e-8 of the solution leaves room for."""
    solver, D = made(bundle, word, lattice=lattice)
    b = columns(lattice, solver.batch)
    x, spent = solve(solver, b, 1e-6)
    if solver.method == "cg":
        host, info = cg(D.normal.apply, D.dagger.apply(b), tol=1e-6)
    else:
        host, info = bicgstab(D.apply, b, tol=1e-6)
    assert all(abs(n - c.iterations) <= 1 for n, c in zip(spent, info.columns, strict=True))
    same = [n == c.iterations for n, c in zip(spent, info.columns, strict=True)]
    assert any(same)
    assert np.abs(x - host)[same].max() < 1e-8 * np.abs(host).max()


@pytest.mark.parametrize("word", ["wilson_schur_cg", "clover_schur_bicgstab"])
def test_no_bit_depends_on_threads_or_on_how_calls_are_cut(bundle: Bundle, word: str) -> None:
    b = columns(EVEN, 2)
    reference, spent = solve(made(bundle, word, "float32")[0], b, 1e-4, step=1)
    for threads, step in ((1, 7), (2, 8), (3, 5)):
        x, again = solve(made(bundle, word, "float32", threads=threads)[0], b, 1e-4, step=step)
        assert (x == reference).all() and (again == spent).all()


def test_columns_do_not_know_each_other_and_retire(bundle: Bundle) -> None:
    """An easy column retires early with the bits it has alone; zeros and NaN beside it change nothing."""
    solver, _ = made(bundle, "wilson_schur_cg")
    b = columns(EVEN, 2)
    b[1][parity(EVEN) == 0] = 0
    whole = [1.0, 1.0]
    solver.begin(b, whole, [0, 0])
    _, done, status = solver.iterate(np.array([0.0, 1e-4]), 12)
    assert status.tolist() == [RUNNING, BELOW_STOP] and done[1] < done[0] == 12
    both = solver.end(np.zeros_like(b), whole)
    for other in (0.0, np.nan):
        alone = b.copy()
        alone[0] = other
        solver.begin(alone, whole, [0, 0])
        _, again, status = solver.iterate(np.array([0.0, 1e-4]), 12)
        assert again[1] == done[1] and status[0] == (BELOW_STOP if other == 0 else NOT_FINITE)
        assert (solver.end(np.zeros_like(b), whole)[1] == both[1]).all()


def test_a_factor_of_zero_leaves_a_column_alone(bundle: Bundle) -> None:
    solver, _ = made(bundle, "wilson_schur_cg")
    b, base = columns(EVEN, 2), columns(EVEN, 4)[2:]
    b[0] = np.nan
    assert solver.begin(b, [0.0, 1e-3], [0, 0])[0] == 0.0
    solver.iterate(np.array([0.0, 0.0]), 3)
    out = solver.end(base, [0.0, 1e3])
    assert (out[0] == base[0]).all() and np.isfinite(out).all() and (out[1] != base[1]).any()


def test_the_state_survives_its_end_and_keeps_its_directions(bundle: Bundle) -> None:
    """A reliable update continues as if nothing had happened, to rounding; without it six iterations of directions are lost."""
    solver, D = made(bundle, "wilson_schur_cg")
    b, zero, whole = columns(EVEN, 2), np.zeros((2, *EVEN, 4, 3), complex), [1.0, 1.0]
    never = np.zeros(2)
    solver.begin(b, whole, [0, 0])
    solver.iterate(never, 6)
    first = solver.end(zero, whole)
    solver.iterate(never, 6)
    straight = solver.end(zero, whole)
    solver.begin(b, whole, [0, 0])
    solver.iterate(never, 6)
    solver.begin(b - D.apply(first), [8.0, 8.0], [1, 1])
    solver.iterate(never, 6)
    updated = solver.end(first, [0.125, 0.125])
    solver.begin(b - D.apply(first), whole, [0, 0])
    solver.iterate(never, 6)
    forgotten = solver.end(first, whole)
    scale = np.abs(straight).max()
    assert np.abs(updated - straight).max() < 1e-12 * scale < 1e-9 * scale < np.abs(forgotten - straight).max()


@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_a_twisted_solve_runs_in_its_artifact(bundle: Bundle, precision: str) -> None:
    """That no even-odd twisted system is written is not said where the full one is at hand, or merely not in the bundle."""
    D, b = made(bundle, "twisted_cg")[1], columns(EVEN, 2)
    x, info = lqcd.solve(D, b, tol=1e-10, method="cg", precision=precision, compiled=True)
    assert info.converged and "twisted_cg" in info.engine
    assert np.linalg.norm(b - D.apply(x)) <= 1e-10 * np.linalg.norm(b)
    with pytest.raises(NoVariant, match="twisted_bicgstab"):
        Solvers(bundle, Running(1)).artifact(D, "bicgstab", "float32", None)


def test_what_a_solver_cannot_be_is_refused() -> None:
    for spec, reason in (
        (Spec("wilson_schur_cg", (4, 4, 3, 4)), "even extents"),
        (Spec("wilson_cg", EVEN, batch=0), "batch"),
        (Spec("wilson_cg", EVEN, fused=True), "fused"),
        (Spec("wilson_cg", EVEN, shards=2), "shards"),
        (Spec("wilson_cg", EVEN, baked={"csw": 1.0}), "csw cannot be baked"),
    ):
        with pytest.raises(UsageError, match=reason):
            program_for(spec, "x86-64-v3")
    with pytest.raises(UsageError, match="chunk"):
        program_for(Spec("wilson_cg", EVEN, "float32"), "trn2")


def test_a_benchmark_row_counts_two_applications(bundle: Bundle) -> None:
    """1320 flops a site and hop, two hops an iteration (even-odd: four half ones), two right-hand sides."""
    one = row(bundle, Spec("wilson_schur_cg", EVEN, batch=2), 1, Settings(seconds=0.01))
    flops = 2 * 1320 * 2 * np.prod(EVEN)
    assert one["gflops"] * one["seconds"] * 1e9 == pytest.approx(flops)
    assert 0 < one["fastest"] <= one["seconds"] <= one["slowest"] and one["operator"] == "wilson_schur_cg"
