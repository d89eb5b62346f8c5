"""`NeuronCompileParam`: lqcd-neuron's parameter class of that name, every attribute of which acts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lqcd_aot.core import GaugeField
from lqcd_aot.neuron.compiled import CompiledOperator
from lqcd_aot.neuron.compiler import NeuronCompiler


@dataclass(frozen=True)
class NeuronCompileParam:
    """How an operator is compiled.

    compiler_workdir: folder of the store (None: the user's); dtype, optimize_level: of NeuronCompiler; num_neuroncores: above 1
    right-hand sides are shared by that many cores; inline_weights: the gauge field is compiled in (held on the device), so that
    calls take a spinor only. The artifact is the same one either way.
    """

    compiler_workdir: str | None = None
    dtype: str = "float32"
    optimize_level: int = 2
    num_neuroncores: int = 1
    inline_weights: bool = False

    def compiler(self, engine: str | None = None) -> NeuronCompiler:
        """The compiler these parameters describe. Errors: UsageError, as NeuronCompiler's."""
        store = None if self.compiler_workdir is None else Path(self.compiler_workdir)
        return NeuronCompiler(dtype=self.dtype, optlevel=self.optimize_level, store=store, engine=engine)

    def compile(self, module: Any, U: GaugeField, engine: str | None = None) -> CompiledOperator:
        """module compiled for the lattice of U. Errors: as NeuronCompiler's."""
        compiler, gauge = self.compiler(engine), U if self.inline_weights else None
        if self.num_neuroncores == 1:
            return compiler.compile_dslash(module, U.geom.shape, nc=U.geom.nc, gauge_field=gauge)
        return compiler.compile_dslash_multicore(
            module, U.geom.shape, gauge_field=gauge, num_cores=self.num_neuroncores, nc=U.geom.nc
        )
