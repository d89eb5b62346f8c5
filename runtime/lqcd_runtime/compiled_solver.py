"""`CompiledSolver`: a loaded solver artifact with its gauge field, inputs and buffers.

Owns the state and the workspace, and the three calls of the entry points (artifacts/README.md): begin, iterate, end. What is
solved to which residual, and when to begin again, is the business of `solvers.compiled`. One solve at a time.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np

from lqcd_runtime.arrays import address, links_of
from lqcd_runtime.engines.cpu import CLOVER, GAUGE, STATE, WORKSPACE, CpuArtifact, default_threads, doubles
from lqcd_runtime.engines.forks import watch
from lqcd_runtime.engines.memory import Buffer
from lqcd_runtime.errors import SolveError
from lqcd_runtime.geometry import volume
from lqcd_runtime.operator import flops_per_site
from lqcd_runtime.signature import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.inputs import Inputs
    from lqcd_runtime.packed import PackedGauge

RUNNING, BELOW_STOP, BREAKDOWN, NOT_FINITE = range(4)


class CompiledSolver:
    """A solver artifact, ready to run. name: of the artifact; method: "cg" or "bicgstab"; batch: columns per solve."""

    def __init__(self, artifact: CpuArtifact, packed: PackedGauge, gauge: Any, inputs: Inputs, threads: int | None) -> None:
        self.artifact, self.packed = artifact, packed
        spec = artifact.entry.spec
        self.name, self.spec, self.batch = artifact.entry.name, spec, spec.batch
        self.method: str = OPERATORS[spec.operator]["method"]
        self.threads = threads or default_threads(volume(spec.lattice) * self.batch)
        self.flops = flops_per_site(OPERATORS[spec.operator]["solves"]) * volume(spec.lattice)
        self._scalars = doubles(inputs.vector())
        self._state, self._work = Buffer(artifact.bytes_of(STATE)), Buffer(artifact.bytes_of(WORKSPACE))
        size = artifact.bytes_of(CLOVER)
        self._clover = Buffer(size) if size else None
        if self._clover is not None:
            links = links_of(gauge, spec.dtype)
            artifact.call("lqcd_pack_clover", self._clover.address, address(links), 0, self._scalars, threads=self.threads)
        # Re-entrant, so that a signal handler or an observer that solves again is refused and does not wait for itself for ever.
        self.busy = threading.RLock()
        self._solving = False
        watch(self)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For the time of one solve. Errors: SolveError inside another one of the same thread, whose state it would spoil."""
        with self.busy:
            if self._solving:
                raise SolveError(
                    f"solve with {self.name}: is running already in this thread",
                    hint="an observer that solves takes an operator of its own, made by bundle.operator",
                )
            self._solving = True
            try:
                yield
            finally:
                self._solving = False

    @property
    def bytes(self) -> int:
        """Of the buffers it holds beside the packed links."""
        return self._state.size + self._work.size + (self._clover.size if self._clover else 0)

    def begin(self, b: NDArray[np.complex128], factors: Sequence[float], modes: Sequence[int]) -> NDArray[np.float64]:
        """Start on factors[j] * b[j]: the squared norms of the recursion's residuals.

        b: complex128 [batch,T,Z,Y,X,4,3]; a column of factor 0 is left alone; modes: abi.hpp.
        """
        norms = np.zeros(self.batch)
        factor, mode = np.array(factors, np.float64), np.array(modes, np.int32)
        state, context = self._state.address, self._context()
        self._call("lqcd_solve_begin", state, address(b), address(factor), address(mode), *context, address(norms))
        return norms

    def iterate(
        self, stop: NDArray[np.float64], iterations: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
        """Up to `iterations` for every column above its stop (a squared norm).

        Returns (history [iterations, 2, batch], iterations done [batch], status [batch]).
        """
        history = np.full((iterations, 2, self.batch), np.nan)
        outcome = np.zeros((self.batch, 2), np.int32)
        state, context = self._state.address, self._context()
        self._call("lqcd_solve_iterate", state, *context, address(stop), iterations, address(history), address(outcome))
        return history, outcome[:, 0], outcome[:, 1]

    def end(
        self, base: NDArray[np.complex128], factors: Sequence[float], out: NDArray[np.complex128] | None = None
    ) -> NDArray[np.complex128]:
        """base + factors[j] * solution of column j, in `out` or a new array. The state stays: iterations may go on."""
        result, factor = np.empty_like(base) if out is None else out, np.array(factors, np.float64)
        self._call("lqcd_solve_end", address(result), address(base), address(factor), self._state.address, *self._context())
        return result

    def resident(self, iterations: int) -> None:
        """`iterations` of all columns on what the state holds, never stopping. For measuring."""
        self.iterate(np.full(self.batch, -1.0), iterations)

    def _context(self) -> tuple[Any, ...]:
        clover = self._clover.address if self._clover else None
        return self.packed.slabs[0].address, clover, self._work.address, self._scalars

    def _call(self, name: str, *arguments: Any) -> None:
        self.artifact.call(name, *arguments, threads=self.threads)

    def after_fork(self) -> None:
        """A child process starts with a free lock, whoever held it."""
        self.busy = threading.RLock()
        self._solving = False


def solver_bytes(artifact: CpuArtifact) -> dict[str, int]:
    """What a CompiledSolver of this artifact allocates: {"links", "clover", "state", "workspace"}."""
    return {
        "links": artifact.bytes_of(GAUGE),
        "clover": artifact.bytes_of(CLOVER),
        "state": artifact.bytes_of(STATE),
        "workspace": artifact.bytes_of(WORKSPACE),
    }
