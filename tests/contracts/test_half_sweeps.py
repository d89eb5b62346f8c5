"""Beyond the caches the half sweeps of an even-odd operator follow each other slice by slice: no bit of a column may show it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host
from tests.contracts.dirac_artifact import Artifact, Factory
from tests.contracts.dirac_reference import random_fields

LATTICE, LARGE = (8, 8, 8, 10), 16  # sixteen columns are beyond the caches, a single one is not
TARGET = this_host().best_target() or "x86-64-v2"
SCALARS, SCALE, PHASE = np.array([4.1, 1.2, *[0.0] * 6]), np.ones(4), np.array([-1, 0, 1, 0, 1, 0, 1, 0], float)
WORDS = ("wilson_schur_normal", "clover_schur_cg", "wilson_schur_bicgstab")


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Factory:
    made = Factory(tmp_path_factory.mktemp("artifacts"))
    made.prepare([(Spec(word, LATTICE, batch=batch), TARGET) for word in WORDS for batch in (1, LARGE)])
    return made


@pytest.fixture(scope="module")
def fields() -> Any:
    return random_fields(LATTICE, LARGE)


def test_an_operator(factory: Factory, fields: Any) -> None:
    links, psi = fields
    whole = factory.load(Spec(WORDS[0], LATTICE, batch=LARGE), TARGET)
    single = factory.load(Spec(WORDS[0], LATTICE), TARGET)
    results = {threads: whole.run(links, psi, SCALARS[:3], SCALE, PHASE.view(complex), threads) for threads in (1, 3)}
    assert results[1].tobytes() == results[3].tobytes()
    for column in (0, 15):
        alone = single.run(links, psi[column : column + 1], SCALARS[:3], SCALE, PHASE.view(complex))
        assert results[1][column].tobytes() == alone.tobytes()


@pytest.mark.parametrize("word", WORDS[1:])
def test_the_sums_of_a_solver(factory: Factory, fields: Any, word: str) -> None:
    """The history of five iterations, whose numbers are sums over all sites."""
    links, b = fields
    whole, _ = iterate(factory.load(Spec(word, LATTICE, batch=LARGE), TARGET), links, b, 2)
    for column in (0, 15):
        alone, _ = iterate(factory.load(Spec(word, LATTICE), TARGET), links, b[column : column + 1], 1)
        assert np.isfinite(alone).all() and alone[-1, 0, 0] < alone[0, 0, 0]
        assert alone.tobytes() == np.ascontiguousarray(whole[:, :, column : column + 1]).tobytes()


@pytest.mark.parametrize("batch", [1, LARGE])
@pytest.mark.parametrize("word", WORDS[1:])
def test_what_an_iteration_leaves_to_the_next(factory: Factory, fields: Any, word: str, batch: int) -> None:
    """Calls of two, one and two iterations are one call of five, solution and search direction included."""
    links, b = fields
    artifact = factory.load(Spec(word, LATTICE, batch=batch), TARGET)
    once, state = iterate(artifact, links, b[:batch], 2)
    parts, same = iterate(artifact, links, b[:batch], 1, (2, 1, 2))
    assert once.tobytes() == parts.tobytes() and state.tobytes() == same.tobytes()


def iterate(artifact: Artifact, links: Any, b: Any, threads: int, calls: tuple[int, ...] = (5,)) -> tuple[Any, Any]:
    """history [iterations, 2, batch] and state of a solver artifact that starts from b; calls: iterations of each call."""
    library, batch = artifact.library, len(b)
    gauge, _, _, work, clover, state = (artifact.buffer(what) for what in range(6))
    norms, history, stop = np.zeros(batch), np.full((sum(calls), 2, batch), np.nan), np.zeros(batch)
    factor, mode, outcome = np.ones(batch), np.zeros(batch, np.int32), np.zeros((batch, 2), np.int32)
    pool = library.lqcd_pool_new(threads)

    def call(name: str, *arguments: Any) -> None:
        at = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
        assert getattr(library, name)(*at, pool) == 0

    call("lqcd_pack_gauge", gauge, links, 0, SCALE, PHASE)
    if clover.size:
        call("lqcd_pack_clover", clover, links, 0, SCALARS)
    call("lqcd_solve_begin", state, b, factor, mode, gauge, clover, work, SCALARS, norms)
    for done, count in zip(itertools.accumulate((0, *calls)), calls, strict=False):
        call("lqcd_solve_iterate", state, gauge, clover, work, SCALARS, stop, count, history[done:], outcome)
        assert (outcome[:, 0] == count).all()
    library.lqcd_pool_free(pool)
    return history, state
