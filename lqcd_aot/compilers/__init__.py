"""Compilers: a program becomes the bytes of a shared library.

    base.py         the Toolchain protocol, common flags, the private work folder of a compile
    process.py      the one place where a compiler is executed, watched and killed
    failure.py      classes of failure and the error text
    facts.py        remembered digests and versions of compiler files
    zig.py cc.py    the pinned zig; clang++ or g++ by path
    fake.py         a deterministic stand-in for tests

A toolchain knows nothing of recipes, keys or stores.
"""

from __future__ import annotations

from lqcd_aot.compilers.base import Toolchain as Toolchain
from lqcd_aot.compilers.cc import find_cc
from lqcd_aot.compilers.fake import FakeToolchain as FakeToolchain
from lqcd_aot.compilers.process import interrupt_all as interrupt_all
from lqcd_aot.compilers.zig import find_zig
from lqcd_runtime.errors import CompileError

__all__ = ["FakeToolchain", "Toolchain", "find_toolchain", "interrupt_all"]


def find_toolchain(cc: str | None = None) -> Toolchain:
    """The pinned zig, or the compiler at `cc`. Compiles nothing. Errors: CompileError with a hint where there is none."""
    if cc is not None:
        return find_cc(cc)
    zig = find_zig()
    if zig is None:
        raise CompileError(
            "compiler zig: is not installed",
            expected="the `ziglang` wheel, or a compiler given by path",
            found="no module ziglang",
            hint="pip install ziglang, or --cc /usr/bin/g++",
        )
    return zig
