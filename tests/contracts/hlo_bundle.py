"""Bundles of HLO programs made without a compiler: NEFF-SIM, or NEFFs whose program the double of libnrt hands back."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lqcd_aot.program import program_for
from lqcd_runtime.engines.sim import this_simulator
from lqcd_runtime.neff import MEDIA_TYPE, SIM_MEDIA_TYPE, parse_sim, write_sim
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import SIM_TARGET
from tests.doubles.libnrt import double_neff
from tests.made import bundle_bytes, record


@cache
def lowered(spec: Spec) -> tuple[bytes, dict[str, Any]]:
    """(HLO, binding) of a spec."""
    program = program_for(spec, SIM_TARGET)
    return program.hlo, program.binding


def neff_record(spec: Spec, target: str, *, lnc: int = 1) -> tuple[dict[str, Any], bytes]:
    """(record, code) of a spec's program for a target."""
    hlo, binding = lowered(spec)
    code = write_sim(hlo, {"binding": binding})
    neff: dict[str, Any] = {"simulated": True}
    if target != SIM_TARGET:
        code = double_neff(binding, ["callback"], code, lnc=lnc)
        neff = {"lnc": lnc, "runtime_floor": "2.34.10.0", "target": target}
    made = {**record(spec, target, code), "binding": binding, "neff": neff}
    made["outputs"]["code"]["media_type"] = SIM_MEDIA_TYPE if target == SIM_TARGET else MEDIA_TYPE
    return made, code


def write(path: Path, specs: list[Spec], targets: tuple[str, ...] = (SIM_TARGET,), *, lnc: int = 1) -> str:
    """A bundle file of all specs for all targets."""
    made = [neff_record(spec, target, lnc=lnc) for spec in specs for target in targets]
    path.write_bytes(bundle_bytes([r for r, _ in made], [code for _, code in made]))
    return str(path)


def compute(code: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """For Double.compute: the HLO inside a NEFF of `neff_record`, through jaxlib."""
    binding = parse_sim(code).manifest["binding"]
    program = this_simulator().program(code, binding)
    kinds = {p["name"]: (np.uint16 if p["dtype"] == "bfloat16" else np.float32, p["shape"]) for p in binding["parameters"]}
    return program.run({name: data.view(kinds[name][0]).reshape(kinds[name][1]) for name, data in inputs.items()})
