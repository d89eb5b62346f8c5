"""What "auto" stands for on the axes fused and shards, for one point and one target, and the line that says so.

    Neuron targets and sim   the chooser of lqcd_aot.program.hlo: what fits by its estimates, which are guesses
    CPUs                     unfused (blocks pay on a matrix engine) and the whole lattice (nothing has to fit)

Owns the order of the two choices: with both left open, fused where some number of slabs of it fits. Knows no compiler.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lqcd_aot.recipe.values import AUTO
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import CPU_TARGETS


class Resolved(NamedTuple):
    """fused, shards: values; line: why, or None where nothing was left open."""

    fused: bool
    shards: int
    line: str | None


def resolve(fused: Any, shards: Any, target: str, shape: dict[str, Any]) -> Resolved:
    """The values of a point. fused, shards: values or "auto"; shape: the other arguments of its Spec."""
    if AUTO not in (fused, shards):
        return Resolved(fused, shards, None)
    plain = False if fused == AUTO else fused, 1 if shards == AUTO else shards
    if target in CPU_TARGETS:
        return Resolved(*plain, f'"auto" on {target}: fused = {str(plain[0]).lower()}, shards = {plain[1]}')
    try:
        spec = Spec(**shape, fused=plain[0], shards=plain[1])
        return _chosen(spec, target, fused == AUTO, shards == AUTO)
    except UsageError:
        return Resolved(*plain, None)  # the plan refuses this point, with the rule that leaves it out


def _chosen(spec: Spec, target: str, open_fused: bool, open_shards: bool) -> Resolved:
    from lqcd_aot.program.hlo.choose import choose_fused, choose_shards

    if not open_shards:
        choice = choose_fused(spec, target)
        return Resolved(bool(choice.value), spec.shards, f"{target}: {choice.line}")
    if not open_fused:
        choice = choose_shards(spec, target)
        return Resolved(spec.fused, int(choice.value), f"{target}: {choice.line}")
    first = choose_fused(spec, target)
    slabs = choose_shards(first.spec, target)
    if not first.value and "no fused blocks" not in first.line:
        cut = choose_shards(spec.replace(fused=True), target)
        if not cut.estimate.excesses:
            return Resolved(True, int(cut.value), f"{target}: {cut.line}")
    return Resolved(bool(first.value), int(slabs.value), f"{target}: {first.line}; {slabs.line}")
