"""Progress of a build as a stream of events. Owns the events and the estimate; draws nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Literal, NamedTuple

Kind = Literal["reused", "blocked", "started", "compiled", "verified", "published", "waiting", "shared", "retrying", "failed"]
# After these a variant is done.
FINAL = frozenset({"reused", "blocked", "published", "shared", "failed"})


class Event(NamedTuple):
    """Something happened to one variant.

    kind: reused (was in the store), blocked (the plan said so), started, compiled, verified (its witness agrees, or why it was
    not asked), published, waiting (another process builds it), shared (that process did), retrying, failed. done, total: variants
    finished and of the whole build. eta: seconds to the end, None while unknown. detail: one sentence or "".
    """

    kind: Kind
    name: str
    done: int
    total: int
    eta: float | None
    detail: str

    def as_dict(self) -> dict[str, Any]:
        """For --json lines."""
        return {**self._asdict(), "eta": None if self.eta is None else round(self.eta, 1)}


Observer = Callable[[Event], None]


class Progress:
    """Counts, estimates, and tells the observer, from any thread, one event at a time.

    estimates: {variant name: seconds one compile took in earlier builds, or None}. The median of this build is better, if known.
    """

    def __init__(
        self,
        total: int,
        jobs: int,
        estimates: dict[str, float | None],
        observer: Observer | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._jobs, self._observer, self._clock = total, jobs, observer, clock
        self._left = dict(estimates)
        self._since: dict[str, float] = {}
        self._spent: list[float] = []
        self._done = 0
        self._lock = threading.Lock()

    def tell(self, kind: Kind, name: str, detail: str = "") -> None:
        """Something happened to the variant `name`."""
        with self._lock:
            now = self._clock()
            if kind == "started":
                self._since[name] = now
            if kind in FINAL:
                self._done += 1
                self._left.pop(name, None)
                since = self._since.pop(name, None)
                if since is not None and kind == "published":
                    self._spent.append(now - since)
            if self._observer is not None:
                self._observer(Event(kind, name, self._done, self._total, self._eta(), detail))

    def _eta(self) -> float | None:
        if not self._left:
            return 0.0
        known = self._spent or [seconds for seconds in self._left.values() if seconds is not None]
        if not known:
            return None
        typical = median(known)  # the first compiles also fill the compiler's own cache
        left = sum(typical if seconds is None or self._spent else seconds for seconds in self._left.values())
        return left / min(self._jobs, len(self._left))
