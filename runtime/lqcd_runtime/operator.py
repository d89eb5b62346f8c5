"""`DiracOperator`: a loaded dirac artifact with its gauge field and inputs, applied to numpy arrays.

Owns: buffers, batches (chunks of the artifact's batch, the last padded with zeros), slabs (driven one by one), the packed
clover term, the family of an operator (dagger, normal). The formula lives in the artifact; the choice of the artifact in
`operator_choice`. One application at a time per operator; several operators may run in several threads.
"""

from __future__ import annotations

import threading

import numpy as np

from lqcd_runtime.arrays import COMPLEX, address, as_numpy, links_of, spinors
from lqcd_runtime.conventions import FLOPS_CLOVER, FLOPS_WILSON_HOP
from lqcd_runtime.engines.cpu import CLOVER, SPINOR_IN, SPINOR_OUT, WORKSPACE, CpuArtifact, default_threads, doubles
from lqcd_runtime.engines.forks import watch
from lqcd_runtime.engines.memory import Buffer
from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.geometry import volume

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.inputs import Inputs
    from lqcd_runtime.packed import PackedGauge
    from lqcd_runtime.solver_choice import Solvers

    # (operator word, inputs, sibling) -> the operator of that word over the same gauge field
    Family = Callable[[str, Inputs, "DiracOperator"], "DiracOperator"]


