"""From a variant to the program that a compiler turns into an artifact.

Owns: `Program` (C++: source files, constants, entry file), `HloProgram` (canonical HLO and its binding), `program_for(spec,
target)`, which chooses by the target, and `refusal`. Refuses to know: compilers, stores, recipes. What a program cannot express
is refused here, with the reason, before any compiler is called. Both kinds have a `digest`, which is all that keys ask of a
program.

    model.py         Program and its digest
    cpu/variant.py   which entry file and constants a spec needs; what is refused
    cpu/sources.py   the files an entry file reaches by #include
    cpu/templates/   the C++ templates; README.md there is their map
    hlo/             programs for Neuron targets and the simulator; its docstring is their map
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lqcd_aot.program.model import Program

if TYPE_CHECKING:
    from lqcd_aot.program.hlo.model import HloProgram
    from lqcd_runtime.errors import UsageError
    from lqcd_runtime.signature import Spec

__all__ = ["HloProgram", "Program", "program_for", "refusal"]


def program_for(spec: Spec, target: str) -> Any:
    """The program of a spec on a target: a `Program` for a CPU, an `HloProgram` for a Neuron target or the simulator.

    Neither torch nor protobuf is loaded for a CPU target, nor for an HLO program that was lowered before (hlo/cache.py).
    Errors: UsageError with the reason where no program can express the spec on that target.
    """
    from lqcd_runtime.target import NEURON_TARGETS, SIM_TARGET

    if target in NEURON_TARGETS or target == SIM_TARGET:
        from lqcd_aot.program.hlo.variant import program_for as hlo_program_for

        return hlo_program_for(spec, target)
    from lqcd_aot.program.cpu.variant import program_for as cpu_program_for

    return cpu_program_for(spec, target)


def refusal(spec: Spec, target: str) -> UsageError | None:
    """None where `program_for` gives a program, else the error it raises; makes none."""
    from lqcd_runtime.target import NEURON_TARGETS, SIM_TARGET

    if target in NEURON_TARGETS or target == SIM_TARGET:
        from lqcd_aot.program.hlo.variant import refuse as hlo_refuse

        return hlo_refuse(spec, target)
    from lqcd_aot.program.cpu.variant import refuse as cpu_refuse

    return cpu_refuse(spec, target)


def __getattr__(name: str) -> Any:
    if name == "HloProgram":
        from lqcd_aot.program.hlo.model import HloProgram

        return HloProgram
    raise AttributeError(name)
