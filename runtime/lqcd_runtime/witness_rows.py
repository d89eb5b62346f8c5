"""What is stored of an answer, and how large an error of each stored number may be.

    dirac, chunk, solver   per column: a sum of +-1 times its components for each of `Question.blocks` blocks, then 16
                           components, each re, im; of a chunk the number of steps besides
    gauge_map              one row of the same form over the output links
    observable             one row with the results

A block is a run of neighbouring components in C order, a piece of a few slices, so that a local error stands out from the
roundings of few others. Signs and places come from Philox streams of the seed; every row has the same ones. Version 1 of the
stored form had 4 sums over all components instead. Owns this form; knows neither judge nor artifact.
"""

from __future__ import annotations

from lqcd_runtime.signature import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from lqcd_runtime.witness_question import Question

SAMPLES = 16
SUMS_OF_VERSION_1 = 4
# Where the bound of a component is a worst case and no deviation yet: Hoeffding's inequality, see witness_bound.
DEVIATIONS = 8.0
_SIGN_STREAM, _PLACE_STREAM = 1 << 20, 1 << 21


def summary(asked: Question, answers: Iterable[Any]) -> NDArray[np.float64]:
    """What is stored of an answer: float64 [rows, n].

    answers: for dirac and solver the output spinors, one [T,Z,Y,X,4,3] per column, in order; for gauge_map one array of links;
    for an observable one list of results; for chunk (solution, steps) per column.
    """
    import numpy as np

    if asked.kind == "observable":
        return np.array([[float(v) for v in answer] for answer in answers], np.float64)
    if asked.kind == "chunk":
        solved = list(answers)
        steps = np.array([[float(steps)] for _, steps in solved])
        return np.concatenate([_sampled(asked, [x for x, _ in solved]), steps], axis=1)
    return _sampled(asked, answers)


def shape(asked: Question) -> tuple[int, int]:
    """Rows and numbers per row of the summary."""
    if asked.kind == "builder":
        return 0, 0
    if asked.kind == "observable":
        return 1, len(OPERATORS[asked.operator]["results"])
    sampled = 2 * ((asked.blocks or SUMS_OF_VERSION_1) + SAMPLES)
    return asked.columns_answered, sampled + (asked.kind == "chunk")


def allowances(asked: Question, bound: float, scale: float) -> NDArray[np.float64]:
    """The error each number of a row may have, from that of one component: float64 [n]."""
    import numpy as np

    allowed = np.full(shape(asked)[1], bound * scale)
    if asked.kind == "observable":
        return allowed
    size = int(np.prod(asked.lattice)) * (36 if asked.kind == "gauge_map" else 12)
    if asked.blocks:
        grown = np.sqrt(np.diff(_edges(size, asked.blocks))) * (DEVIATIONS if asked.kind == "gauge_map" else 1.0)
    else:
        grown = np.full(SUMS_OF_VERSION_1, DEVIATIONS * np.sqrt(size))
    allowed[: 2 * len(grown)] *= np.repeat(grown, 2)
    if asked.kind == "chunk":
        allowed[-1] = 0.5  # the number of steps must be the same
    return allowed


def _sampled(asked: Question, answers: Iterable[Any]) -> NDArray[np.float64]:
    import numpy as np

    rows, signs = [], None
    for answer in answers:
        flat = np.ascontiguousarray(np.asarray(answer), np.complex128).reshape(-1)
        if signs is None:
            places, count = _places(asked.seed, flat.size), 1 if asked.blocks else SUMS_OF_VERSION_1
            signs = [_signs(asked.seed, p, flat.size) for p in range(count)]
        if asked.blocks:
            sums = np.add.reduceat(signs[0] * flat, _edges(flat.size, asked.blocks)[:-1])
        else:
            sums = np.array([np.sum(s * flat) for s in signs])
        rows.append(np.concatenate([sums, flat[places]]))
    return np.array(rows, np.complex128).view(np.float64)


def _edges(size: int, blocks: int) -> NDArray[np.int64]:
    """Where blocks begin, and the end; they differ in length by one at most, and none is empty."""
    import numpy as np

    return np.arange(blocks + 1, dtype=np.int64) * size // blocks


def _signs(seed: int, stream: int, count: int) -> NDArray[np.float64]:
    from lqcd_runtime.noise import z2

    signs: NDArray[np.float64] = z2(seed, _SIGN_STREAM + stream, count).real
    return signs


def _places(seed: int, count: int) -> NDArray[np.int64]:
    """SAMPLES places: the first and the last component (both on lattice edges), the others anywhere."""
    import numpy as np

    from lqcd_runtime.noise import uniform

    places = ((uniform(seed, _PLACE_STREAM, SAMPLES) + 1.0) * 0.5 * count).astype(np.int64)
    places[0], places[-1] = 0, count - 1
    return places
