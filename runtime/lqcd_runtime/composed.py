"""M^dag M as two applications, for a bundle without the `_normal` artifact. Says so in `note`; the numbers are the same."""

from __future__ import annotations

from lqcd_runtime.engines.forks import watch
from lqcd_runtime.operator import DiracOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.errors import NoVariant


class ComposedNormal(DiracOperator):
    """`dagger.apply(forward.apply(psi))`. spec and entry are the forward operator's."""

    def __init__(self, forward: DiracOperator, dagger: DiracOperator, miss: NoVariant) -> None:
        # No buffers of its own: everything is asked of the two.
        self.__dict__.update(forward.__dict__)
        self._forward, self._dagger = forward, dagger
        watch(self)
        self.note = f"{miss.fact}: M^dag M is applied as {dagger.entry.name} after {forward.entry.name}"

    @property
    def flops(self) -> int:
        return self._forward.flops + self._dagger.flops

    def _run(self, out: NDArray[Any], psi: NDArray[Any]) -> None:
        self._dagger.apply_into(out, self._forward.apply(psi))

    def with_inputs(self, **changes: float) -> DiracOperator:
        """M^dag M at other inputs."""
        return self._forward.with_inputs(**changes).normal

    @property
    def dagger(self) -> DiracOperator:
        return self

    def __repr__(self) -> str:
        return f"ComposedNormal({self._forward!r}, {self._dagger!r})"
