"""Witnesses of what only Neuron targets have, bfloat16 and solver chunks: real rounding stays within, real mistakes do not.

The stand-in for a bfloat16 artifact is the judge on rounded fields with a rounded answer; for a chunk, numpy's CG in single
precision over the judge's operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lqcd_aot.build.witness import Judge
from lqcd_aot.dirac import judge
from lqcd_runtime.signature import Spec
from lqcd_runtime.split_layout import decode, encode
from lqcd_runtime.witness import Question, Witness, question, summary

LATTICE = (4, 4, 2, 4)
BFLOAT = Spec("wilson", LATTICE, "bfloat16", batch=2)
CHUNK = Spec("wilson_cg_chunk", LATTICE, "float32", batch=2, iterations=4)


@pytest.fixture(scope="module")
def witnesses() -> dict[Spec, Witness]:
    judging = Judge()
    return {spec: Witness.make(spec, judging.rows(spec)) for spec in (BFLOAT, CHUNK)}


def halved(field: Any) -> Any:
    """Every number rounded to bfloat16."""
    re, im = (decode(encode(part, "bfloat16"), "bfloat16") for part in (field.real, field.imag))
    return re + 1j * im


def applied(asked: Question, **changes: Any) -> list[Any]:
    """M on the question's fields, all rounded to bfloat16; changes: of mass, phases, links, psi (a function each)."""
    phases = changes.get("phases", asked.phases)
    inputs = {**asked.inputs, "mass": asked.inputs["mass"] + changes.get("mass", 0.0)}
    links = halved(asked.links())
    psi = halved(np.stack(list(asked.columns())))
    out = judge.apply("wilson", changes.get("psi", lambda p: p)(psi), changes.get("links", lambda u: u)(links), phases=phases,
                      anisotropy=asked.anisotropy, **inputs).numpy()  # fmt: skip
    return list(halved(out))


def other_sign(u: Any) -> Any:
    v = u.copy()
    v[..., 2, :, :] *= -1
    return v


BFLOAT_MISTAKES: dict[str, dict[str, Any]] = {
    "one direction with the other sign": {"links": other_sign},
    "periodic in T": {"phases": (1.0, 1.0, 1.0, 1.0)},
    "links transposed": {"links": lambda u: u.swapaxes(-1, -2)},
    "columns exchanged": {"psi": lambda p: p[::-1].copy()},
    "half the mass term more": {"mass": 2.0},
}


def test_rounding_to_bfloat16_is_within_and_seen(witnesses: dict[Spec, Witness]) -> None:
    witness = witnesses[BFLOAT]
    outcome = witness.compare(summary(witness.asked, applied(witness.asked)))
    assert outcome.passed and 0 < outcome.worst <= outcome.bound < 0.25


@pytest.mark.parametrize("mistake", BFLOAT_MISTAKES)
def test_mistakes_exceed_the_bound_of_bfloat16(mistake: str, witnesses: dict[Spec, Witness]) -> None:
    witness = witnesses[BFLOAT]
    assert not witness.compare(summary(witness.asked, applied(witness.asked, **BFLOAT_MISTAKES[mistake]))).passed


def iterates(asked: Question, steps: int, *, mass: float = 0.0, beta: float = 1.0) -> Any:
    """x after `steps` iterations of CG from zero, scalars and vectors in single precision."""
    b = np.stack(list(asked.columns())).astype(np.complex64)
    x, r, p = np.zeros_like(b), b.copy(), b.copy()

    def each(scalars: Any, field: Any) -> Any:
        return scalars.astype(np.float32)[:, None, None, None, None, None, None] * field

    def dot(u: Any, v: Any) -> Any:
        return np.sum(np.conj(u) * v, axis=tuple(range(1, 7))).real

    rr = dot(r, r)
    inputs = {"mass": asked.inputs["mass"] + mass}
    for _ in range(steps):
        q = judge.apply("wilson_normal", p, asked.links(), phases=asked.phases, anisotropy=asked.anisotropy, **inputs).numpy()
        q = q.astype(np.complex64)
        alpha = rr / dot(p, q)
        x, r = x + each(alpha, p), r - each(alpha, q)
        rr, before = dot(r, r), rr
        p = r + each(beta * rr / before, p)
    return x


CHUNK_MISTAKES: dict[str, Callable[[Question], list[Any]]] = {
    "an iteration too few that says it did all": lambda q: [(x, 4) for x in iterates(q, 3)],
    "the right solution with another number of steps": lambda q: [(x, 3) for x in iterates(q, 4)],
    "directions that are not conjugate": lambda q: [(x, 4) for x in iterates(q, 4, beta=0.0)],
    "another mass": lambda q: [(x, 4) for x in iterates(q, 4, mass=0.05)],
    "columns exchanged": lambda q: [(x, 4) for x in iterates(q, 4)[::-1]],
}


def test_single_precision_iterates_are_within(witnesses: dict[Spec, Witness]) -> None:
    witness = witnesses[CHUNK]
    outcome = witness.compare(summary(witness.asked, [(x, 4) for x in iterates(witness.asked, 4)]))
    assert outcome.passed and 0 < outcome.worst <= outcome.bound < 0.01


@pytest.mark.parametrize("mistake", CHUNK_MISTAKES)
def test_mistakes_of_a_chunk_exceed_the_bound(mistake: str, witnesses: dict[Spec, Witness]) -> None:
    witness = witnesses[CHUNK]
    assert not witness.compare(summary(witness.asked, CHUNK_MISTAKES[mistake](witness.asked))).passed


def test_a_stored_chunk_witness_is_read_back(witnesses: dict[Spec, Witness]) -> None:
    made = witnesses[CHUNK]
    again = Witness.from_dict(made.as_dict(), CHUNK)
    assert again.as_dict() == made.as_dict() and again.rows.shape == made.rows.shape
    assert question(CHUNK).key != question(CHUNK.replace(iterations=5)).key
