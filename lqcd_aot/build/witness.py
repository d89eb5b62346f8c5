"""The judge: what an artifact must answer to the question of its witness, computed by the torch modules in complex128.

Owns the calls of the judges and the sharing of their answers: one per operator, lattice and inputs serves every dtype, storage,
batch, target, fused or not, sharded or not. Whole answers are kept as long as there is room, their summaries always. Questions,
bounds, stored form and replay are lqcd_runtime.witness's. torch is loaded on the first question and never by an import.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from lqcd_aot.build.answers import Answers
from lqcd_runtime.witness import Question, Witness, question, summary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lqcd_runtime.signature import Spec

# Right-hand sides judged in one call: as many as fit here, so that a large lattice does not multiply its memory by the batch.
COLUMN_BYTES = 64 << 20
# Whole answers kept on disk; beyond that the one not asked for the longest is judged again when it is asked for.
KEPT_BYTES = 4 << 30


class Judge:
    """Judged answers, kept until `close`. Safe to ask from several threads; they are answered one at a time."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._answers: OrderedDict[object, Answers] = OrderedDict()
        self._rows: dict[object, NDArray[np.float64]] = {}
        self._errors: dict[object, list[tuple[float, float, float]]] = {}
        self._lock = threading.Lock()

    def rows(self, spec: Spec) -> NDArray[np.float64] | None:
        """`witness.summary` of the judged answers, float64 [rows, n]; None for a builder, which the fused operators judge."""
        import numpy as np

        asked = question(spec)
        if asked.kind == "builder":
            return None
        # Right-hand side j of a batch is the same field whatever the batch, so batches share their columns.
        key, wanted = (asked.key, asked.blocks), max(1, asked.columns_answered)
        with self._lock:
            known = self._rows.get(key)
            have = 0 if known is None else len(known)
            if have < wanted:
                more = self._summary(asked, have, wanted)
                known = self._rows[key] = more if known is None else np.concatenate([known, more])
            assert known is not None
            return known[:wanted]

    def make_witness(self, spec: Spec) -> dict[str, Any]:
        """The witness of a spec in its stored form (member "witness" of a record)."""
        rows = self.rows(spec)
        stored: dict[str, Any] = Witness.make(spec, rows, error=self._error(spec)).as_dict()
        return stored

    @contextmanager
    def whole(self, spec: Spec) -> Iterator[dict[str, Any] | None]:
        """Where the whole answer can be read meanwhile, by any process of this user: the arguments of `answers.opened`; None for
        kinds that have none beyond their rows. Errors: StoreError.
        """
        asked = question(spec)
        if not asked.columns_answered:
            yield None
            return
        with self._lock:
            answers = self._judged(asked)
            answers.users += 1
        try:
            yield {"path": answers.path, "shape": list(answers.shape), "columns": asked.columns_answered}
        finally:
            with self._lock:
                answers.users -= 1

    def close(self) -> None:
        """Forget the whole answers."""
        with self._lock:
            for answers in self._answers.values():
                answers.close()
            self._answers.clear()

    def _error(self, spec: Spec) -> tuple[float, float, float] | None:
        """The largest error bounds among the columns of a solver's answer, and the smallest size; None for other kinds."""
        asked = question(spec)
        if asked.kind != "solver":
            return None
        with self._lock:
            errors = self._errors[asked.key][: asked.batch]
        return max(e[0] for e in errors), max(e[1] for e in errors), min(e[2] for e in errors)

    def _summary(self, asked: Question, first: int, end: int) -> NDArray[np.float64]:
        if not asked.columns_answered:
            return summary(asked, [_results(asked)])
        columns = self._judged(asked).read(first, end - first)
        return summary(asked, ((x, asked.iterations) for x in columns) if asked.kind == "chunk" else columns)

    def _judged(self, asked: Question) -> Answers:
        """The answer with at least as many columns as are asked for; it becomes the last to be given up."""
        answers = self._answers.pop(asked.key, None)
        if answers is None:
            tail = (4, 3, 3) if asked.kind == "gauge_map" else (4, 3)
            answers = Answers((*asked.lattice, *tail))
            self._errors[asked.key] = []
        self._answers[asked.key] = answers
        for column in _columns(asked, answers.columns, self._errors[asked.key]):
            answers.append(column)
        for key, other in list(self._answers.items()):
            if sum(a.bytes for a in self._answers.values()) <= self._kept_bytes:
                break
            if other.users == 0 and other is not answers:
                self._answers.pop(key).close()
        return answers


def load_judges() -> None:
    """Load torch and the modules that judge, ahead of the first question."""
    from lqcd_aot.dirac import judge as _dirac
    from lqcd_aot.observables import judge as _observables

    assert _dirac and _observables


def _results(asked: Question) -> list[float]:
    from lqcd_aot.observables import judge

    results: list[float] = judge.observe(asked.operator, asked.links(), **asked.inputs)
    return results


def _columns(asked: Question, have: int, errors: list[tuple[float, float, float]]) -> Iterator[NDArray[np.complex128]]:
    """The columns of the answer from the have-th on. errors: bounds of a solver's columns, appended to."""
    import numpy as np

    if have >= asked.columns_answered:
        return
    links = asked.links()
    if asked.kind == "gauge_map":
        from lqcd_aot.observables import judge as gauge_judge

        yield gauge_judge.gauge_map(asked.operator, links, **asked.inputs).numpy()
        return
    if asked.kind == "solver":
        from lqcd_aot.dirac.iterates import iterate

        for psi in islice(asked.columns(), have, None):
            answer = iterate(
                asked.operator, psi, links, asked.iterations, phases=asked.phases, anisotropy=asked.anisotropy, **asked.inputs
            )  # fmt: skip
            errors.append(answer.error)
            yield answer.x.numpy()
        return
    columns = islice(asked.columns(), have, None)
    at_once = max(1, COLUMN_BYTES // (links.nbytes // 3))
    while batch := list(islice(columns, at_once)):
        yield from (
            _solved(asked, np.stack(batch), links)
            if asked.kind == "chunk"
            else _applied(asked, asked.operator, np.stack(batch), links)
        )


def _applied(
    asked: Question, operator: str, psi: NDArray[np.complex128], links: NDArray[np.complex128]
) -> NDArray[np.complex128]:
    from lqcd_aot.dirac import judge

    out: NDArray[np.complex128] = judge.apply(
        operator, psi, links, phases=asked.phases, anisotropy=asked.anisotropy, **asked.inputs
    ).numpy()
    return out


def _solved(asked: Question, b: NDArray[np.complex128], links: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """x of each column after the iterations of a chunk: conjugate gradients from x = 0, in complex128."""
    import numpy as np

    from lqcd_runtime.signature import OPERATORS

    def dot(u: NDArray[np.complex128], v: NDArray[np.complex128]) -> Any:
        return np.sum(u.conj() * v, axis=tuple(range(1, u.ndim))).real

    def each(scalars: Any, field: NDArray[np.complex128]) -> Any:
        return scalars.reshape(-1, *[1] * (field.ndim - 1)) * field

    x, r, p, rr = np.zeros_like(b), b.copy(), b.copy(), dot(b, b)
    for _ in range(asked.iterations):
        q = _applied(asked, OPERATORS[asked.operator]["solves"], p, links)
        alpha = rr / dot(p, q)
        x, r = x + each(alpha, p), r - each(alpha, q)
        rr, before = dot(r, r), rr
        p = r + each(rr / before, p)
    return x
