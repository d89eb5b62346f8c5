"""torch_neuronx.trace as a second way to the artifact of a spec: the split torch module in place of our HLO, the same binding.

Owns the call (documented signature of torch-neuronx 2.9) and the identity. The NEFF is taken from the work folder, where the
documentation says it is left. PyPI's torch-neuronx is a placeholder and is recognised as one. Run against a double only.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lqcd_aot.compilers.base import AnyProgram, Artifact, private_folder, refuse
from lqcd_aot.compilers.neuronx import INSTALL
from lqcd_aot.compilers.neuronx_options import logical_cores, numbers, options
from lqcd_aot.program.hlo.modules.table import module_for
from lqcd_aot.program.hlo.variant import refuse as refuse_spec
from lqcd_runtime.digest import tagged_sha256
from lqcd_runtime.errors import CompileError, CorruptError, TooNewError
from lqcd_runtime.neff import MEDIA_TYPE, parse_neff
from lqcd_runtime.signature import Spec
from lqcd_runtime.split_binding import CHECKERBOARD, binding, layout
from lqcd_runtime.target import NEURON_TARGETS

NAME = "torch_neuronx.trace"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
PROGRAM_TAG = "lqcd-aot/trace-program/v1"


@dataclass(frozen=True, eq=False)
class TraceProgram:
    """A spec whose module is traced; `digest` stands for it in keys: the HLO program of the same spec, and this route."""

    spec: Spec
    identity: str
    digest: str

    @property
    def binding(self) -> dict[str, Any]:
        """Parameters and results, as of the HLO program."""
        return binding(self.spec)


def trace_program(spec: Spec, target: str) -> TraceProgram:
    """The program of a spec for this route. Errors: UsageError where it cannot be expressed."""
    from lqcd_aot.program import program_for

    refusal = refuse_spec(spec, target)
    if refusal is not None:
        raise refusal
    digest = tagged_sha256(PROGRAM_TAG, {"hlo_program": program_for(spec, target).digest, "route": NAME})
    return TraceProgram(spec, f"{spec.name}@{target}", digest)


class TraceToolchain:
    """torch_neuronx.trace of the torch-neuronx that is installed; see Toolchain for the contract. optlevel: of neuronx-cc."""

    def __init__(self, optlevel: int = 2) -> None:
        self.optlevel = optlevel

    def refusal(self, target: str) -> str | None:
        if target not in NEURON_TARGETS:
            return f"{target} is not a Neuron target"
        try:
            _installed()
        except CompileError as error:
            return f"{error.fact}: {error.found}; {INSTALL}"
        return None

    def identity(self, target: str) -> dict[str, str]:
        """compiler, versions of torch-neuronx, torch and the neuronx-cc under it."""
        return {
            "compiler": NAME,
            "version": _version(_installed()),
            "torch": torch.__version__,
            "neuronx_cc": _compiler_version(),
        }

    def flags(self, target: str) -> tuple[str, ...]:
        reason = self.refusal(target)
        if reason is not None:
            raise refuse(NAME, target, reason, hint=INSTALL)
        return tuple(o for o in options(target, _compiler_version(), self.optlevel) if not o.startswith("--framework"))

    def compile(
        self, program: AnyProgram, target: str, *, timeout: float | None = None, workdir: str | os.PathLike[str] | None = None
    ) -> bytes:
        """The NEFF. timeout cannot be kept: the trace runs in this process."""
        if not isinstance(program, TraceProgram):
            raise CompileError(f"program {program.digest[:12]}: is not written for {NAME}", failure_class="deterministic")
        package, module = _installed(), _Positional(program.spec)
        with private_folder(program.identity, workdir) as folder:
            try:
                package.trace(
                    module,
                    module.examples(),
                    compiler_workdir=str(folder),
                    compiler_args=list(self.flags(target)),
                    cpu_backend=True,
                )
            except Exception as error:  # whatever AWS's package raises is a failed compile
                raise CompileError(
                    f"artifact {program.identity}: {NAME} failed",
                    failure_class="unknown",
                    log=str(error),
                    found=str(error)[-500:],
                ) from error
            return _neff_in(folder, program.identity, target)

    def artifact(self, program: AnyProgram, code: bytes, target: str) -> Artifact:
        """As of neuronx-cc's own NEFFs; the runtime floor is not known by this way."""
        assert isinstance(program, TraceProgram)
        neff = {
            **parse_neff(code).as_dict(),
            "target": target,
            "compiler": _compiler_version(),
            "sdk": None,
            "runtime_floor": None,
        }
        return Artifact(MEDIA_TYPE, {"binding": program.binding, "neff": neff})

    def memory(self, program: AnyProgram, target: str) -> int | None:
        return None


class _Positional(torch.nn.Module):
    """The module of a spec over the parameters of its binding in their order, results in the dtypes of the binding."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.inner, self.bound = module_for(spec), binding(spec)
        self.constants: dict[str, torch.Tensor] = {}
        if layout(spec) == CHECKERBOARD:
            for name, extent in zip(("rows_t", "rows_z", "rows_y"), spec.lattice, strict=False):
                self.constants[name] = 1.0 - 2.0 * (torch.arange(extent) % 2).to(DTYPES[spec.dtype])

    def examples(self) -> tuple[torch.Tensor, ...]:
        """Ones in the shapes and dtypes of the parameters: no value of them reaches the program."""
        return tuple(torch.ones(tuple(p["shape"]), dtype=DTYPES[p["dtype"]]) for p in self.bound["parameters"])

    def forward(self, *fields: torch.Tensor) -> tuple[torch.Tensor, ...]:
        names = [p["name"] for p in self.bound["parameters"]]
        found = self.inner(**dict(zip(names, fields, strict=True)), **self.constants)
        results = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(r.to(DTYPES[b["dtype"]]) for r, b in zip(results, self.bound["results"], strict=True))


def _installed() -> Any:
    try:
        package = importlib.import_module("torch_neuronx")
    except ImportError as error:
        raise CompileError("torch-neuronx: is not installed", found=str(error)[:200], hint=INSTALL) from error
    if not callable(getattr(package, "trace", None)):
        raise CompileError("torch-neuronx: has no trace", found=_version(package), hint=INSTALL)
    return package


def _version(package: Any) -> str:
    return str(getattr(package, "__version__", "not known"))


def _compiler_version() -> str:
    """Of the neuronx-cc package that the trace calls; "0.0" where it says nothing, which gives the oldest options."""
    from importlib import metadata

    try:
        found = metadata.version("neuronx-cc")
    except metadata.PackageNotFoundError:
        return "0.0"
    return found if numbers(found) >= (2, 0) else "0.0"


def _neff_in(folder: Path, subject: str, target: str) -> bytes:
    made = sorted(folder.rglob("*.neff"))
    if len(made) != 1:
        raise CompileError(f"artifact {subject}: {NAME} left no single NEFF", expected="one", found=f"{len(made)} files")
    code = made[0].read_bytes()
    try:
        header = parse_neff(code, f"NEFF of {subject}")
    except (CorruptError, TooNewError) as error:
        raise CompileError(error.fact, expected=error.expected, found=error.found, hint=error.hint) from error
    if header.lnc not in (0, logical_cores(target)):
        raise CompileError(
            f"artifact {subject}: has another logical-core configuration", expected=logical_cores(target), found=header.lnc
        )
    return code
