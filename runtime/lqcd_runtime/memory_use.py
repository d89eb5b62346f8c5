"""How many bytes an operator holds and a solve will need, before anything is allocated.

Owns the arithmetic and the question to the machine. Buffers of artifacts are asked of the artifacts (`lqcd_bytes`).
"""

from __future__ import annotations

from lqcd_runtime.compiled_solver import solver_bytes
from lqcd_runtime.engines.cpu import CLOVER, GAUGE, SPINOR_IN, SPINOR_OUT, WORKSPACE
from lqcd_runtime.errors import NoVariant, SolveError
from lqcd_runtime.geometry import volume
from lqcd_runtime.solver_choice import runs_on_cpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.engines.cpu import CpuArtifact
    from lqcd_runtime.operator import DiracOperator
    from lqcd_runtime.witness_question import Question

# Arrays of complex128 columns a solve holds at once: right-hand sides, solutions; and per batch the residual, the trial solution,
# and D's output. The host's conjugate gradient: right-hand sides, x, r, p, A p, a scratch column each, the solution.
_WHOLE, _PER_BATCH, _HOST = 2, 5, 7
# Measured with 16^4 sites: links 3 to 5.5 KB a site, a column 6 spinors, of a solver 8.
_REPLAY_LINKS, _REPLAY_COLUMN = 6_000, 9 * 192


def memory(
    operator: DiracOperator, columns: int = 1, *, method: str = "cg", precision: str | None = None, storage: str | None = None
) -> dict[str, int]:
    """Bytes of an operator and of a solve of `columns` right-hand sides with it, by part; nothing is allocated.

    {"links", "clover", "spinors": held by the operator, "solver": links, state and workspace of the solver artifact that would
    run (0: the host iterates), "arrays": complex128 arrays of the solve, "total"}. storage: as `solve` takes it.
    Errors: NoVariant where no solver artifact stores so.
    """
    dtype = "float32" if precision in ("mixed", "single") else str(operator.dtype)
    artifact = None
    if runs_on_cpu(operator):
        try:
            artifact = operator.solvers.artifact(operator, method, dtype, None, storage)  # type: ignore[union-attr]
        except NoVariant:
            if storage is not None:
                raise
            artifact = None
    return _parts(operator, artifact, columns)


def _parts(operator: DiracOperator, solver: CpuArtifact | None, columns: int) -> dict[str, int]:
    own, slabs = operator.artifact, operator.spec.shards
    column = volume(operator.lattice) * 12 * 16
    arrays = (_WHOLE * columns + _PER_BATCH * operator.batch if solver else _HOST * columns) * column
    out = {
        "links": own.bytes_of(GAUGE) * slabs,
        "clover": own.bytes_of(CLOVER) * slabs,
        "spinors": own.bytes_of(SPINOR_IN) + own.bytes_of(SPINOR_OUT) + own.bytes_of(WORKSPACE),
        "solver": sum(solver_bytes(solver).values()) if solver else 0,
        "arrays": arrays,
    }
    return {**out, "total": sum(out.values())}


def available() -> int | None:
    """Bytes this process could get now (Linux: MemAvailable, and what its control group has left), or None where unknown."""
    free = []
    for path, read in (("/proc/meminfo", _meminfo), ("/sys/fs/cgroup/memory.max", _group)):
        try:
            with open(path, encoding="ascii") as f:
                value = read(f.read())
        except (OSError, ValueError):
            continue
        if value is not None:
            free.append(value)
    return min(free, default=None)


def _meminfo(text: str) -> int | None:
    for line in text.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _group(text: str) -> int | None:
    """What is left of the limit of a version 2 control group."""
    if text.strip() == "max":
        return None
    with open("/sys/fs/cgroup/memory.current", encoding="ascii") as f:
        return int(text) - int(f.read())


def replay_bytes(asked: Question) -> int:
    """Bytes at the peak of replaying a witness, estimated from above. A site has 576 bytes of links and 192 of a spinor.

    Links: the noise that they are drawn from, or the drawn ones, a copy, the rounded and the packed ones. Columns: drawn and
    stacked, packed in and out, and two answers that are compared bit by bit.
    """
    columns = asked.batch if asked.kind in ("dirac", "chunk", "solver") else 0
    return volume(asked.lattice) * (_REPLAY_LINKS + columns * _REPLAY_COLUMN)


def require_memory(operator: Any, solver: CpuArtifact, columns: int) -> None:
    """Errors: SolveError where a solve would need more than the machine has, before it starts."""
    parts = _parts(operator, solver, columns)
    needed, free = parts["solver"] + parts["arrays"], available()
    if free is not None and needed > free:
        raise SolveError(
            f"solve with {solver.entry.name}: does not fit into memory", expected=f"{needed / 2**30:.2f} GiB free",
            found=f"{free / 2**30:.2f} GiB", hint="fewer columns, or an operator with a smaller batch",
            details=[f"{name}: {size / 2**20:.1f} MiB" for name, size in parts.items()],
        )  # fmt: skip
