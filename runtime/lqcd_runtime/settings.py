"""The one file of the runtime that reads environment variables.

    LQCD_RUNTIME_NEURON          instance type to describe in place of what is found ("trn2.48xlarge", "trn2.48xlarge:lnc=1"), or
                                 "none" for a machine that shall count as one without NeuronCores (default: look)
    NEURON_LOGICAL_NC_CONFIG     AWS's: physical cores per logical core, 1 or 2; NEURON_RT_VIRTUAL_CORE_SIZE is its older name
    NEURON_RT_VISIBLE_CORES      AWS's: the cores that libnrt will give to this process, "0-3,8"

The latter two are read because libnrt obeys them: a descriptor that ignored them would be wrong. Nothing here enters a key.
"""

from __future__ import annotations

import os

OVERRIDE = "LQCD_RUNTIME_NEURON"
LOGICAL_CORES = ("NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE")
VISIBLE_CORES = "NEURON_RT_VISIBLE_CORES"


class NeuronSettings:
    """What the environment says of NeuronCores; "" where it says nothing."""

    __slots__ = ("logical_cores", "override", "visible_cores")

    def __init__(self, override: str = "", logical_cores: str = "", visible_cores: str = "") -> None:
        self.override, self.logical_cores, self.visible_cores = override, logical_cores, visible_cores


def neuron_settings() -> NeuronSettings:
    """Read now, not at import."""
    logical = next((os.environ[name] for name in LOGICAL_CORES if os.environ.get(name)), "")
    return NeuronSettings(os.environ.get(OVERRIDE, ""), logical, os.environ.get(VISIBLE_CORES, ""))
