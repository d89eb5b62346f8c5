"""What a variant will take of a NeuronCore, for `plan`: an estimate, labelled as one, which stops nothing.

Owns the choice of items and the words. The numbers are lqcd_aot.program.hlo.estimate's. A variant without a compiler here has its
program too, so planning for a machine one does not have needs none of its software.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lqcd_runtime.errors import UsageError
from lqcd_runtime.target import CPU_TARGETS

if TYPE_CHECKING:
    from lqcd_aot.build.plan import PlanItem
    from lqcd_aot.program.hlo.estimate import Estimate


def device_estimate(item: PlanItem) -> Estimate | None:
    """The estimate of a Neuron or simulated variant; None for a CPU target and for what no program expresses."""
    if item.variant.target in CPU_TARGETS:
        return None
    from lqcd_aot.program import program_for

    try:
        program: Any = item.program or program_for(item.variant.spec, item.variant.target)
    except UsageError:
        return None
    found: Estimate = program.estimate(item.variant.target)
    return found


def lines(estimate: Estimate) -> list[str]:
    """For people: the numbers, then one line per limit that they pass."""
    return [estimate.line, *(f"would take {excess}; it is compiled all the same" for excess in estimate.excesses)]


def as_json(estimate: Estimate | None) -> dict[str, Any] | None:
    """For `plan --json`."""
    if estimate is None:
        return None
    from dataclasses import asdict

    return {"kind": "estimate, uncalibrated", **asdict(estimate), "excesses": list(estimate.excesses)}
