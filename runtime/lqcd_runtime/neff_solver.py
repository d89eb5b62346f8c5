"""`ChunkSolver`: corrections of a solve by programs that run k iterations of conjugate gradients per call.

    inner = bundle.chunk_solver("wilson_cg_chunk", gauge=gauge, mass=0.1, iterations=8, batch=12)
    x, info = lqcd.solve(D, b, inner=inner)          # D in any precision, on any engine, judges by the true residual

Vectors stay on the device; per call only |r|^2 and the number of steps of each column return. A correction is no solution: its
residual is the recursion's. Owns the loop over calls and the spread of columns over cores. Run on the simulator and on a double
of libnrt; never on a NeuronCore.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.arrays import COMPLEX
from lqcd_runtime.errors import UsageError
from lqcd_runtime.neff_parallel import spread, usable_cores
from lqcd_runtime.neff_residents import numbers, residents
from lqcd_runtime.signature import OPERATORS, Spec, kind_of
from lqcd_runtime.solvers.result import ColumnInfo, Reason, SolveInfo
from lqcd_runtime.split_layout import pack_spinor, scalars, unpack_spinor
from lqcd_runtime.target import CPU_TARGETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.engines.neff_artifact import NeffArtifact
    from lqcd_runtime.inputs import Inputs
    from lqcd_runtime.neff_residents import Residents
    from lqcd_runtime.operator import DiracOperator


class ChunkSolver:
    """CG on M^dag M y = M^dag r. lattice; dtype: of its arrays; iterations: per call; dagger: the operator M^dag it uses."""

    dtype = "float32"

    def __init__(
        self, artifact: NeffArtifact, held: Residents, inputs: Inputs, dagger: DiracOperator, cores: tuple[int, ...] | None
    ) -> None:
        self.program, self.held, self.dagger = artifact, held, dagger
        self.entry, self.spec = artifact.entry, artifact.entry.spec
        self.lattice, self.iterations = self.spec.lattice, self.spec.iterations
        self.cores = usable_cores(artifact, cores)
        self._numbers = scalars(self.spec, numbers(inputs))

    def correct(self, r: Any, tol: float, max_iterations: int) -> tuple[NDArray[Any], SolveInfo]:
        """y with |M^dag (r - M y)| <= tol |M^dag r| by the recursion, or after max_iterations, rounded up to whole calls.

        r: complex64 [columns,T,Z,Y,X,4,3]. The info has recursive residuals only (final_residual is NaN): judge y by M.
        """
        rhs = self.dagger.apply(np.ascontiguousarray(r, COMPLEX[self.dtype]))
        out = np.zeros_like(rhs)
        infos = [ColumnInfo() for _ in rhs]
        starts = range(0, len(rhs), self.spec.batch)
        spread(starts, self.cores, lambda start, core: self._columns(out, rhs, infos, start, core, tol, max_iterations))
        applications = sum(2 * info.iterations + 1 for info in infos)
        return out, SolveInfo(infos, applications=applications, flops=float(applications * self.dagger.flops))

    def _columns(
        self,
        out: NDArray[Any],
        rhs: NDArray[Any],
        infos: list[ColumnInfo],
        start: int,
        core: int,
        tol: float,
        max_iterations: int,
    ) -> None:
        """The columns of one batch, padded with zeros: those are frozen from the start."""
        columns = rhs[start : start + self.spec.batch]
        count = len(columns)
        padded = np.zeros((self.spec.batch, *rhs.shape[1:]), rhs.dtype)
        padded[:count] = columns
        packed = pack_spinor(self.spec, padded, dtype=self.dtype)
        norms = np.sum(np.abs(padded.astype(np.complex128)) ** 2, axis=tuple(range(1, padded.ndim)))
        stop = (norms * tol**2).astype(np.float32)
        first = {"x": np.zeros_like(packed), "r": packed, "p": packed, "rr": norms.astype(np.float32)}
        state = self.program.begin(first, core)
        try:
            done = np.zeros(self.spec.batch, np.int64)
            rr, moving = first["rr"], first["rr"] > stop
            calls = -(-max_iterations // self.iterations)
            while calls > 0 and moving.any():
                steps = self.program.step(state, {"stop": stop, **self._numbers}, self.held)["steps"]
                rr = state.read("rr")
                done += steps.astype(np.int64)
                moving &= (rr > stop) & (steps > 0)  # a column that stands still above stop has broken down; NaN compares false
                calls -= 1
            unpack_spinor(self.spec, state.read("x"), padded, dtype=self.dtype)
        finally:
            state.close()
        out[start : start + count] = padded[:count]
        for k in range(count):
            _settle(infos[start + k], float(rr[k]), float(stop[k]), float(norms[k]), int(done[k]), bool(moving[k]))

    def __repr__(self) -> str:
        return f"ChunkSolver({self.entry.name}, engine {self.program.engine.name}, {len(self.cores)} cores)"


def _settle(info: ColumnInfo, rr: float, stop: float, norm: float, steps: int, moving: bool) -> None:
    info.iterations = steps
    info.recursive_residual = (rr / norm) ** 0.5 if norm > 0.0 else 0.0
    if rr != rr or rr == float("inf"):
        info.reason = Reason.NOT_FINITE
    elif rr <= stop:
        info.reason = Reason.CONVERGED
    elif moving:
        info.reason = Reason.MAX_ITERATIONS
    else:
        info.reason = Reason.BREAKDOWN


def chunk_solver(
    bundle: Bundle, spec: Spec, gauge: Any, inputs: Inputs, engine: str | None, cores: tuple[int, ...] | None
) -> ChunkSolver:
    """Select, load. Errors: UsageError for an operator that is no chunk, NoVariant, CorruptError, EngineError."""
    from lqcd_runtime.operator_choice import Running, builder_entry, operator

    if kind_of(spec.operator) != "chunk":
        raise UsageError(f"operator {spec.operator}: is no solver chunk", found=kind_of(spec.operator), hint="bundle.operator")
    entry = bundle.select(spec, engine=engine).choice
    if entry.target in CPU_TARGETS:
        raise UsageError(f"artifact {entry.name}: solver chunks run on NeuronCores and the simulator", found=entry.target)
    artifact = bundle.load(entry)
    builder = bundle.load(builder_entry(bundle, entry)) if spec.fused else None
    word = OPERATORS[spec.operator]["solves"].removesuffix("_normal") + "_dagger"
    dagger = operator(bundle, spec.replace(operator=word, iterations=0), gauge, inputs, Running(None, engine, cores))
    held = residents(artifact, builder, gauge, inputs, bundle.packed_gauges)
    return ChunkSolver(artifact, held[0], inputs, dagger, cores)
