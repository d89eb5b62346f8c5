"""`NeuronDevice`: the NeuronCores of this machine under lqcd-neuron's names, over the descriptors of lqcd_runtime.

Owns no discovery: found cores come from `lqcd_runtime.devices()`, which never guesses from importable packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from lqcd_runtime.hardware.descriptor import NeuronCore


class NeuronDevice:
    """The usable NeuronCores of a machine.

    cores: descriptors of the usable ones; hardware: "trn1", "inf2", ... or "none"; reason: "" or one sentence why there is none.
    """

    def __init__(self, cores: tuple[NeuronCore, ...]) -> None:
        self.cores = tuple(core for core in cores if core.available and core.target)
        self.hardware = self.cores[0].family if self.cores else "none"
        self.reason = "" if self.cores else _why_none(cores)

    @property
    def is_neuron(self) -> bool:
        """Whether a NeuronCore can be used."""
        return bool(self.cores)

    @property
    def num_cores(self) -> int:
        """How many can be used; 0 on a machine without."""
        return len(self.cores)

    @property
    def target(self) -> str | None:
        """What artifacts for this machine are compiled for; None where there is no core."""
        return self.cores[0].target if self.cores else None

    @property
    def device(self) -> torch.device:
        """Where tensors at the interface of compiled operators live: host memory, whatever engine runs them."""
        return torch.device("cpu")

    def synchronize(self) -> None:
        """Returns at once: every call of a compiled operator has ended when it returns."""

    def __repr__(self) -> str:
        return f"NeuronDevice(hardware={self.hardware}, num_cores={self.num_cores})"


def get_device() -> NeuronDevice:
    """The NeuronCores of this machine, which is looked at once per process."""
    from lqcd_runtime.target import this_host

    return NeuronDevice(this_host().neuron)


def is_neuron_available() -> bool:
    """Whether a NeuronCore can be used. An installed torch-neuronx alone is none."""
    return get_device().is_neuron


def _why_none(cores: tuple[NeuronCore, ...]) -> str:
    if not cores:
        return "this machine has no NeuronCore"
    return cores[0].reason or f"{cores[0].name} is not a target of this project"
