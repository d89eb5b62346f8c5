"""Which engine runs what a NeuronCompiler compiles: a NeuronCore where there is one, else the CPU; a simulation where asked for.

Owns the choice, the dtype of the arithmetic that follows, and the line that says both. Builds and loads nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from lqcd_aot.neuron.device import get_device
from lqcd_runtime.errors import UsageError
from lqcd_runtime.select import check_engine
from lqcd_runtime.signature import CPU_DTYPES, DTYPES, NEURON_DTYPES, suggest
from lqcd_runtime.target import SIM_TARGET, this_host


class Choice(NamedTuple):
    """engine: "cpu", "neuron" or "sim"; target: of the artifacts; dtype: of the arithmetic; line: what was chosen and why."""

    engine: str
    target: str
    dtype: str
    line: str

    @property
    def as_asked(self) -> bool:
        """Whether this is a NeuronCore, which is what the name of the compiler promises."""
        return self.engine == "neuron"


def choose(engine: str | None, dtype: str) -> Choice:
    """The engine for `engine` (None: a NeuronCore, else the CPU) and the dtype asked for.

    bfloat16 has no CPU artifact: there the arithmetic is float32, and the line says so. Errors: UsageError for an unknown word,
    for engine="neuron" without a NeuronCore, for float64 on a device that has none.
    """
    check_engine(engine)
    if dtype not in DTYPES:
        raise UsageError(f"dtype {dtype!r}: is not known{suggest(dtype, DTYPES)}", expected=", ".join(DTYPES), found=dtype)
    device = get_device()
    if engine == "neuron" and not device.is_neuron:
        raise UsageError(
            "engine neuron: cannot run here", expected="a NeuronCore", found=device.reason,
            hint='engine="sim" simulates; lqcd-aot build recipes/trn1.toml compiles for other machines',
        )  # fmt: skip
    if engine == "sim":
        return _split(engine, SIM_TARGET, dtype, "a simulation on this CPU, as asked for; no use for physics")
    if device.is_neuron and engine != "cpu":
        return _split("neuron", str(device.target), dtype, f"{device.num_cores} NeuronCores of {device.hardware}")
    return _cpu(dtype, "as asked for" if engine == "cpu" else device.reason)


def _split(engine: str, target: str, dtype: str, why: str) -> Choice:
    if dtype not in NEURON_DTYPES:
        raise UsageError(
            f"dtype {dtype}: the device has no double precision", expected=" or ".join(NEURON_DTYPES), found=dtype,
            hint='engine="cpu" has float64',
        )  # fmt: skip
    return Choice(engine, target, dtype, f"engine {engine}, target {target}, {dtype}: {why}")


def _cpu(dtype: str, why: str) -> Choice:
    target = this_host().best_target()
    if target is None:
        raise UsageError(
            "engine cpu: cannot run here", expected="x86-64-v2 or better, or aarch64", found=this_host().architecture
        )
    used = dtype if dtype in CPU_DTYPES else "float32"
    line = f"engine cpu, target {target}, {used}: {why}"
    return Choice("cpu", target, used, line if used == dtype else f"{line}; {dtype} has no CPU artifact, computing in {used}")
