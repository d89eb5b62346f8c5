"""Fused or not, and how many slabs of T: what `fused`, `sram_threshold_bytes`, `allow_fused_fallback` and a lattice lead to.

Owns the rules and their sentences; the numbers are lqcd_aot.program.hlo's estimates of what a program takes of a NeuronCore:
guesses, which say so. On a CPU nothing has to fit.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from lqcd_runtime.errors import CompileError, UsageError
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import CPU_TARGETS

Fused = bool | Literal["auto"]
# The share of SBUF that lqcd-neuron found the fused operator may take before it becomes the slower one.
SBUF_SHARE = 0.6


class SpillError(CompileError, RuntimeError):
    """The fused operator would not fit and `allow_fused_fallback` is False; also a RuntimeError, as in lqcd-neuron."""


class Decision(NamedTuple):
    """spec: with fused and shards decided; lines: one sentence for each decision that was not simply the caller's."""

    spec: Spec
    lines: tuple[str, ...]


class Limits(NamedTuple):
    """sram_threshold_bytes: the most the largest instruction may hold (None: 60% of the core's SBUF); allow_fused_fallback:
    whether an operator that passes a limit may be unfused."""

    sram_threshold_bytes: int | None = None
    allow_fused_fallback: bool = True


def decide(spec: Spec, target: str, fused: Fused, shards: int | None, limits: Limits) -> Decision:
    """spec with the fused and shards that will be compiled. shards: None for as few slabs as fit.

    Errors: UsageError for what cannot be expressed; SpillError.
    """
    if fused not in (True, False, "auto"):
        raise UsageError(f"fused {fused!r}: is not understood", expected='True, False or "auto"', found=repr(fused))
    if target in CPU_TARGETS:
        return _cpu(spec, fused, shards)
    decided, lines = _fused(spec.replace(shards=shards or 1), target, fused, limits)
    if shards is None:
        decided, more = _slabs(decided, target)
        lines += more
    return Decision(decided, lines)


def _cpu(spec: Spec, fused: Fused, shards: int | None) -> Decision:
    lines = ("fused = false: blocks pay on a matrix engine, not on a CPU",) if fused == "auto" else ()
    return Decision(spec.replace(fused=fused is True, shards=shards or 1), lines)


def _fused(spec: Spec, target: str, fused: Fused, limits: Limits) -> tuple[Spec, tuple[str, ...]]:
    from lqcd_aot.program.hlo.choose import of
    from lqcd_aot.program.hlo.variant import FUSED

    if fused is False:
        return spec, ()
    if spec.operator not in FUSED and fused == "auto":
        return spec, (f"fused = false: {spec.operator} has no fused blocks",)
    with_blocks = spec.replace(fused=True)
    guess = of(with_blocks, target)  # refuses True for an operator without blocks
    excesses = [*guess.excesses, *_spill(guess.sbuf_bytes, target, limits)]
    if not excesses:
        return with_blocks, ("fused = true: fits (estimate)",) if fused == "auto" else ()
    why = "; ".join(excesses)
    if not limits.allow_fused_fallback:
        raise SpillError(
            f"{with_blocks.name}: does not fit (estimate)", failure_class="deterministic", found=why,
            hint="allow_fused_fallback=True, fused=False, or a larger sram_threshold_bytes",
        )  # fmt: skip
    return spec, (f"fused = false: fused would take {why} (estimate)",)


def _spill(sbuf_bytes: int, target: str, limits: Limits) -> list[str]:
    from lqcd_aot.program.hlo.estimate import CORES

    threshold = limits.sram_threshold_bytes
    if threshold is None:
        threshold = int(SBUF_SHARE * CORES[target].sbuf)
    return [f"{sbuf_bytes:,} bytes of SBUF at once, above {threshold:,}"] if sbuf_bytes > threshold else []


def _slabs(spec: Spec, target: str) -> tuple[Spec, tuple[str, ...]]:
    from lqcd_aot.program.hlo.choose import choose_shards

    choice = choose_shards(spec, target)
    return choice.spec, (choice.line,) if choice.value != 1 or choice.estimate.excesses else ()
