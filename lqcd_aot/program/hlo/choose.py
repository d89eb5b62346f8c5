"""What fused = "auto" and shards = "auto" mean on a Neuron target, by estimates; with the sentence that says so.

Owns the two rules. They choose what is planned; a plan with explicit values is never changed by them.
"""

from __future__ import annotations

from typing import NamedTuple

from lqcd_aot.program.hlo.estimate import Estimate
from lqcd_aot.program.hlo.estimates import remembered
from lqcd_aot.program.hlo.variant import FUSED, lowered, refuse
from lqcd_runtime.signature import Spec


class Choice(NamedTuple):
    """value: of the axis; spec: with that value; line: what was chosen and why; estimate: of the chosen program."""

    value: bool | int
    spec: Spec
    line: str
    estimate: Estimate


def choose_fused(spec: Spec, target: str) -> Choice:
    """Fused where the operator has blocks and the estimate passes no limit, else unfused.

    Errors: UsageError where neither can be expressed.
    """
    plain = spec.replace(fused=False)
    if spec.operator not in FUSED:
        return Choice(False, plain, f"fused = false for {plain.name}: it has no fused blocks", of(plain, target))
    fused = spec.replace(fused=True)
    with_blocks, without = of(fused, target), of(plain, target)
    if not with_blocks.excesses:
        times = f"{with_blocks.seconds * 1e3:.2f} ms a call against {without.seconds * 1e3:.2f} ms unfused"
        return Choice(True, fused, f"fused = true for {plain.name}: fits, {times} (estimate)", with_blocks)
    why = "; ".join(with_blocks.excesses)
    return Choice(False, plain, f"fused = false for {plain.name}: fused would take {why} (estimate)", without)


def choose_shards(spec: Spec, target: str) -> Choice:
    """The fewest slabs of T whose program passes no limit; the most there are where none fits, which the line says.

    Errors: UsageError where the operator cannot be expressed at all.
    """
    last: Choice | None = None
    why = ""
    for shards in (n for n in range(1, spec.lattice[0] + 1) if spec.lattice[0] % n == 0):
        candidate = spec.replace(shards=shards)
        if shards > 1 and refuse(candidate, target) is not None:
            break
        guess = of(candidate, target)
        if not guess.excesses:
            reason = f"{last.value if last else 1} would take {why}" if last else "the whole lattice fits"
            return Choice(shards, candidate, f"shards = {shards} for {spec.name}: {reason} (estimate)", guess)
        why = "; ".join(guess.excesses)
        last = Choice(shards, candidate, f"shards = {shards} for {spec.name}: nothing fits; it takes {why} (estimate)", guess)
    assert last is not None
    return last


def of(spec: Spec, target: str) -> Estimate:
    """The estimate of a spec's program. Errors: UsageError where it cannot be expressed."""
    refusal = refuse(spec, target)
    if refusal is not None:
        raise refusal
    return remembered(lowered(spec), target)
