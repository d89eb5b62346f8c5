"""Which solver artifact of a bundle solves for an operator: same system, lattice, batch and inputs, in the precision asked for.

Owns the order of the choice: the even-odd system where the bundle has it, else the full one; never another lattice or batch.
What is missing is a NoVariant that the caller turns into words. Knows no algorithm.
"""

from __future__ import annotations

from lqcd_runtime.arrays import links_of
from lqcd_runtime.compiled_solver import CompiledSolver
from lqcd_runtime.errors import NoVariant
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.target import CPU_TARGETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.engines.cpu import CpuArtifact
    from lqcd_runtime.inputs import Inputs
    from lqcd_runtime.operator import DiracOperator
    from lqcd_runtime.operator_choice import Running


class Solvers:
    """The solver artifacts of the bundle that an operator came from. What was made is kept for the operator's next solve."""

    def __init__(self, bundle: Bundle, how: Running) -> None:
        self._bundle, self._how = bundle, how
        self._found: dict[tuple[str, str, bool | None, str], CpuArtifact] = {}
        self._made: dict[str, CompiledSolver] = {}

    def artifact(
        self, D: DiracOperator, method: str, dtype: str, even_odd: bool | None, storage: str | None = None
    ) -> CpuArtifact:
        """The loaded artifact for M x = b of D, nothing else allocated. even_odd: True, False, or None for what the bundle has;
        storage: of its vectors and links, None for the dtype.

        Errors: NoVariant.
        """
        from lqcd_runtime.operator_choice import select_entry

        asked = (method, dtype, even_odd, storage or dtype)
        known = self._found.get(asked)
        if known is not None:
            return known
        misses = []
        for system in systems(D.spec.operator, even_odd):
            word = f"{system}_{method}"
            if word not in OPERATORS:
                misses.append(NoVariant(f"no solver is written for {D.spec.operator} with {method}"))
                continue
            spec = Spec(word, D.lattice, dtype, storage=storage, batch=D.batch)
            try:
                entry = select_entry(self._bundle, spec, self._inputs(D, word), self._how.engine)
            except NoVariant as miss:
                misses.append(miss)
                continue
            artifact: CpuArtifact = self._bundle.load(entry)
            self._found[asked] = artifact
            return artifact
        raise misses[0]

    def make(self, D: DiracOperator, artifact: CpuArtifact) -> CompiledSolver:
        """The artifact with buffers over D's gauge field and inputs; the one of last time where there is one."""
        from lqcd_runtime.packed import pack_gauge

        made = self._made.get(artifact.entry.build_key)
        if made is None:
            inputs = self._inputs(D, artifact.entry.spec.operator)
            links = links_of(D.gauge, artifact.entry.spec.dtype, D.lattice)
            packed = pack_gauge(artifact, None, links, inputs, D.threads, self._bundle.packed_gauges)
            made = CompiledSolver(artifact, packed, D.gauge, inputs, self._how.threads)
            self._made[artifact.entry.build_key] = made
        return made

    def inner(self, D: DiracOperator) -> DiracOperator:
        """D in single precision, for mixed precision on the host. Errors: NoVariant."""
        from lqcd_runtime.operator_choice import operator

        spec = D.spec.replace(dtype="float32", storage="float32", baked={})
        return operator(self._bundle, spec, D.gauge, D.checked_inputs, self._how)

    def _inputs(self, D: DiracOperator, word: str) -> Inputs:
        return D.checked_inputs.for_operator(word)


def systems(operator: str, even_odd: bool | None) -> list[str]:
    """The systems that solve M x = b of an operator, best first. None: the even-odd one only where solvers are written for it."""
    half = f"{operator}_schur"
    if even_odd is not None:
        return [half if even_odd else operator]
    return [half, operator] if any(entry.get("solves") == half for entry in OPERATORS.values()) else [operator]


def runs_on_cpu(D: object) -> bool:
    """Whether D is an operator of a bundle on this machine's CPU."""
    entry = getattr(D, "entry", None)
    return getattr(D, "solvers", None) is not None and entry is not None and entry.target in CPU_TARGETS
