"""`CompiledObservable`: a compiled gauge observable that is called like the function of lqcd_aot.observables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import lqcd_aot.observables as torch_observables
from lqcd_aot.dirac.wilson import link_tensor
from lqcd_runtime.errors import UsageError
from lqcd_runtime.observables.observe import OBSERVABLES, observe
from lqcd_runtime.signature import suggest

if TYPE_CHECKING:
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.signature import Spec


def observable_word(what: str | Callable[..., Any]) -> str:
    """The word of OBSERVABLES for a word or one of the functions of lqcd_aot.observables. Errors: UsageError."""
    word = what if isinstance(what, str) else getattr(what, "__name__", "")
    known = word in OBSERVABLES and (isinstance(what, str) or getattr(torch_observables, word, None) is what)
    if not known:
        raise UsageError(
            f"observable {word or what!r}: has no artifact{suggest(word, OBSERVABLES)}",
            expected=", ".join(OBSERVABLES) + ", or the function of that name in lqcd_aot.observables",
        )
    return word


class CompiledObservable:
    """`P(U)`; wilson_action takes beta=. A float, a complex number (polyakov_loop) or a dict by plane or direction.

    U: GaugeField or complex [T,Z,Y,X,4,Nc,Nc], rounded to the artifact's arithmetic. engine, note, spec: as CompiledOperator.
    """

    def __init__(self, word: str, spec: Spec, bundle: Bundle, engine: str, note: str) -> None:
        self.word, self.spec, self.engine, self.note = word, spec, engine, note
        self._loaded = bundle.observable(spec.operator, spec.lattice, spec.dtype, engine=engine)

    def __call__(self, U: Any, *, beta: float | None = None) -> Any:
        """Measure. Errors: UsageError for another lattice, or a missing or idle beta."""
        return observe(self, _Links(U), self.word, beta=beta, dtype=self.spec.dtype, engine=self.engine)

    def observable(self, name: str, lattice: Any, dtype: str, **_: Any) -> Any:
        """What `observe` asks of a bundle: the artifact that is loaded already. Errors: UsageError for another lattice."""
        if tuple(lattice) != self.spec.lattice:
            raise UsageError("gauge field: has other extents", expected=list(self.spec.lattice), found=list(lattice))
        return self._loaded

    def __repr__(self) -> str:
        return f"CompiledObservable({self.spec.name}, engine {self.engine})"


class _Links:
    """Links of a field or tensor, under the name the runtime looks for."""

    def __init__(self, U: Any) -> None:
        from lqcd_runtime.arrays import as_numpy

        self.links = as_numpy(link_tensor(U), "gauge field")
