"""Who iterates: a solver artifact of D's bundle, or the host's algorithms. Decides, and says why.

Owns the words precision ("double", "mixed", "single"), even_odd and compiled of `solve`. There is no silent fallback: the
sentence of the choice is in `info.engine`, and what a caller demands and the bundle lacks is an error. Knows no iteration.
"""

from __future__ import annotations

from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.signature import CPU_STORAGES, suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lqcd_runtime.compiled_solver import CompiledSolver
    from lqcd_runtime.solvers.dirac import Corrector, DiracLike

PRECISIONS = ("double", "mixed", "single")
COMPILED_METHODS = ("cg", "bicgstab")


class Choice:
    """engine: a CompiledSolver, or None for the host; inner: for mixed precision on the host; words: for info.engine."""

    __slots__ = ("engine", "inner", "words")

    def __init__(self, engine: CompiledSolver | None, inner: DiracLike | Corrector | None, words: str) -> None:
        self.engine, self.inner, self.words = engine, inner, words


def choose(
    D: DiracLike,
    method: str,
    precision: str | None,
    even_odd: bool | None,
    compiled: bool | None,
    inner: DiracLike | Corrector | None,
    columns: int,
    storage: str | None = None,
) -> Choice:
    """See `solve`. Errors: UsageError for words that contradict each other, NoVariant, SolveError where memory is short."""
    word = _precision(D, precision, inner)
    dtype = "float64" if word == "double" else "float32"
    if storage is not None and (storage not in CPU_STORAGES[dtype] or inner is not None or compiled is False):
        raise UsageError(
            f"storage {storage!r}: says how a solver artifact stores links and vectors",
            expected=f"{' or '.join(CPU_STORAGES['float32'])} with precision='mixed' or 'single', "
            f"{' or '.join(CPU_STORAGES['float64'])} with 'double'; no inner operator, compiled not False",
            found=f"precision {word!r}",
        )
    if inner is not None or compiled is False:
        if even_odd:
            raise UsageError(
                "even_odd=True: is the business of a solver artifact", expected="compiled=None and no inner operator"
            )
        why = "an inner operator was given" if inner is not None else "compiled=False"
        return Choice(None, inner or _inner(D, word), f"host: {method}, {why}")
    try:
        engine = _engine(D, method, dtype, storage, even_odd, columns)
    except NoVariant as miss:
        if compiled or even_odd or storage is not None:
            raise
        return Choice(None, _inner(D, word), f"host: {method}, {miss.fact}{_better(D, method, word)}")
    return Choice(engine, None, engine.name)


def _better(D: DiracLike, method: str, word: str) -> str:
    """A few words on a solver artifact that another precision would use."""
    solvers = getattr(D, "solvers", None)
    if word != "double" or solvers is None:
        return ""
    try:
        return f"; precision='mixed' would use {solvers.artifact(D, method, 'float32', None).entry.name}"
    except NoVariant:
        return ""


def _precision(D: DiracLike, precision: str | None, inner: DiracLike | Corrector | None) -> str:
    own = "single" if str(D.dtype) == "float32" else "double"
    if precision is None:
        return "mixed" if inner is not None else own
    if precision not in PRECISIONS:
        raise UsageError(f"precision {precision!r}: is not known{suggest(precision, PRECISIONS)}", expected=", ".join(PRECISIONS))
    if precision not in (own, "mixed") or (precision == "mixed" and own == "single") or (inner and precision != "mixed"):
        raise UsageError(
            f"precision {precision!r}: does not fit the operator",
            expected="single for a float32 operator; double or mixed for a float64 one, mixed alone with an inner operator",
            found=str(D.dtype),
        )
    return precision


def _inner(D: DiracLike, word: str) -> DiracLike | None:
    """The single-precision operator of a mixed solve on the host. Errors: NoVariant, UsageError."""
    if word != "mixed":
        return None
    solvers = getattr(D, "solvers", None)
    if solvers is None:
        raise UsageError("precision 'mixed': the operator comes from no bundle", hint="solve(D, b, inner=the same in float32)")
    inner: DiracLike = solvers.inner(D)
    return inner


def _engine(D: DiracLike, method: str, dtype: str, storage: str | None, even_odd: bool | None, columns: int) -> CompiledSolver:
    """Errors: NoVariant, SolveError."""
    from lqcd_runtime.solver_choice import runs_on_cpu

    if method not in COMPILED_METHODS:
        raise NoVariant(f"no solver artifact is written for {method}")
    if not runs_on_cpu(D):
        raise NoVariant("the operator comes from no bundle of CPU artifacts")
    from lqcd_runtime.memory_use import require_memory

    solvers = D.solvers  # type: ignore[attr-defined]
    artifact = solvers.artifact(D, method, dtype, even_odd, storage)
    require_memory(D, artifact, columns)
    engine: CompiledSolver = solvers.make(D, artifact)
    return engine
