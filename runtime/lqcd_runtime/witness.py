"""Witnesses: a seeded question, the judged answer, a bound; and their replay on this machine.

Owns the questions (which input fields, scalars and phases an artifact is asked), the summary of an answer (what is stored of
it) and the comparison. The judge lives on the build side; `witness_bound` derives how far apart the two may be. Stored form
(member "witness" of a record, canonical JSON):

    {"schema": "lqcd-aot/witness/v1", "kind", "seed", "inputs": {name: hex float}, "phases": [[re, im] x 4],
     "rows": [hex of little-endian float64 ...], "bound": hex float, "scale": hex float}

    dirac      one row per column: 4 projections, then 16 components, each re, im
    chunk      the same of the solution after one call from x = 0, r = p = b, stop = 0, and the number of steps
    solver     likewise, of the solution after SOLVER_ITERATIONS from zero; the judge (dirac.iterates) bounds the run
    gauge_map  one row of the same form over the output links
    observable one row with the results
    builder    no row: it is judged by the fused Dirac artifacts that use its blocks (`replay(..., builder=)`)
"""

from __future__ import annotations

from functools import lru_cache

from lqcd_runtime.errors import CorruptError, UsageError
from lqcd_runtime.manifest import check_schema
from lqcd_runtime.signature import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.signature import Spec

SCHEMA = "lqcd-aot/witness/v1"
SEED = 20261130
# csw = 1/2 keeps the clover blocks of random links well conditioned, so that the bound of their inverse stays tight.
INPUTS = {"mass": 0.1, "csw": 0.5, "mu": 0.2, "beta": 6.0, "epsilon": 0.02, "rho": 0.1}
# A heavy quark bounds the condition number of M^dag M for any links, and so what rounding can do to the iterates of CG.
CHUNK_MASS = 4.0
# Likewise for solvers, whose bound the judge derives from the run: rounding then grows slowly from iteration to iteration.
# In single precision a second step of BiCGStab, whose scalars divide small numbers, could not be told from a wrong one.
SOLVER_MASS = 2.0
SOLVER_ITERATIONS = {("cg", "float32"): 2, ("cg", "float64"): 2, ("bicgstab", "float32"): 1, ("bicgstab", "float64"): 2}
PHASES = (-1.0 + 0j, 1.0 + 0j, 1.0 + 0j, 1.0 + 0j)
PROJECTIONS, SAMPLES = 4, 16
_SIGN_STREAM, _PLACE_STREAM = 1 << 20, 1 << 21


