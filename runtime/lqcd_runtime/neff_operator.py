"""`NeffOperator`: an HLO program on a Neuron engine or the simulator, with the interface of DiracOperator.

Owns: chunks of the program's batch (the last padded with zeros), slabs of T whose halos are gathered by the host, and the spread
of both over cores, one thread per core. Results do not depend on the number of cores: chunks and slabs write apart from each
other. Arrays are complex64 for float32 and bfloat16 alike. The gauge field stays on the device.
Run on the simulator and on a double of libnrt; never on a NeuronCore.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.errors import UsageError
from lqcd_runtime.neff_parallel import spread, usable_cores
from lqcd_runtime.neff_residents import numbers
from lqcd_runtime.operator import DiracOperator
from lqcd_runtime.split_layout import pack_spinor, scalars, unpack_spinor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.engines.neff_artifact import NeffArtifact
    from lqcd_runtime.inputs import Inputs
    from lqcd_runtime.neff_residents import Residents
    from lqcd_runtime.operator import Family


class NeffOperator(DiracOperator):
    """M of one family member at fixed inputs; see DiracOperator. cores: those that share the work; engine: "neuron" or "sim"."""

    def __init__(
        self, artifact: NeffArtifact, held: list[Residents], gauge: Any, inputs: Inputs, cores: tuple[int, ...] | None,
        family: Family | None,
    ) -> None:  # fmt: skip
        # Not the buffers of the base class: everything of its interface is set here.
        self.program, self.held, self.gauge, self._inputs, self._family = artifact, held, gauge, inputs, family
        self.entry = artifact.entry
        self.spec = artifact.entry.spec
        self.lattice = self.spec.lattice
        self.dtype = "float32"  # of the arrays at this interface; spec.dtype is that of the arithmetic
        self.batch = self.spec.batch
        self.engine: str = artifact.engine.name
        self.cores = usable_cores(artifact, cores)
        self.asked_threads, self.threads = None, len(self.cores)
        self._numbers = scalars(self.spec, numbers(inputs))

    def _run(self, out: NDArray[Any], psi: NDArray[Any]) -> None:
        work = [(start, slab) for start in range(0, len(psi), self.batch) for slab in range(self.spec.shards)]
        spread(work, self.cores, lambda piece, core: self._apply_part(out, psi, piece[0], piece[1], core))

    def _apply_part(self, out: NDArray[Any], psi: NDArray[Any], start: int, slab: int, core: int) -> None:
        """One slab of one chunk of columns."""
        columns = psi[start : start + self.batch]
        count = len(columns)
        if count < self.batch:
            columns = np.concatenate([columns, np.zeros((self.batch - count, *psi.shape[1:]), psi.dtype)])
        given = {"psi": pack_spinor(self.spec, columns, slab), **self._numbers}
        found = self.program.run(given, self.held[slab], core)["out"]
        if count == self.batch:
            unpack_spinor(self.spec, found, out[start : start + count], slab)
        else:
            whole = np.empty_like(columns)
            unpack_spinor(self.spec, found, whole, slab)
            thick = self.lattice[0] // self.spec.shards
            mine = slice(slab * thick, (slab + 1) * thick)
            out[start : start + count, mine] = whole[:count, mine]

    def after_fork(self) -> None:
        """Nothing to forget: the engine refuses every call in a forked child."""

    def with_inputs(self, **changes: float) -> DiracOperator:
        """The same program with another mass, csw or mu; links on the device are shared. Errors: UsageError, NoVariant."""
        from lqcd_runtime.inputs import Inputs, resolve

        if self._family is None:
            raise UsageError(f"operator {self.spec.operator}: stands alone", expected="an operator made by a bundle")
        now = {k: v for k, v in self._inputs.scalars.items() if not (k == "mass" and "kappa" in changes)}
        checked = resolve(self.spec.operator, **{**now, **changes})  # type: ignore[arg-type]
        inputs = Inputs(checked.scalars, self._inputs.phases, self._inputs.xi0, self._inputs.nu)
        return self._family(self.spec.operator, inputs, self)

    def __repr__(self) -> str:
        values = ", ".join(f"{k}={v}" for k, v in self._inputs.scalars.items())
        return f"NeffOperator({self.entry.name}, engine {self.engine}, {len(self.cores)} cores, {values})"
