"""`NeuronCompiler`: lqcd-neuron's class over specs, keys, store and engines of this project.

    compiler = NeuronCompiler(dtype="bfloat16")
    D_neuron = compiler.compile_dslash(WilsonDirac(mass=0.1), lattice_shape=(8, 4, 4, 4), nc=3, gauge_field=U)

Owns the methods and the line each prints through `logging` (logger lqcd_aot.neuron). One artifact serves every mass, csw,
boundary and gauge field; a second process finds it in the store and compiles nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lqcd_aot.dirac.even_odd import require_even_extents
from lqcd_aot.neuron.artifacts import Artifacts
from lqcd_aot.neuron.compiled import TORCH_COMPLEX, CompiledOperator
from lqcd_aot.neuron.engine import choose
from lqcd_aot.neuron.fusion import Fused, Limits, decide
from lqcd_aot.neuron.half_lattice import CompiledHop, require_parity
from lqcd_aot.neuron.measured import CompiledObservable, observable_word
from lqcd_aot.neuron.modules import Meaning, hop_of, meaning
from lqcd_aot.neuron.toolchains import NEURONX_CC, programs, toolchain
from lqcd_aot.settings import default_store
from lqcd_runtime.errors import UsageError
from lqcd_runtime.operator_choice import Running
from lqcd_runtime.signature import Spec

log = logging.getLogger("lqcd_aot.neuron")
Shape = Sequence[int]


class NeuronCompiler:
    """Compiles operator modules and gauge observables for one engine.

    dtype: "float32", "bfloat16" or, on the CPU engine, "float64"; bfloat16 computes in float32 there, which `note` says.
    optlevel: 1-3, of neuronx-cc; artifacts of the CPU engine have one level. sram_threshold_bytes, allow_fused_fallback: see
    fusion.py. engine: None for a NeuronCore where there is one, else the CPU; "cpu", "neuron", "sim". store: folder (None: the
    user's). cc, neuron_cc: compilers in place of the pinned zig and of the neuronx-cc on PATH. route: "neuronx-cc", or
    "torch_neuronx.trace" to let that make the NEFFs.
    engine, target, dtype: what was chosen (dtype of the arithmetic); note: the line that says so.
    Errors: UsageError for words that are not known or cannot go together.
    """

    def __init__(
        self,
        dtype: str = "float32",
        optlevel: int = 2,
        sram_threshold_bytes: int | None = None,
        allow_fused_fallback: bool = True,
        *,
        engine: str | None = None,
        store: str | os.PathLike[str] | None = None,
        cc: str | None = None,
        neuron_cc: str | None = None,
        route: str = NEURONX_CC,
    ) -> None:
        choice = choose(engine, dtype)
        self.engine, self.target, self.dtype, self.note = choice.engine, choice.target, choice.dtype, choice.line
        if sram_threshold_bytes is not None and sram_threshold_bytes < 0:
            raise UsageError("sram_threshold_bytes: is negative", expected=">= 0, or None", found=sram_threshold_bytes)
        self.limits = Limits(sram_threshold_bytes, allow_fused_fallback)
        if self.engine == "cpu" and (optlevel, self.limits) != (2, Limits()):
            self.note += "; optlevel and limits of SBUF have no meaning there"
        self.artifacts = Artifacts(
            default_store() if store is None else Path(store), self.target,
            toolchain(self.engine, route, optlevel, cc, neuron_cc), log.info, programs(route),
        )  # fmt: skip
        # Somebody who asked for Neuron by the name of this class sees at once that it is not.
        log.log(logging.INFO if choice.as_asked else logging.WARNING, "NeuronCompiler: %s", self.note)

    def compile_dslash(
        self,
        module: Any,
        lattice_shape: Shape,
        nc: int = 3,
        gauge_field: Any = None,
        fused: Fused = "auto",
        *,
        form: str = "forward",
    ) -> CompiledOperator:
        """A module of lqcd_aot.dirac for one lattice, one right-hand side per call.

        gauge_field: GaugeField or links, compiled in: held on the device, so that calls take a spinor only; None: calls take U.
        fused: spin-colour blocks; "auto" where they fit. form: "forward", "dagger" or "normal". A lattice whose program
        passes a limit of the compiler is cut into slabs of T, which `note` says. Errors: UsageError, CompileError, SpillError.
        """
        return self._operator(module, lattice_shape, nc, gauge_field, fused, form=form, shards=None)

    def compile_dslash_batched(
        self,
        module: Any,
        lattice_shape: Shape,
        batch_size: int,
        gauge_field: Any = None,
        nc: int = 3,
        fused: Fused = "auto",
        *,
        form: str = "forward",
    ) -> CompiledOperator:
        """The same for [columns,T,Z,Y,X,4,Nc], batch_size right-hand sides per call of the artifact."""
        return self._operator(module, lattice_shape, nc, gauge_field, fused, form=form, shards=None, batch=batch_size)

    def compile_dslash_multicore(
        self,
        module: Any,
        lattice_shape: Shape,
        gauge_field: Any = None,
        num_cores: int | None = None,
        per_core_batch_size: int = 1,
        nc: int = 3,
        fused: Fused = "auto",
        *,
        form: str = "forward",
    ) -> CompiledOperator:
        """The same for global batches that the cores share, per_core_batch_size right-hand sides per core and call.

        num_cores: None for all NeuronCores; on the CPU engine it is the number of threads, None for all CPUs of this process.
        `num_cores` of the result is the number used.
        """
        if num_cores is not None and num_cores < 1:
            raise UsageError("num_cores: is not a positive number", found=num_cores)
        if self.engine == "cpu":
            how = Running(num_cores or len(os.sched_getaffinity(0)), "cpu")
        else:
            how = Running(None, self.engine, None if num_cores is None else tuple(range(num_cores)))
        return self._operator(
            module, lattice_shape, nc, gauge_field, fused, form=form, shards=None, batch=per_core_batch_size, how=how
        )

    def compile_dslash_sharded(
        self,
        module: Any,
        lattice_shape: Shape,
        gauge_field: Any = None,
        num_shards: int | None = None,
        nc: int = 3,
        fused: Fused = "auto",
        *,
        form: str = "forward",
    ) -> CompiledOperator:
        """The same in num_shards slabs of T, whose halos the host gathers; None: as few as fit (on a CPU one)."""
        return self._operator(module, lattice_shape, nc, gauge_field, fused, form=form, shards=num_shards)

    def compile_dslash_eo(
        self, module: Any, lattice_shape: Shape, out_parity: int = 0, gauge_field: Any = None, nc: int = 3, fused: Fused = "auto"
    ) -> CompiledHop:
        """The hop of a module from one parity to the other on half lattices: out_parity 0 is H_eo, 1 is H_oe (half_lattice.py).

        The diagonal of the module joins a parity with itself, so it has no part in this. Errors: UsageError for an odd extent.
        """
        require_parity(out_parity)
        require_even_extents(tuple(lattice_shape))
        return CompiledHop(self._operator(module, lattice_shape, nc, gauge_field, fused, shards=None, read=hop_of), out_parity)

    def compile_plaquette(self, lattice_shape: Shape, nc: int = 3) -> CompiledObservable:
        """P(U) = mean of Re tr P / Nc over all planes and sites."""
        return self.compile_observable("plaquette", lattice_shape, nc)

    def compile_observable(self, observable: str | Callable[..., Any], lattice_shape: Shape, nc: int = 3) -> CompiledObservable:
        """A gauge observable: a word ("plaquette", "wilson_action", "polyakov_loop", "topological_charge", "energy_density") or
        the function of that name in lqcd_aot.observables. Errors: UsageError, CompileError."""
        from lqcd_runtime.observables.observe import OBSERVABLES

        word = observable_word(observable)
        spec = Spec(OBSERVABLES[word][0], tuple(lattice_shape), self.dtype, nc=nc)
        return CompiledObservable(word, spec, self.artifacts.provide([spec]), self.engine, self.note)

    @staticmethod
    def torch_compile(model: Any, backend: str = "neuronx") -> Any:
        """`torch.compile(model, backend=backend)`: compiled at the first call, by torch, into no store.

        Errors: UsageError for a backend this torch does not have ("neuronx" comes with torch-neuronx).
        """
        import torch

        if backend not in torch.compiler.list_backends(exclude_tags=None):
            raise UsageError(
                f"torch.compile backend {backend!r}: is not there", found=backend,
                expected=", ".join(torch.compiler.list_backends()),
                hint='backend="inductor", or compile_dslash, which needs no backend',
            )  # fmt: skip
        return torch.compile(model, backend=backend)

    def _operator(
        self,
        module: Any,
        lattice_shape: Shape,
        nc: int,
        gauge: Any,
        fused: Fused,
        *,
        shards: int | None,
        form: str = "forward",
        batch: int = 1,
        how: Running | None = None,
        read: Callable[[Any], Meaning] | None = None,
    ) -> CompiledOperator:
        read = read or partial(meaning, form=form)
        wanted = Spec(read(module).operator, tuple(lattice_shape), self.dtype, batch=batch, nc=nc)
        self._require_fitting(module, wanted)
        decision = decide(wanted, self.target, fused, shards, self.limits)
        spec = decision.spec
        builders = [Spec("wilson_blocks", spec.lattice, spec.dtype, shards=spec.shards, nc=nc)] if spec.fused else []
        bundle = self.artifacts.provide([*builders, spec])
        # What differs from the caller's own word, or from one call for the whole lattice, must be seen.
        changed = (fused is True and not spec.fused) or spec.shards not in (1, shards)
        for line in decision.lines:
            log.log(logging.WARNING if changed else logging.INFO, "NeuronCompiler: %s", line)
        note = "; ".join((self.note, *decision.lines))
        return CompiledOperator(module, read, spec, bundle, how or Running(None, self.engine), note, gauge)

    def _require_fitting(self, module: Any, spec: Spec) -> None:
        """What a module says of its fields must be what is compiled. Errors: UsageError."""
        if module.nc not in (None, spec.nc):
            raise UsageError(f"module {type(module).__name__}: has other colours", expected=module.nc, found=f"nc={spec.nc}")
        if module.dtype not in (None, TORCH_COMPLEX[spec.dtype]):
            raise UsageError(
                f"module {type(module).__name__}: was made for fields in {module.dtype}", expected=TORCH_COMPLEX[spec.dtype],
                found=module.dtype, hint='dtype=None, or NeuronCompiler(dtype="float64") on the CPU engine',
            )  # fmt: skip

    def __repr__(self) -> str:
        return f"NeuronCompiler({self.note})"
