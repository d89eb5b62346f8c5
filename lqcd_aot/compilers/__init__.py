"""Compilers: a program becomes the bytes of an artifact.

    base.py         the Toolchain protocol, common C++ flags, the private work folder of a compile
    process.py      the one place where a compiler is executed, watched and killed
    failure.py      classes of failure and the error text
    facts.py        remembered digests and versions of compiler files
    zig.py cc.py    CPU targets: the pinned zig; clang++ or g++ by path
    neuronx.py      Neuron targets: AWS's neuronx-cc; neuronx_flags.py its options, neuronx_errors.py its error codes
    sim.py          the target sim: the double of neuronx-cc in lqcd_aot.doubles
    dispatch.py     one toolchain per class of targets behind the protocol of one
    fake.py         a deterministic stand-in for tests

A toolchain knows nothing of recipes, keys or stores.
"""

from __future__ import annotations

from lqcd_aot.compilers.base import Toolchain as Toolchain
from lqcd_aot.compilers.cc import find_cc
from lqcd_aot.compilers.dispatch import Absent, Toolchains
from lqcd_aot.compilers.fake import FakeToolchain as FakeToolchain
from lqcd_aot.compilers.neuronx import find_neuronx
from lqcd_aot.compilers.process import interrupt_all as interrupt_all
from lqcd_aot.compilers.sim import SimToolchain
from lqcd_aot.compilers.zig import find_zig
from lqcd_runtime.errors import CompileError

__all__ = ["SIM", "FakeToolchain", "Toolchain", "Toolchains", "find_toolchain", "interrupt_all"]

# In the place of a path to neuronx-cc: the double, which builds the target sim only.
SIM = "sim"


def find_toolchain(cc: str | None = None, neuron: str | None = None, optlevel: int = 2) -> Toolchains:
    """The toolchains of this machine. Compiles nothing and starts nothing.

    cc: path of a C++ compiler in place of the pinned zig; neuron: path of a neuronx-cc in place of the one on PATH, or "sim";
    optlevel: of neuronx-cc.
    Errors: CompileError with a hint for a compiler that was named and is absent, and where there is none for any machine.
    """
    cpu = find_zig() if cc is None else find_cc(cc)
    only_sim = Absent("--compiler sim builds only the target sim", "leave it out")
    aws: Toolchain = only_sim if neuron == SIM else find_neuronx(neuron, optlevel)
    if cpu is None and isinstance(aws, Absent):
        raise CompileError(
            "compiler zig: is not installed",
            expected="the `ziglang` wheel, or a compiler given by path",
            found="no module ziglang",
            hint="pip install ziglang, or --cc /usr/bin/g++",
        )
    return Toolchains(cpu or Absent("compiler zig is not installed", "pip install ziglang"), aws, SimToolchain(optlevel))
