"""The one file of the runtime that reads environment variables.

    LQCD_RUNTIME_PIN             "1": every further thread of a pool stays on a CPU of its own; the calling thread is not moved.
                                 Good on an idle machine of many cores, bad where CPUs are shared (default "0": not pinned)
    LQCD_RUNTIME_NEURON          instance type to describe in place of what is found ("trn2.48xlarge", "trn2.48xlarge:lnc=1"), or
                                 "none" for a machine that shall count as one without NeuronCores (default: look)
    NEURON_LOGICAL_NC_CONFIG     AWS's: physical cores per logical core, 1 or 2; NEURON_RT_VIRTUAL_CORE_SIZE is its older name
    NEURON_RT_VISIBLE_CORES      AWS's: the cores that libnrt will give to this process, "0-3,8"

The latter two are read because libnrt obeys them: a descriptor that ignored them would be wrong. Nothing here enters a key.
"""

from __future__ import annotations

import os

from lqcd_runtime.errors import UsageError

PIN = "LQCD_RUNTIME_PIN"
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


def pin_threads() -> bool:
    """Whether threads of pools that are made from now on are pinned. Errors: UsageError for another word than 0 or 1."""
    word = os.environ.get(PIN) or "0"
    if word not in ("0", "1"):
        raise UsageError(f"setting {PIN}: is neither on nor off", expected="0 or 1", found=repr(word))
    return word == "1"
