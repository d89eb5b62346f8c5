"""Compile a gauge artifact and call it through its C interface alone: no engine, no bundle.

Owns the ctypes signatures of the kinds `observable` and `gauge_map`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from lqcd_aot.compilers import find_toolchain
from lqcd_aot.program import program_for
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.target import this_host

BEST = this_host().best_target() or "x86-64-v2"
_CANARY = 0xA5


class GaugeArtifact:
    """A loaded shared library of one spec and target."""

    def __init__(self, spec: Spec, target: str) -> None:
        self.spec, self.target = spec, target
        # Left open: dlopen knows a library by its name, and a number used again would answer with the earlier artifact.
        self.handle = os.memfd_create("artifact")
        os.write(self.handle, find_toolchain().compile(program_for(spec, target), target, timeout=300))
        self.library = ctypes.CDLL(f"/proc/self/fd/{self.handle}")
        self.library.lqcd_identity.restype = ctypes.c_char_p
        self.library.lqcd_bytes.restype = ctypes.c_uint64
        self.library.lqcd_pool_new.restype = ctypes.c_void_p
        self.library.lqcd_pool_free.argtypes = [ctypes.c_void_p]
        pointers = [ctypes.c_void_p] * 5
        for name in ("lqcd_observe", "lqcd_map"):
            if hasattr(self.library, name):
                getattr(self.library, name).argtypes = pointers

    @property
    def dtype(self) -> Any:
        return np.complex64 if self.spec.dtype == "float32" else np.complex128

    def run(self, links: Any, *inputs: float, threads: int = 1, in_place: bool = False) -> Any:
        """Results (float64) or new links. The workspace holds NaN before and must not be overrun; the input must survive."""
        before = np.ascontiguousarray(links, self.dtype)
        links = before.copy()
        size = self.library.lqcd_bytes(3)
        memory = np.full(size + 128, _CANARY, np.uint8)
        start = (-memory.ctypes.data) % 64
        memory[start : start + size] = 0xFF  # every float and double of it is NaN
        scalars = np.array([*inputs, *[np.nan] * (8 - len(inputs))])
        if self.spec.kind == "observable":
            out, function = np.full(len(OPERATORS[self.spec.operator]["results"]), np.nan), self.library.lqcd_observe
        else:
            out, function = links if in_place else np.full_like(links, np.nan), self.library.lqcd_map
        pool = self.library.lqcd_pool_new(threads)
        status = function(out.ctypes.data, links.ctypes.data, scalars.ctypes.data, memory.ctypes.data + start, pool)
        self.library.lqcd_pool_free(pool)
        assert status == 0
        assert (memory[start + size :] == _CANARY).all() and (memory[:start] == _CANARY).all()
        assert in_place or np.array_equal(links, before, equal_nan=True)
        return out


@cache
def gauge_artifact(operator: str, lattice: Sequence[int], dtype: str = "float64", target: str = BEST) -> GaugeArtifact:
    """Compiled and loaded once per process."""
    return GaugeArtifact(Spec(operator, tuple(lattice), dtype), target)
