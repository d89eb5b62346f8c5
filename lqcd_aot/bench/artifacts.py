"""The artifacts of a benchmark: what the rows need, for the best target of this machine or for a lower one that is named.

Owns the list of specs behind a row (builders of fused ones, operators behind a solve) and the bundle that acts as a lesser
machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lqcd_aot.measure.ensure import Origin, build_for
from lqcd_runtime.bundle import Bundle, open_bundle
from lqcd_runtime.errors import UsageError
from lqcd_runtime.manifest import Entry, entry_dict
from lqcd_runtime.select import select
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.target import CPU_TARGETS, Host, this_host

if TYPE_CHECKING:
    from lqcd_runtime.select import Selection


class AsMachine(Bundle):
    """A bundle that selects for another host, such as this machine without its widest vectors, and exactly the builds given.

    builds: {spec: build key} of what today's templates and compiler make, since a store may name an older build of the same spec
    first; None: what the bundle names.
    """

    def __init__(self, opened: Bundle, host: Host, builds: Mapping[Spec, str] | None) -> None:
        super().__init__(opened.source)
        self.host, self.builds = host, builds

    def find(self, spec: Spec) -> list[Entry]:
        if self.builds is None:
            return super().find(spec)
        if spec not in self.builds:
            return []
        key = self.builds[spec]
        return [Entry.from_dict(entry_dict(self.record(key)), f"record {key[:12]}")]

    def select(self, spec: Spec, host: Host | None = None, engine: str | None = None) -> Selection:
        return select(spec, self.find(spec), host or self.host, engine=engine, where="this benchmark")


def host_for(target: str | None) -> Host:
    """This machine, or what a machine of exactly this CPU level would be. Errors: UsageError for a target it cannot execute."""
    here = this_host()
    if target is None:
        return here
    reason = here.refusal(target) if target in CPU_TARGETS else "is no CPU target"
    if reason is not None:
        raise UsageError(f"--target {target}: {reason}", expected=here.best_target(), found=target)
    return Host(here.architecture, CPU_TARGETS[target][2])


@contextlib.contextmanager
def artifacts(specs: Sequence[Spec], origin: Origin, host: Host, say: Callable[[str], None]) -> Iterator[Bundle]:
    """An open bundle with what the specs need on a host, building what is missing. Errors: StoreError, CompileError."""
    target = host.best_target()
    wanted = [*needed(specs)]
    keys = build_for(wanted, target, origin, say) if target else None
    with open_bundle(str(origin.store)) as opened:
        yield AsMachine(opened, host, None if keys is None else dict(zip(wanted, keys, strict=True)))


def needed(specs: Sequence[Spec]) -> dict[Spec, Any]:
    """The specs (as keys, in order) with the builders of fused ones and the double-precision operators of solves."""
    out: dict[Spec, Any] = {}
    for spec in specs:
        if spec.fused:
            out[Spec("wilson_blocks", spec.lattice, spec.dtype, storage=spec.storage, shards=spec.shards)] = None
        if spec.kind == "solver":
            out[solved(spec)] = None
        out[spec] = None
    return out


def solved(spec: Spec) -> Spec:
    """The operator M whose equation a solver's artifact is used for: in double precision, on all sites."""
    family = OPERATORS[spec.operator]["solves"].removesuffix("_schur")
    return Spec(family, spec.lattice, "float64", batch=spec.batch)
