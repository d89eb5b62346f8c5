"""Witnesses: a seeded question, the judged answer, a bound; and their replay on this machine.

Owns the stored form, the comparison and the replay. The question is `witness_question`'s, what is stored of an answer
`witness_rows`', how far apart the two may be `witness_bound`'s; the judge lives on the build side. Stored form (member "witness"
of a record, canonical JSON), version 2:

    {"schema": "lqcd-aot/witness/v2", "kind", "seed", "inputs": {name: hex float}, "phases": [[re, im] x 4],
     "anisotropy": [xi0, nu], "blocks": n, "rows": [base64 of little-endian float64 ...], "bound": hex float, "scale": hex float}

There is no row for a builder: it is judged by the fused Dirac artifacts that use its blocks (`replay(..., builder=)`). Version 1
had no anisotropy and no blocks, and its rows in hex; it is read for ever.
"""

from __future__ import annotations

from base64 import b64decode, b64encode

from lqcd_runtime.errors import CorruptError, UsageError
from lqcd_runtime.manifest import check_schema
from lqcd_runtime.signature import OPERATORS
from lqcd_runtime.witness_question import BLOCKS, ISOTROPIC, SEED, Question, question
from lqcd_runtime.witness_rows import allowances, shape, summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.signature import Spec

__all__ = ["THREADS", "Outcome", "Question", "Witness", "question", "replay", "summary"]

SCHEMA, SCHEMA_1 = "lqcd-aot/witness/v2", "lqcd-aot/witness/v1"
# Replayed with each of these numbers of threads: the bits must be the same.
THREADS = (1, 2, 3)


class Witness:
    """A question with its judged answer and the bound for one spec. Made by `make` or `from_dict`.

    A component may be off by bound * scale.
    """

    def __init__(self, asked: Question, rows: Any, bound: float, scale: float) -> None:
        self.asked, self.rows, self.bound, self.scale = asked, rows, bound, scale

    @classmethod
    def make(cls, spec: Spec, rows: Any, seed: int = SEED, error: tuple[float, float, float] | None = None) -> Witness:
        """Witness of a spec from the judge's `summary(question(spec), answers)`; rows is None for a builder.

        error: for a solver, the judge's bounds on a component, in units of the arithmetic's and of the storage's rounding, and
        its size.

        Errors: UsageError where rows are absent, have the wrong shape or are not finite.
        """
        import numpy as np

        from lqcd_runtime.witness_bound import likely_bound_and_scale, solver_bound

        asked = question(spec, seed)
        if asked.kind == "builder":
            return cls(asked, np.zeros((0, 0)), 0.0, 1.0)
        if rows is None or np.shape(rows) != shape(asked) or not np.isfinite(rows).all():
            raise UsageError(
                f"witness of {spec.name}: its judged rows are absent, misshapen or not finite", expected=shape(asked),
                found=None if rows is None else np.shape(rows),
            )  # fmt: skip
        if asked.kind == "solver":
            bound, scale = solver_bound(spec.operator, spec.dtype, spec.storage, error)
        else:
            bound, scale = likely_bound_and_scale(
                asked.kind,
                spec.operator,
                spec.lattice,
                asked.inputs,
                spec.dtype,
                spec.iterations,
                asked.ratio,
                spec.storage,
                fused=spec.fused,
            )
        return cls(asked, np.asarray(rows, np.float64), bound, scale)

    def as_dict(self) -> dict[str, Any]:
        """The stored form."""
        from lqcd_runtime.digest import hex_float

        asked = self.asked
        return {
            "schema": SCHEMA,
            "kind": asked.kind,
            "seed": asked.seed,
            "inputs": {k: hex_float(v) for k, v in asked.inputs.items()},
            "phases": [[hex_float(p.real), hex_float(p.imag)] for p in asked.phases],
            "anisotropy": [hex_float(x) for x in asked.anisotropy],
            "blocks": asked.blocks,
            "rows": [b64encode(row.astype("<f8").tobytes()).decode("ascii") for row in self.rows],
            "bound": hex_float(self.bound),
            "scale": hex_float(self.scale),
        }

    @classmethod
    def from_dict(cls, raw: dict[str, Any], spec: Spec) -> Witness:
        """Inverse of `as_dict`, for the spec of its entry; also of version 1. Errors: TooNewError, CorruptError."""
        import numpy as np

        where = f"witness of {spec.name}"
        first = raw.get("schema") == SCHEMA_1
        if not first:
            check_schema(raw.get("schema"), SCHEMA, where)
        decode = bytes.fromhex if first else _from_base64
        try:
            asked = question(spec, raw["seed"])
            asked.inputs = {str(k): float.fromhex(v) for k, v in raw["inputs"].items()}
            asked.phases = tuple(complex(float.fromhex(re), float.fromhex(im)) for re, im in raw["phases"])
            xi0, nu = ISOTROPIC if first else (float.fromhex(x) for x in raw["anisotropy"])
            asked.anisotropy, asked.blocks = (xi0, nu), 0 if first else int(raw["blocks"])
            rows = np.array([np.frombuffer(decode(row), "<f8") for row in raw["rows"]] or np.zeros((0, 0)), np.float64)
            bound, scale = float.fromhex(raw["bound"]), float.fromhex(raw["scale"])
        except (KeyError, ValueError, TypeError, AttributeError) as err:
            raise CorruptError(f"{where}: cannot be read", found=f"{type(err).__name__}: {err}") from err
        names = set(OPERATORS[spec.operator]["inputs"])
        sound = set(asked.inputs) == names and len(asked.phases) == 4 and xi0 > 0 and (first or 0 < asked.blocks <= BLOCKS)
        if raw["kind"] != asked.kind or not sound or rows.shape != shape(asked):
            raise CorruptError(f"{where}: is not a witness of this operator", expected=shape(asked), found=rows.shape)
        return cls(asked, rows, bound, scale)

    def compare(self, rows: NDArray[Any]) -> Outcome:
        """The largest error of measured rows, relative to their scale (see `witness_bound`)."""
        return self._outcome(rows - self.rows, allowances(self.asked, self.bound, self.scale))

    def compare_whole(self, answers: Sequence[Any], judged: Any) -> Outcome:
        """The largest error of any component of the answers that `summary` takes; judged: complex128, one array per column."""
        worst = Outcome(True, 0.0, self.bound)
        for answer, right in zip(answers, judged, strict=True):
            field = answer[0] if self.asked.kind == "chunk" else answer
            difference = (field - right).reshape(-1).view("f8")
            outcome = self._outcome(difference, self.bound * self.scale)
            worst = outcome if outcome.worst > worst.worst else worst
        return worst

    def _outcome(self, differences: NDArray[Any], allowed: Any) -> Outcome:
        import numpy as np

        with np.errstate(all="ignore"):
            largest = float((np.abs(differences) / allowed).max())
        worst = largest * self.bound if np.isfinite(largest) else float("inf")
        return Outcome(largest <= 1.0, worst, self.bound)