class DiracOperator:
    """M of one family member at fixed inputs: `D(psi)` or `D.apply(psi)`.

    spec, entry: what runs; gauge: as the caller gave it; inputs: name -> number; threads; note: "" or one sentence on how a
    missing artifact was composed; solvers: the solver artifacts of its bundle, or None.
    Arrays: complex64 or complex128 as dtype says.
    """

    note = ""
    solvers: Solvers | None = None

    def __init__(
        self, artifact: CpuArtifact, packed: PackedGauge, gauge: Any, inputs: Inputs, threads: int | None, family: Family | None
    ) -> None:
        self.artifact, self.packed, self.gauge, self._inputs, self._family = artifact, packed, gauge, inputs, family
        self.entry = artifact.entry
        self.spec = artifact.entry.spec
        self.lattice = self.spec.lattice
        self.dtype = self.spec.dtype
        self.batch = self.spec.batch
        self.asked_threads = threads
        self.threads = threads or default_threads(volume(self.lattice) // self.spec.shards * self.batch)
        self._scalars = doubles(inputs.vector())
        self._in, self._out = Buffer(artifact.bytes_of(SPINOR_IN)), Buffer(artifact.bytes_of(SPINOR_OUT))
        self._work = Buffer(artifact.bytes_of(WORKSPACE))
        self._clover = self._pack_clover()
        # Re-entrant: a signal handler that applies the operator again must not wait for itself for ever.
        self._busy = threading.RLock()
        watch(self)

    def _pack_clover(self) -> list[Buffer | None]:
        size = self.artifact.bytes_of(CLOVER)
        slabs: list[Buffer | None] = [Buffer(size) if size else None for _ in range(self.spec.shards)]
        if size:
            links = links_of(self.gauge, self.dtype)
            for i, slab in enumerate(slabs):
                assert slab is not None
                self.artifact.call("lqcd_pack_clover", slab.address, address(links), i, self._scalars, threads=self.threads)
        return slabs

    @property
    def inputs(self) -> dict[str, Any]:
        """mass, csw, mu as far as the operator has them; phases, xi0, nu."""
        return self._inputs.as_dict()

    @property
    def checked_inputs(self) -> Inputs:
        """The same as `Inputs`, for other artifacts of the family."""
        return self._inputs

    @property
    def flops(self) -> int:
        """Floating-point operations of one application to one right-hand side: 1320 per site and hop, 504 per clover term."""
        return flops_per_site(self.spec.operator) * volume(self.lattice)

    def __call__(self, psi: Any) -> NDArray[Any]:
        return self.apply(psi)

    def apply(self, psi: Any) -> NDArray[Any]:
        """M psi: complex [T,Z,Y,X,4,3] or [columns,T,Z,Y,X,4,3], any number of columns, to a new array of the same shape.

        Errors: UsageError for another shape or dtype.
        """
        array, columned = spinors(psi, self.lattice, self.dtype)
        out = np.empty_like(array)
        self._run(out, array)
        return out if columned else out[0]

    def apply_into(self, out: Any, psi: Any) -> None:
        """M psi into `out`, an array in C order of psi's shape; it may be psi itself. Errors: as `apply`."""
        array, columned = spinors(psi, self.lattice, self.dtype)
        target = as_numpy(out, "out")
        if target.shape != (array.shape if columned else array.shape[1:]) or not target.flags.c_contiguous:
            raise UsageError("out: has another shape or is not in C order", expected=list(array.shape), found=list(target.shape))
        if target.dtype != COMPLEX[self.dtype] or not target.flags.writeable:
            raise UsageError("out: has the wrong dtype or is read-only", expected=COMPLEX[self.dtype], found=target.dtype)
        if np.may_share_memory(target, array):
            array = array.copy()
        self._run(target if columned else target[None], array)

    def _run(self, out: NDArray[Any], psi: NDArray[Any]) -> None:
        with self._busy:
            for start in range(0, len(psi), self.batch):
                columns = psi[start : start + self.batch]
                if len(columns) == self.batch:
                    self._apply_batch(out[start : start + self.batch], columns)
                else:
                    padded = np.zeros((self.batch, *psi.shape[1:]), psi.dtype)
                    padded[: len(columns)] = columns
                    result = np.empty_like(padded)
                    self._apply_batch(result, padded)
                    out[start:] = result[: len(columns)]

    def _apply_batch(self, out: NDArray[Any], psi: NDArray[Any]) -> None:
        call, threads = self.artifact.call, self.threads
        source, target = address(psi), address(out)
        for slab, (gauge, clover) in enumerate(zip(self.packed.slabs, self._clover, strict=True)):
            call("lqcd_pack_spinor", self._in.address, source, slab, threads=threads)
            call(
                "lqcd_apply", self._out.address, self._in.address, gauge.address, clover and clover.address, self._work.address,
                self._scalars, threads=threads,
            )  # fmt: skip
            call("lqcd_unpack_spinor", target, self._out.address, slab, threads=threads)

    def resident(self, psi: Any) -> Callable[[], None]:
        """A call that applies the bare entry point to psi, packed once into buffers of its own: what one application costs a
        solver whose vectors stay packed. For measuring; slabs are applied in turn. Errors: UsageError."""
        array, _ = spinors(psi, self.lattice, self.dtype)
        if len(array) != self.batch:
            raise UsageError("psi: does not fill the batch", expected=self.batch, found=len(array))
        slabs, threads = [], self.threads
        for slab, (gauge, clover) in enumerate(zip(self.packed.slabs, self._clover, strict=True)):
            packed = Buffer(self.artifact.bytes_of(SPINOR_IN))
            self.artifact.call("lqcd_pack_spinor", packed.address, address(array), slab, threads=threads)
            arguments = self._out.address, packed.address, gauge.address, clover and clover.address, self._work.address
            apply = self.artifact.bound("lqcd_apply", *arguments, self._scalars, threads=threads, held=(self, packed))
            slabs.append(apply)
        if len(slabs) == 1:
            return slabs[0]

        def once() -> None:
            for apply in slabs:
                apply()

        return once

    def after_fork(self) -> None:
        """A child process starts with a free lock, whoever held it."""
        self._busy = threading.RLock()

    def with_operator(self, operator: str) -> DiracOperator:
        """Another operator over the same gauge field and inputs, from the same bundle. Errors: NoVariant, UsageError."""
        if self._family is None:
            raise UsageError(f"operator {self.spec.operator}: stands alone", expected="an operator made by a bundle")
        return self._family(operator, self._inputs.for_operator(operator), self)

    def with_inputs(self, **changes: float) -> DiracOperator:
        """The same artifact and packed links with another mass, csw or mu. Errors: UsageError, NoVariant for baked constants."""
        from lqcd_runtime.inputs import Inputs, resolve

        scalars = {k: v for k, v in self._inputs.scalars.items() if not (k == "mass" and "kappa" in changes)}
        checked = resolve(self.spec.operator, **{**scalars, **changes})  # type: ignore[arg-type]
        inputs = Inputs(checked.scalars, self._inputs.phases, self._inputs.xi0, self._inputs.nu)
        if self._family is not None:
            return self._family(self.spec.operator, inputs, self)
        return DiracOperator(self.artifact, self.packed, self.gauge, inputs, self.asked_threads, None)

    @property
    def base(self) -> str:
        """The family's forward operator: wilson for wilson, wilson_dagger and wilson_normal."""
        return self.spec.operator.removesuffix("_dagger").removesuffix("_normal")

    @property
    def dagger(self) -> DiracOperator:
        """M^dag; of M^dag it is M, of M^dag M itself. Errors: NoVariant where the bundle lacks the artifact."""
        if self.spec.operator.endswith("_normal"):
            return self
        return self.with_operator(self.base if self.spec.operator.endswith("_dagger") else f"{self.base}_dagger")

    @property
    def normal(self) -> DiracOperator:
        """M^dag M: the artifact where the bundle has one, else M^dag after M with a `note` that says so."""
        try:
            return self.with_operator(f"{self.base}_normal")
        except NoVariant as miss:
            from lqcd_runtime.composed import ComposedNormal

            return ComposedNormal(self.with_operator(self.base), self.with_operator(f"{self.base}_dagger"), miss)

    def __repr__(self) -> str:
        return f"DiracOperator({self.entry.name}, {', '.join(f'{k}={v}' for k, v in self._inputs.scalars.items())})"


def flops_per_site(operator: str) -> int:
    """By the convention of the field: 1320 per Wilson hop over all sites, 504 per clover term; diagonals are not counted."""
    count = FLOPS_WILSON_HOP + (FLOPS_CLOVER if operator.startswith("clover") else 0)
    return 2 * count if operator.endswith("_normal") else count
