"""Who compiles for a NeuronCompiler: this machine's toolchains, or torch_neuronx.trace for the targets of NeuronCores.

Owns the words of the routes. Looks for compilers without running one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lqcd_aot.settings import default_compiler, default_neuron_compiler
from lqcd_runtime.errors import CompileError, UsageError

if TYPE_CHECKING:
    from lqcd_aot.compilers import Toolchain

NEURONX_CC, TRACE = "neuronx-cc", "torch_neuronx.trace"
ROUTES = (NEURONX_CC, TRACE)


def toolchain(engine: str, route: str, optlevel: int, cc: str | None, neuron_cc: str | None) -> Toolchain | None:
    """The toolchain; None where there is none at all, so that only what the store has can be used.

    Errors: UsageError for an unknown route or optlevel, or a route that does not end at the engine; CompileError for a compiler
    that was named and is absent.
    """
    from lqcd_aot.compilers import find_toolchain

    if route not in ROUTES:
        raise UsageError(f"route {route!r}: is not known", expected=", ".join(ROUTES), found=repr(route))
    if optlevel not in (1, 2, 3):
        raise UsageError(f"optlevel {optlevel!r}: is not known", expected="1, 2 or 3", found=repr(optlevel))
    if route == TRACE:
        if engine != "neuron":
            raise UsageError(f"route {TRACE}: makes artifacts for NeuronCores only", expected="engine neuron", found=engine)
        from lqcd_aot.neuron.torch_trace import TraceToolchain

        return TraceToolchain(optlevel)
    cc, neuron_cc = cc or default_compiler(), neuron_cc or default_neuron_compiler()
    try:
        return find_toolchain(cc, neuron_cc, optlevel)
    except CompileError:
        if cc or neuron_cc:
            raise
        return None


def programs(route: str) -> Callable[[Any, str], Any] | None:
    """The programs of a route; None for this project's own."""
    if route != TRACE:
        return None
    from lqcd_aot.neuron.torch_trace import trace_program

    return trace_program