def _from_base64(text: str) -> bytes:
    return b64decode(text, validate=True)


class Outcome:
    """passed; worst: largest relative error; bound: the largest that is accepted; other: what else is wrong, "" for nothing."""

    __slots__ = ("bound", "other", "passed", "worst")

    def __init__(self, passed: bool, worst: float, bound: float, other: str = "") -> None:
        self.passed, self.worst, self.bound, self.other = passed, worst, bound, other

    def __str__(self) -> str:
        word = "within" if self.worst <= self.bound else "exceeds"
        return self.other or f"relative error {self.worst:.1e} {word} {self.bound:.1e}"


def replay(
    entry: Entry, artifact: Any, builder: Any = None, threads: Sequence[int] = THREADS, judged: Any = None
) -> Outcome:  # fmt: skip
    """Run the witness of an entry through its loaded artifact and compare.

    artifact: CpuArtifact or NeffArtifact; builder: for a fused one, the loaded `wilson_blocks` artifact of the same lattice,
    dtype, shards and target; a failure convicts the pair. threads: each number is run, all must give the same bits (a
    NeffArtifact runs once). judged: the whole judged answer, complex128 [columns, ...], of which then every component is
    compared; None: only what the witness stores of it. Errors: UsageError for an entry without a witness, for a builder (replay
    the fused artifacts that use it), and for a fused artifact without its builder.
    """
    if entry.witness is None or entry.spec.kind == "builder":
        raise UsageError(f"witness of {entry.name}: there is none to replay by itself", found=entry.witness_status)
    witness = Witness.from_dict(entry.witness, entry.spec)
    from lqcd_runtime.replay import runs, same_bits

    each = runs(witness.asked, entry, artifact, builder, threads)
    first = next(each)
    outcome = witness.compare(summary(witness.asked, first))
    if outcome.passed and judged is not None:
        outcome = max(outcome, witness.compare_whole(first, judged), key=lambda o: o.worst)
    for count, answers in zip(threads[1:], each, strict=False):
        if outcome.passed and not same_bits(first, answers):
            other = f"{count} threads give other bits than {threads[0]}"
            return Outcome(False, outcome.worst, outcome.bound, other)
    return outcome
