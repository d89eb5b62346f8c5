"""Compile programs of every kind but gauge ones and call them through ctypes: the ABI as a stranger would use it."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from lqcd_aot.compilers import find_toolchain
from lqcd_aot.program import program_for
from lqcd_runtime.signature import Spec

POINTER, INT = ctypes.c_void_p, ctypes.c_int32
COMPLEX = {"float32": np.complex64, "float64": np.complex128}
ARGUMENTS = {
    "lqcd_pack_gauge": [POINTER, POINTER, INT, POINTER, POINTER, POINTER],
    "lqcd_pack_spinor": [POINTER, POINTER, INT, POINTER],
    "lqcd_unpack_spinor": [POINTER, POINTER, INT, POINTER],
    "lqcd_pack_clover": [POINTER, POINTER, INT, POINTER, POINTER],
    "lqcd_apply": [POINTER] * 7,
    "lqcd_solve_begin": [POINTER] * 10,
    "lqcd_solve_iterate": [POINTER] * 6 + [INT] + [POINTER] * 3,
    "lqcd_pool_free": [POINTER],
}


class Factory:
    """Compiles each (spec, target) once into `folder`, two at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.toolchain = folder, find_toolchain()
        self.made: dict[tuple[Spec, str], Path] = {}

    def prepare(self, wanted: list[tuple[Spec, str]]) -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda w: self.path(*w), dict.fromkeys(wanted)))

    def path(self, spec: Spec, target: str) -> Path:
        if (spec, target) not in self.made:
            path = self.folder / f"{spec.name}@{target}.so"
            path.write_bytes(self.toolchain.compile(program_for(spec, target), target, timeout=120, workdir=self.folder))
            self.made[spec, target] = path
        return self.made[spec, target]

    def load(self, spec: Spec, target: str) -> Artifact:
        builder = None
        if spec.fused:
            builder = Artifact(self, Spec("wilson_blocks", spec.lattice, spec.dtype, shards=spec.shards), target)
        return Artifact(self, spec, target, builder)


class Artifact:
    """One loaded shared library; `builder` makes its gauge buffer where it is fused."""

    def __init__(self, factory: Factory, spec: Spec, target: str, builder: Artifact | None = None) -> None:
        self.spec, self.builder = spec, builder
        self.library = ctypes.CDLL(str(factory.path(spec, target)))
        for name, arguments in ARGUMENTS.items():
            if hasattr(self.library, name):
                getattr(self.library, name).argtypes = arguments
        self.library.lqcd_bytes.restype = ctypes.c_uint64
        self.library.lqcd_pool_new.restype = POINTER
        for text in ("lqcd_identity", "lqcd_gauge_layout"):
            getattr(self.library, text).restype = ctypes.c_char_p

    @property
    def layout(self) -> str:
        return str(self.library.lqcd_gauge_layout().decode())

    def buffer(self, what: int) -> Any:
        """Aligned bytes full of 0xA5 (a NaN nowhere, but garbage), so that reading what was never written shows."""
        size = int(self.library.lqcd_bytes(what))
        raw = np.full(size + 64, 0xA5, np.uint8)
        start = -raw.ctypes.data % 64
        return raw[start : start + size]

    def run(self, links: Any, psi: Any, scalars: Any, scale: Any, phase: Any, threads: int = 1) -> Any:
        """The operator on complex arrays of the full lattice, slab after slab."""
        kind = COMPLEX[self.spec.dtype]
        links, psi = np.ascontiguousarray(links, kind), np.ascontiguousarray(psi, kind)
        out = np.full_like(psi, np.nan)
        numbers = (np.array([*scalars, *[0.0] * 5]), np.array(scale, float), np.array(phase, complex).view(float))
        pool = self.library.lqcd_pool_new(threads)
        for slab in range(self.spec.shards):
            self._slab(out, links, psi, numbers, slab, pool)
        self.library.lqcd_pool_free(pool)
        return out

    def unpacked(self, psi: Any) -> Any:
        """What is left of a spinor field that is packed and unpacked. One slab, no operator that changes the layout."""
        psi = np.ascontiguousarray(psi, COMPLEX[self.spec.dtype])
        out, packed = np.full_like(psi, np.nan), self.buffer(1)
        assert self.library.lqcd_pack_spinor(packed.ctypes.data, psi.ctypes.data, 0, None) == 0
        assert self.library.lqcd_unpack_spinor(out.ctypes.data, packed.ctypes.data, 0, None) == 0
        return out

    def _slab(self, out: Any, links: Any, psi: Any, numbers: Any, slab: int, pool: Any) -> None:
        scalars, scale, phase = (n.ctypes.data for n in numbers)
        gauge, inner, outer, work, clover = (self.buffer(what) for what in range(5))
        call = self.library
        packer = self.builder.library if self.builder else call
        assert packer.lqcd_pack_gauge(gauge.ctypes.data, links.ctypes.data, slab, scale, phase, pool) == 0
        assert call.lqcd_pack_spinor(inner.ctypes.data, psi.ctypes.data, slab, pool) == 0
        if clover.size:
            assert call.lqcd_pack_clover(clover.ctypes.data, links.ctypes.data, slab, scalars, pool) == 0
        buffers = (b.ctypes.data for b in (outer, inner, gauge, clover, work))
        assert call.lqcd_apply(*buffers, scalars, pool) == 0
        assert call.lqcd_unpack_spinor(out.ctypes.data, outer.ctypes.data, slab, pool) == 0
