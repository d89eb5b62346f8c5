"""`NeuronCore`: the descriptor of one logical core, as `lqcd_runtime.devices()` returns it. Owns no discovery."""

from __future__ import annotations

from lqcd_runtime.hardware.chips import CORES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.hardware.chips import Chip


class NeuronCore:
    """One logical NeuronCore: `lnc` physical cores that work as one.

    ordinal: number on this machine; vendor: "AWS"; name: "NeuronCore-v3 (Trainium2)"; architecture: "NCv3"; generation: "v1" ..
    "v4"; chip; family: inf1, inf2, trn1, trn1n, trn2 (and trn2u ...), trn3; target: of artifacts that run on it, or None; device:
    N of /dev/neuronN; physical_cores: on that device; memory_bytes: its share of the device's memory; sbuf_bytes, psum_bytes:
    of all its physical cores (0: not published); dtypes; flags: capabilities; lnc; available; reason: one sentence where not;
    processes: ids that neuron-ls shows on the device; driver: version or ""; found_by: the probes that agree on it.
    """

    __slots__ = (
        "available", "chip", "device", "driver", "family", "found_by", "instance_type", "lnc", "ordinal", "physical_cores",
        "processes", "reason", "vendor",
    )  # fmt: skip

    def __init__(
        self,
        chip: Chip,
        ordinal: int,
        device: int,
        physical_cores: tuple[int, ...],
        *,
        family: str = "",
        instance_type: str = "",
        reason: str | None = None,
        processes: tuple[int, ...] = (),
        driver: str = "",
        found_by: tuple[str, ...] = (),
    ) -> None:
        self.chip, self.ordinal, self.device, self.physical_cores = chip, ordinal, device, physical_cores
        self.vendor = "AWS"
        self.lnc = len(physical_cores)
        self.family = family or chip.sysfs_family
        self.instance_type = instance_type
        self.reason, self.available = reason, reason is None
        self.processes, self.driver, self.found_by = processes, driver, found_by

    @property
    def generation(self) -> str:
        return self.chip.core

    @property
    def architecture(self) -> str:
        return CORES[self.chip.core].architecture

    @property
    def name(self) -> str:
        return f"NeuronCore-{self.generation} ({self.chip.name})"

    @property
    def target(self) -> str | None:
        return self.chip.target

    @property
    def memory_bytes(self) -> int:
        return self.chip.memory_bytes // self.chip.cores * self.lnc

    @property
    def sbuf_bytes(self) -> int:
        return CORES[self.chip.core].sbuf_bytes * self.lnc

    @property
    def psum_bytes(self) -> int:
        return CORES[self.chip.core].psum_bytes * self.lnc

    @property
    def dtypes(self) -> tuple[str, ...]:
        return CORES[self.chip.core].dtypes

    @property
    def flags(self) -> tuple[str, ...]:
        return CORES[self.chip.core].flags

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "ordinal": self.ordinal, "vendor": self.vendor, "name": self.name, "architecture": self.architecture,
            "generation": self.generation, "chip": self.chip.name, "family": self.family, "instance_type": self.instance_type,
            "target": self.target, "device": self.device, "physical_cores": list(self.physical_cores), "lnc": self.lnc,
            "memory_bytes": self.memory_bytes, "sbuf_bytes": self.sbuf_bytes, "psum_bytes": self.psum_bytes,
            "dtypes": list(self.dtypes), "flags": list(self.flags), "available": self.available, "reason": self.reason,
            "processes": list(self.processes), "driver": self.driver, "found_by": list(self.found_by),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"NeuronCore({self.ordinal}, {self.name}, {self.reason or 'available'})"