class Question:
    """What an artifact is asked. Depends on operator, lattice, batch and baked constants only, so one judged answer serves
    every dtype, storage, target, fused or not, sharded or not (`key` says which specs share it).
    """

    def __init__(
        self, operator: str, lattice: tuple[int, int, int, int], batch: int, inputs: dict[str, float], seed: int,
        iterations: int = 0,
    ) -> None:  # fmt: skip
        self.operator, self.lattice, self.batch, self.inputs, self.seed = operator, lattice, batch, inputs, seed
        self.iterations = iterations
        self.kind: str = OPERATORS[operator]["kind"]
        self.phases: tuple[complex, ...] = PHASES

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for specs that share an answer."""
        return (self.operator, self.lattice, self.batch, tuple(sorted(self.inputs.items())), self.seed, self.iterations)

    def links(self) -> NDArray[np.complex128]:
        """The input links, complex128 [T,Z,Y,X,4,3,3]: `fields.random_links`."""
        return _links(self.lattice, self.seed).copy()

    def columns(self) -> Iterator[NDArray[np.complex128]]:
        """The input spinors, complex128 [T,Z,Y,X,4,3], `batch` of them; zero on odd sites for even-odd operators."""
        from lqcd_runtime.fields import random_spinor
        from lqcd_runtime.geometry import parity

        for column in range(self.batch):
            psi = random_spinor(self.lattice, self.seed, column)
            if self.kind != "solver" and OPERATORS[self.operator].get("parity") == "even":
                psi[parity(self.lattice) == 1] = 0.0
            yield psi


@lru_cache(maxsize=1)
def _links(lattice: tuple[int, int, int, int], seed: int) -> NDArray[np.complex128]:
    """Making them takes longer than most replays; a bundle asks the same lattice many times in a row."""
    from lqcd_runtime.fields import random_links

    return random_links(lattice, seed)


def question(spec: Spec, seed: int = SEED) -> Question:
    """The question put to every artifact of a spec. Baked constants stand in the place of the usual scalars."""
    heavy = {"chunk": {"mass": CHUNK_MASS}, "solver": {"mass": SOLVER_MASS}}
    usual = {**INPUTS, **heavy.get(spec.kind, {})}
    inputs = {name: usual[name] for name in OPERATORS[spec.operator]["inputs"]} | dict(spec.baked)
    iterations = spec.iterations
    if spec.kind == "solver":
        iterations = SOLVER_ITERATIONS[OPERATORS[spec.operator]["method"], spec.dtype]
    return Question(spec.operator, spec.lattice, spec.batch, inputs, seed, iterations)


def summary(asked: Question, answers: Iterable[Any]) -> NDArray[np.float64]:
    """What is stored of an answer: float64 [rows, n].

    answers: for dirac and solver the output spinors, one [T,Z,Y,X,4,3] per column, in order; for gauge_map one array of links;
    for an observable one list of results; for chunk (solution, steps) per column. Signs and places come from Philox streams of
    the seed; every row has the same ones.
    """
    import numpy as np

    if asked.kind == "observable":
        return np.array([[float(v) for v in answer] for answer in answers], np.float64)
    if asked.kind == "chunk":
        solved = list(answers)
        steps = np.array([[float(steps)] for _, steps in solved])
        return np.concatenate([_sampled(asked, [x for x, _ in solved]), steps], axis=1)
    return _sampled(asked, answers)


def _sampled(asked: Question, answers: Iterable[Any]) -> NDArray[np.float64]:
    import numpy as np

    flat = [np.ascontiguousarray(np.asarray(answer), np.complex128).reshape(-1) for answer in answers]
    rows = np.zeros((len(flat), PROJECTIONS + SAMPLES), np.complex128)
    places = _places(asked.seed, flat[0].size)
    for p in range(PROJECTIONS):
        signs = _signs(asked.seed, p, flat[0].size)
        for row, answer in zip(rows, flat, strict=True):
            row[p] = np.sum(signs * answer)
    for row, answer in zip(rows, flat, strict=True):
        row[PROJECTIONS:] = answer[places]
    return rows.view(np.float64)


def _signs(seed: int, projection: int, count: int) -> NDArray[np.float64]:
    from lqcd_runtime.noise import z2

    signs: NDArray[np.float64] = z2(seed, _SIGN_STREAM + projection, count).real
    return signs


def _places(seed: int, count: int) -> NDArray[np.int64]:
    """SAMPLES places: the first and the last component (both on lattice edges), the others anywhere."""
    import numpy as np

    from lqcd_runtime.noise import uniform

    places = ((uniform(seed, _PLACE_STREAM, SAMPLES) + 1.0) * 0.5 * count).astype(np.int64)
    places[0], places[-1] = 0, count - 1
    return places


class Witness:
    """A question with its judged answer and the bound for one spec. Made by `make` or `from_dict`."""

    def __init__(self, asked: Question, rows: Any, bound: float, scale: float) -> None:
        self.asked, self.rows, self.bound, self.scale = asked, rows, bound, scale

    @classmethod
    def make(cls, spec: Spec, rows: Any, seed: int = SEED, error: float | None = None) -> Witness:
        """Witness of a spec from the judge's `summary(question(spec), answers)`; rows is None for a builder.

        error: for a solver, the judge's bound on a component, in units of the arithmetic's rounding.

        Errors: UsageError where rows are absent, have the wrong shape or are not finite.
        """
        import numpy as np

        from lqcd_runtime.witness_bound import bound_and_scale, solver_bound

        asked = question(spec, seed)
        if asked.kind == "builder":
            return cls(asked, np.zeros((0, 0)), 0.0, 1.0)
        if rows is None or np.shape(rows) != _shape(asked) or not np.isfinite(rows).all():
            raise UsageError(
                f"witness of {spec.name}: its judged rows are absent, misshapen or not finite", expected=_shape(asked),
                found=None if rows is None else np.shape(rows),
            )  # fmt: skip
        if asked.kind == "solver":
            bound, scale = solver_bound(spec.operator, spec.dtype, error)
        else:
            bound, scale = bound_and_scale(asked.kind, spec.operator, spec.lattice, asked.inputs, spec.dtype, spec.iterations)
        return cls(asked, np.asarray(rows, np.float64), bound, scale)

    def as_dict(self) -> dict[str, Any]:
        """The stored form."""
        from lqcd_runtime.digest import hex_float

        return {
            "schema": SCHEMA,
            "kind": self.asked.kind,
            "seed": self.asked.seed,
            "inputs": {k: hex_float(v) for k, v in self.asked.inputs.items()},
            "phases": [[hex_float(p.real), hex_float(p.imag)] for p in self.asked.phases],
            "rows": [row.astype("<f8").tobytes().hex() for row in self.rows],
            "bound": hex_float(self.bound),
            "scale": hex_float(self.scale),
        }

    @classmethod
    def from_dict(cls, raw: dict[str, Any], spec: Spec) -> Witness:
        """Inverse of `as_dict`, for the spec of its entry. Errors: TooNewError, CorruptError."""
        import numpy as np

        where = f"witness of {spec.name}"
        check_schema(raw.get("schema"), SCHEMA, where)
        try:
            asked = question(spec, raw["seed"])
            asked.inputs = {str(k): float.fromhex(v) for k, v in raw["inputs"].items()}
            asked.phases = tuple(complex(float.fromhex(re), float.fromhex(im)) for re, im in raw["phases"])
            rows = np.array([np.frombuffer(bytes.fromhex(row), "<f8") for row in raw["rows"]] or np.zeros((0, 0)), np.float64)
            bound, scale = float.fromhex(raw["bound"]), float.fromhex(raw["scale"])
        except (KeyError, ValueError, TypeError, AttributeError) as err:
            raise CorruptError(f"{where}: cannot be read", found=f"{type(err).__name__}: {err}") from err
        names = set(OPERATORS[spec.operator]["inputs"])
        if raw["kind"] != asked.kind or set(asked.inputs) != names or len(asked.phases) != 4 or rows.shape != _shape(asked):
            raise CorruptError(f"{where}: is not a witness of this operator", expected=_shape(asked), found=rows.shape)
        return cls(asked, rows, bound, scale)

    def compare(self, rows: NDArray[np.float64]) -> Outcome:
        """The largest relative error (see `witness_bound`) of measured rows."""
        import numpy as np

        from lqcd_runtime.witness_bound import PROJECTION_DEVIATIONS

        scale = np.full(self.rows.shape[1], self.scale)
        if self.asked.kind != "observable":
            size = np.prod(self.asked.lattice) * (36 if self.asked.kind == "gauge_map" else 12)
            scale[: 2 * PROJECTIONS] *= PROJECTION_DEVIATIONS * np.sqrt(size)
        if self.asked.kind == "chunk":
            scale[-1] = 0.5 / self.bound  # the number of steps must be the same
        with np.errstate(all="ignore"):
            errors = np.abs(rows - self.rows) / scale
        worst = float(errors.max()) if np.isfinite(errors).all() else float("inf")
        return Outcome(worst <= self.bound, worst, self.bound)


class Outcome:
    """passed; worst: largest relative error; bound: the largest that is accepted."""

    __slots__ = ("bound", "passed", "worst")

    def __init__(self, passed: bool, worst: float, bound: float) -> None:
        self.passed, self.worst, self.bound = passed, worst, bound

    def __str__(self) -> str:
        word = "within" if self.passed else "exceeds"
        return f"relative error {self.worst:.1e} {word} {self.bound:.1e}"


def _shape(asked: Question) -> tuple[int, int]:
    if asked.kind == "builder":
        return 0, 0
    if asked.kind == "observable":
        return 1, len(OPERATORS[asked.operator]["results"])
    sampled = 2 * (PROJECTIONS + SAMPLES)
    if asked.kind == "chunk":
        return asked.batch, sampled + 1
    return (1 if asked.kind == "gauge_map" else asked.batch), sampled


def replay(entry: Entry, artifact: Any, builder: Any = None, threads: int = 1) -> Outcome:
    """Run the witness of an entry through its loaded artifact and compare.

    artifact: CpuArtifact or NeffArtifact; builder: for a fused one, the loaded `wilson_blocks` artifact of the same lattice,
    dtype, shards and target; a failure convicts the pair. Errors: UsageError for an entry without a witness, for a builder
    (replay the fused artifacts that use it), and for a fused artifact without its builder.
    """
    if entry.witness is None or entry.spec.kind == "builder":
        raise UsageError(f"witness of {entry.name}: there is none to replay by itself", found=entry.witness_status)
    witness = Witness.from_dict(entry.witness, entry.spec)
    from lqcd_runtime.replay import answers

    return witness.compare(summary(witness.asked, answers(witness.asked, entry, artifact, builder, threads)))
