"""What one machine can use: of each spec the artifact that selection would take there, and nothing else.

Owns the choice for slim and partial pull. It is lqcd_runtime.select's order (best target the host can execute), asked without
a bundle.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.signature import suggest
from lqcd_runtime.target import CPU_TARGETS, TARGETS, Host, this_host

if TYPE_CHECKING:
    from lqcd_runtime.manifest import Entry

T = TypeVar("T")


class Machine:
    """Who will run the artifacts: this host, or any machine of a named target."""

    def __init__(self, target: str | None = None) -> None:
        """target: None for this host. Errors: UsageError for a target that does not exist."""
        if target is not None and target not in TARGETS:
            raise UsageError(f"target {target!r}: is not known{suggest(target, TARGETS)}", expected=", ".join(TARGETS))
        self._only = target if target not in CPU_TARGETS else None
        self._host = this_host() if target is None else None
        if target in CPU_TARGETS:
            architecture, _, features = CPU_TARGETS[target]
            self._host = Host(architecture, features)
        self.name = target or (self._host.best_target() if self._host else None) or "this machine"

    def runs(self, target: str) -> bool:
        """Whether it executes machine code of a target."""
        if self._only is not None:
            return target == self._only
        return self._host is not None and self._host.refusal(target) is None

    def executes(self, entry: Entry) -> bool:
        """Whether it executes an artifact: as `runs`, and as selection decides where the machine is known."""
        if self._only is not None:
            return entry.target == self._only
        return self._host is not None and self._host.refusal_of(entry) is None

    def best(self, candidates: Iterable[tuple[str, str, T]]) -> list[T]:
        """Of (spec key, target, thing) the things it would use: one per spec, of the best target.

        A fused operator and the builder of its blocks must be of one target; they are, where a recipe built both for the same
        targets, as the best one is then the same. Errors: NoVariant where it can use nothing.
        """
        chosen: dict[str, tuple[tuple[int, int], str, T]] = {}
        seen = set()
        preference = {target: self._host.preference(target) if self._host else (0, 0) for target in TARGETS}
        for spec_key, target, thing in candidates:
            seen.add(target)
            if self.runs(target) and (spec_key not in chosen or (preference[target], target) > chosen[spec_key][:2]):
                chosen[spec_key] = (preference[target], target, thing)
        if not chosen:
            raise NoVariant(
                f"nothing here runs on {self.name}",
                expected=f"a target that {self.name} can execute",
                found=", ".join(sorted(seen)) or "no artifacts",
                hint="--target NAME chooses another machine",
            )
        return [chosen[key][2] for key in sorted(chosen)]
