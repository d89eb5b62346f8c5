"""Observables and gauge maps: loaded artifacts that read a gauge field and answer numbers or links.

Owns workspace and calling. What the numbers mean is in `signature.OPERATORS` and in the artifact. One call at a time each.
"""

from __future__ import annotations

import threading

import numpy as np

from lqcd_runtime.arrays import address, links_of
from lqcd_runtime.engines.cpu import WORKSPACE, CpuArtifact, default_threads, doubles
from lqcd_runtime.engines.forks import watch
from lqcd_runtime.engines.memory import Buffer
from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import volume
from lqcd_runtime.scalars import real
from lqcd_runtime.scalars import threads as checked_threads
from lqcd_runtime.signature import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray


class _GaugeCall:
    def __init__(self, artifact: CpuArtifact, threads: int | None = None) -> None:
        self.artifact = artifact
        self.entry, self.spec = artifact.entry, artifact.entry.spec
        self.threads = checked_threads(threads) or default_threads(volume(self.spec.lattice))
        self._work = Buffer(artifact.bytes_of(WORKSPACE))
        self._busy = threading.RLock()
        watch(self)

    def after_fork(self) -> None:
        """A child process starts with a free lock, whoever held it."""
        self._busy = threading.RLock()

    def _scalars(self, given: dict[str, float]) -> Any:
        """The 8 doubles of the entry point, in the order of the operator's inputs. Errors: UsageError."""
        names = OPERATORS[self.spec.operator]["inputs"]
        if sorted(given) != sorted(names):
            raise UsageError(
                f"operator {self.spec.operator}: was given other inputs", expected=", ".join(names) or "none",
                found=", ".join(sorted(given)) or "none",
            )  # fmt: skip
        return doubles([*(real(given[n], n) for n in names), *[0.0] * (8 - len(names))])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.entry.name})"


class Observable(_GaugeCall):
    """`observable(gauge, **inputs)` -> {result name: float}, names as in OPERATORS; gauge observables see no boundary phase."""

    def __call__(self, gauge: Any, **inputs: float) -> dict[str, float]:
        """Measure. gauge: Gauge or complex [T,Z,Y,X,4,3,3], rounded to the artifact's dtype. Errors: UsageError."""
        scalars, names = self._scalars(inputs), OPERATORS[self.spec.operator]["results"]
        links = links_of(gauge, self.spec.dtype, self.spec.lattice)
        results = doubles([0.0] * len(names))
        with self._busy:
            self.artifact.call("lqcd_observe", results, address(links), scalars, self._work.address, threads=self.threads)
        return dict(zip(names, results, strict=True))


class GaugeMap(_GaugeCall):
    """`gauge_map(gauge, **inputs)` -> new links, complex<dtype> [T,Z,Y,X,4,3,3]."""

    def __call__(self, gauge: Any, **inputs: float) -> NDArray[Any]:
        """Map. gauge as for Observable; the caller's links are not changed. Errors: UsageError."""
        scalars = self._scalars(inputs)
        links = links_of(gauge, self.spec.dtype, self.spec.lattice)
        out = np.empty_like(links)
        with self._busy:
            self.artifact.call("lqcd_map", address(out), address(links), scalars, self._work.address, threads=self.threads)
        return out
