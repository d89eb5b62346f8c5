"""The judge: what an artifact must answer to the question of its witness, computed by the torch modules in complex128.

Owns the calls of the judges and the sharing of their answers: one per operator, lattice and inputs serves every dtype, storage,
batch, target, fused or not, sharded or not. Questions, bounds, stored form and replay are lqcd_runtime.witness's. torch is loaded
on the first question and never by an import.
"""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Any

from lqcd_runtime.witness import Question, Witness, question, summary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lqcd_runtime.signature import Spec

# Right-hand sides judged in one call: as many as fit here, so that a large lattice does not multiply its memory by the batch.
COLUMN_BYTES = 64 << 20


class Judge:
    """Judged answers of this process, kept while it lives. Safe to ask from several threads; they answer one at a time."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], NDArray[np.float64]] = {}
        self._errors: dict[tuple[object, ...], list[float]] = {}
        self._lock = threading.Lock()

    def rows(self, spec: Spec) -> NDArray[np.float64] | None:
        """`witness.summary` of the judged answers, float64 [rows, n]; None for a builder, which the fused operators judge."""
        asked = question(spec)
        if asked.kind == "builder":
            return None
        # Right-hand side j of a batch is the same field whatever the batch, so batches share their columns.
        key = _key(asked)
        with self._lock:
            known = self._rows.get(key)
            have = 0 if known is None else len(known)
            wanted = asked.batch if asked.kind in ("dirac", "chunk", "solver") else 1
            if have < wanted:
                known = self._rows[key] = _extended(asked, known, have, self._errors.setdefault(key, []))
            assert known is not None
            return known[:wanted]

    def make_witness(self, spec: Spec) -> dict[str, Any]:
        """The witness of a spec in its stored form (member "witness" of a record)."""
        rows = self.rows(spec)
        stored: dict[str, Any] = Witness.make(spec, rows, error=self._error(spec)).as_dict()
        return stored

    def _error(self, spec: Spec) -> float | None:
        """The largest error bound among the columns of a solver's answer; None for other kinds."""
        asked = question(spec)
        if asked.kind != "solver":
            return None
        with self._lock:
            return max(self._errors[_key(asked)][: asked.batch])


_judge = Judge()


def make_witness(spec: Spec) -> dict[str, Any]:
    """The witness of a spec, by the judge of this process."""
    return _judge.make_witness(spec)


def load_judges() -> None:
    """Load torch and the modules that judge, ahead of the first question."""
    from lqcd_aot.dirac import judge as _dirac
    from lqcd_aot.observables import judge as _observables

    assert _dirac and _observables


def _key(asked: Question) -> tuple[object, ...]:
    return asked.operator, asked.lattice, tuple(sorted(asked.inputs.items())), asked.seed, asked.iterations


def _extended(asked: Question, known: NDArray[np.float64] | None, have: int, errors: list[float]) -> NDArray[np.float64]:
    """errors: bounds of a solver's columns, appended to."""
    import numpy as np

    pieces = [] if known is None else [known]
    links = asked.links()
    if asked.kind == "solver":
        from lqcd_aot.dirac.iterates import iterate

        for psi in islice(asked.columns(), have, None):
            answer = iterate(asked.operator, psi, links, asked.iterations, phases=asked.phases, **asked.inputs)
            pieces.append(summary(asked, [answer.x.numpy()]))
            errors.append(answer.error)
        return np.concatenate(pieces)
    if asked.kind not in ("dirac", "chunk"):
        return summary(asked, [_gauge_answer(asked, links)])
    from lqcd_aot.dirac import judge

    columns = islice(asked.columns(), have, None)
    at_once = max(1, COLUMN_BYTES // (links.nbytes // 3))
    while batch := list(islice(columns, at_once)):
        if asked.kind == "chunk":
            pieces.append(summary(asked, _solved(asked, np.stack(batch), links)))
            continue
        answers = judge.apply(asked.operator, np.stack(batch), links, phases=asked.phases, **asked.inputs)
        pieces.append(summary(asked, list(answers.numpy())))
    return np.concatenate(pieces)


def _solved(asked: Question, b: NDArray[np.complex128], links: NDArray[np.complex128]) -> list[tuple[Any, int]]:
    """(x, steps) of each column after the iterations of a chunk: conjugate gradients from x = 0, in complex128."""
    import numpy as np

    from lqcd_aot.dirac import judge
    from lqcd_runtime.signature import OPERATORS

    def dot(u: NDArray[np.complex128], v: NDArray[np.complex128]) -> Any:
        return np.sum(u.conj() * v, axis=tuple(range(1, u.ndim))).real

    def each(scalars: Any, field: NDArray[np.complex128]) -> Any:
        return scalars.reshape(-1, *[1] * (field.ndim - 1)) * field

    x, r, p, rr = np.zeros_like(b), b.copy(), b.copy(), dot(b, b)
    for _ in range(asked.iterations):
        q = judge.apply(OPERATORS[asked.operator]["solves"], p, links, phases=asked.phases, **asked.inputs).numpy()
        alpha = rr / dot(p, q)
        x, r = x + each(alpha, p), r - each(alpha, q)
        rr, before = dot(r, r), rr
        p = r + each(rr / before, p)
    return [(column, asked.iterations) for column in x]


def _gauge_answer(asked: Question, links: NDArray[np.complex128]) -> Any:
    from lqcd_aot.observables import judge

    if asked.kind == "observable":
        return judge.observe(asked.operator, links, **asked.inputs)
    return judge.gauge_map(asked.operator, links, **asked.inputs).numpy()
