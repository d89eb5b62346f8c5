"""Engines: each loads one kind of machine code and calls it. The engine is chosen by the entry's target, never by a guess.

cpu.py            shared objects through ctypes: `load`, `CpuArtifact`
library.py        bytes -> dlopen handle without leaving anything on disk
memory.py         aligned buffers
neuron.py         NEFFs on NeuronCores through libnrt; nrtpy_backend.py the same through nrtpy
nrt.py            a session of libnrt and its handles; nrt_library.py its functions; nrt_status.py its status codes
neuron_floor.py   why a NEFF cannot run here
sim.py            the same programs through jaxlib, for tests
neff_artifact.py  a NEFF or NEFF-SIM on the cores of its engine: `NeffArtifact`, `Resident`, `State`
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lqcd_runtime.engines.cpu import CpuArtifact
    from lqcd_runtime.engines.neff_artifact import NeffArtifact
    from lqcd_runtime.manifest import Entry


def load(code: bytes, entry: Entry) -> CpuArtifact | NeffArtifact:
    """Machine code on the engine of its entry's target. Errors: EngineError, CorruptError, TooNewError."""
    from lqcd_runtime.target import engine_of

    engine = engine_of(entry.target)
    if engine == "cpu":
        from lqcd_runtime.engines import cpu

        return cpu.load(code, entry)
    from lqcd_runtime.engines.neff_artifact import NeffArtifact

    if engine == "sim":
        from lqcd_runtime.engines.sim import this_simulator

        return NeffArtifact(this_simulator(), code, entry)
    from lqcd_runtime.engines.neuron import this_engine

    return NeffArtifact(this_engine(), code, entry)
