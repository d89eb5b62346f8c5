"""`CompiledOperator`: a compiled operator that is called like its module, with complex torch tensors in host memory.

Owns the gauge field between calls: a copy that is compared byte by byte with what a call passes, so that links changed in place
are seen, and links compiled in are never exchanged silently. The operator follows its module: mass, csw, mu and boundary are read
at every call. Knows no compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lqcd_aot.core import ColorSpinorField, GaugeField
from lqcd_aot.dirac.wilson import link_tensor
from lqcd_runtime.arrays import as_numpy, links_of
from lqcd_runtime.errors import UsageError
from lqcd_runtime.operator_choice import Running, operator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lqcd_aot.neuron.modules import Meaning
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.operator import DiracOperator
    from lqcd_runtime.signature import Spec

TORCH_COMPLEX = {"float32": torch.complex64, "bfloat16": torch.complex64, "float64": torch.complex128}


class CompiledOperator:
    """`D(psi, U)` or, where a gauge field was compiled in, `D(psi)`.

    psi: complex [T,Z,Y,X,4,Nc] or [columns,T,Z,Y,X,4,Nc], any number of columns (fewest calls at multiples of spec.batch),
    complex64 for float32 and bfloat16, complex128 for float64; a ColorSpinorField gives one back. U: complex64 or complex128
    links, rounded to the arithmetic of the artifact.
    module: as compiled; engine: "cpu", "neuron" or "sim"; note: what was chosen for the caller; spec: of the artifact.
    """

    def __init__(
        self, module: Any, read: Callable[[Any], Meaning], spec: Spec, bundle: Bundle, how: Running, note: str, gauge: Any = None
    ) -> None:
        self.module, self.spec, self.note = module, spec, note
        self.engine = str(how.engine)
        self._read, self._bundle, self._how = read, bundle, how
        self._dtype = TORCH_COMPLEX[spec.dtype]
        self._baked = gauge is not None
        self._given: tuple[torch.Tensor, int] | None = None
        self._links: NDArray[Any] | None = None
        self._inputs: Any = None
        self._operator: DiracOperator | None = None
        if gauge is not None:
            tensor = link_tensor(gauge)
            self._links = self._snapshot(tensor)
            self._given = (tensor, tensor._version)
            self._current(self._links)

    def __call__(self, psi: Any, U: torch.Tensor | GaugeField | None = None) -> Any:
        """M psi, a new tensor or field like psi. Errors: UsageError for another shape, dtype or gauge field."""
        if isinstance(psi, ColorSpinorField):
            return ColorSpinorField(self(psi.tensor, U), psi.geom)
        self._require_spinor(psi)
        return torch.from_numpy(self._current(self._links_of_call(U)).apply(psi))

    forward = __call__

    @property
    def operator(self) -> DiracOperator:
        """The runtime's operator over the links of the last call, for `lqcd_runtime.solve`. Errors: UsageError before one."""
        if self._links is None:
            raise UsageError("compiled operator: has no gauge field yet", hint="call it with U, or compile with gauge_field=U")
        return self._current(self._links)

    @property
    def entry(self) -> Entry:
        """The artifact that runs."""
        return self._bundle.select(self.spec, engine=self.engine).choice

    @property
    def num_cores(self) -> int:
        """Cores that share the right-hand sides: NeuronCores, or threads of the CPU engine."""
        return self.operator.threads

    def _links_of_call(self, U: Any) -> NDArray[Any]:
        if U is None:
            return self._own_links()
        tensor = link_tensor(U)
        if self._links is not None and _same(tensor, self._links):
            return self._links
        links = self._snapshot(tensor)
        if self._links is not None and self._baked and not np.array_equal(links.view(np.uint8), self._links.view(np.uint8)):
            raise self._other_gauge("the gauge field of this call is another")
        return links

    def _own_links(self) -> NDArray[Any]:
        if self._links is None or not self._baked:
            raise UsageError("compiled operator: needs a gauge field", expected="D(psi, U)", hint="compile with gauge_field=U")
        assert self._given is not None
        tensor, version = self._given
        if tensor._version != version:
            if not _same(tensor, self._links):
                raise self._other_gauge("the gauge field was changed in place since")
            self._given = (tensor, tensor._version)
        return self._links

    def _other_gauge(self, fact: str) -> UsageError:
        return UsageError(
            f"compiled operator {self.spec.name}: holds the gauge field it was compiled with, and {fact}",
            expected="D(psi) or D(psi, U) with the same links",
            hint="compile again with the new links (the artifact is reused), or without gauge_field and call D(psi, U)",
        )

    def _snapshot(self, links: torch.Tensor) -> NDArray[Any]:
        """A copy of the links in the caller's precision. Errors: UsageError for another shape, lattice or dtype."""
        array = as_numpy(links, "gauge field")
        copy = np.array(links_of(array, "float64" if array.dtype == np.complex128 else "float32", self.spec.lattice))
        copy.flags.writeable = False
        return copy

    def _current(self, links: NDArray[Any]) -> DiracOperator:
        """The operator over these links with what the module holds now; made anew where either has changed."""
        inputs = self._read(self.module).inputs
        facts = inputs.as_dict()
        made = self._operator
        if made is None or links is not self._links or facts != self._inputs:
            made = operator(self._bundle, self.spec, links, inputs, self._how)
            self._operator, self._links, self._inputs = made, links, facts
        return made

    def _require_spinor(self, psi: Any) -> None:
        if not isinstance(psi, torch.Tensor):
            raise UsageError("spinor: is no tensor", expected="a torch.Tensor or ColorSpinorField", found=type(psi).__name__)
        if psi.dtype != self._dtype:
            raise UsageError(
                f"spinor: has dtype {psi.dtype}", expected=f"{self._dtype} for arithmetic in {self.spec.dtype}", found=psi.dtype,
                hint=f".to({self._dtype})",
            )  # fmt: skip
        if psi.requires_grad and torch.is_grad_enabled():
            raise UsageError("compiled operator: has no gradient", found="a spinor that requires one", hint="psi.detach()")

    def __repr__(self) -> str:
        return f"CompiledOperator({self.spec.name}, engine {self.engine})"


def _same(tensor: Any, links: NDArray[Any]) -> bool:
    """Whether the bytes of a tensor are those of the copy: one pass over both, no digest, NaN equal to itself."""
    array = as_numpy(tensor, "gauge field")
    if array.shape != links.shape or array.dtype != links.dtype:
        return False
    return bool(np.array_equal(np.ascontiguousarray(array).view(np.uint64), links.view(np.uint64)))
