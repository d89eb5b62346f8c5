"""A recipe's Neuron targets built by the double of their compiler: the same specs and programs for the target `sim`.

Owns the exchange of targets and the line that says so. `sim` is another target in every key, so nothing built this way can be
taken for a Neuron artifact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lqcd_aot.recipe.variant import Variant
from lqcd_runtime.target import NEURON_TARGETS, SIM_TARGET


def simulated(variants: Iterable[Variant], say: Callable[[str], None]) -> list[Variant]:
    """The variants with `sim` in the place of Neuron targets, each once, in order. say: takes the one line on it."""
    replaced: dict[str, None] = {}
    out: dict[tuple[object, ...], Variant] = {}
    for variant in variants:
        if variant.target in NEURON_TARGETS:
            replaced[variant.target] = None
            variant = variant._replace(target=SIM_TARGET)
        out.setdefault((variant.spec, variant.target, variant.salt), variant)
    if replaced:
        say(f"--compiler sim: the target sim stands in the place of {', '.join(replaced)}; nothing of it runs on a NeuronCore")
    return list(out.values())
