"""Gauge observables of an HLO program: packed links in, partial sums out, added up here in double precision.

The interface of gauge_calls.Observable. Run on the simulator; never on a NeuronCore.
"""

from __future__ import annotations

from lqcd_runtime.arrays import links_of
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import OPERATORS
from lqcd_runtime.split_layout import finish, pack_links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.engines.neff_artifact import NeffArtifact


class NeffObservable:
    """`observable(gauge, **inputs)` -> {result name: float}, names as in OPERATORS."""

    def __init__(self, artifact: NeffArtifact) -> None:
        self.artifact, self.entry, self.spec = artifact, artifact.entry, artifact.entry.spec
        self.engine: str = artifact.engine.name

    def __call__(self, gauge: Any, **inputs: float) -> dict[str, float]:
        """Measure. gauge: Gauge or complex [T,Z,Y,X,4,3,3]. Errors: UsageError; those of the engine."""
        names = OPERATORS[self.spec.operator]["inputs"]
        if sorted(inputs) != sorted(names):
            raise UsageError(
                f"operator {self.spec.operator}: was given other inputs", expected=", ".join(names) or "none",
                found=", ".join(sorted(inputs)) or "none",
            )  # fmt: skip
        links = links_of(gauge, "float64", self.spec.lattice)
        return finish(self.spec, self.artifact.run(pack_links(self.spec, links)), inputs)

    def __repr__(self) -> str:
        return f"NeffObservable({self.entry.name}, engine {self.engine})"
