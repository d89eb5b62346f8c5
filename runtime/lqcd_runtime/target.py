"""Targets and what this machine can execute.

Owns: the ordered list of targets with the CPU features each needs, and the host probe (/proc/cpuinfo and uname; no child
process, under a millisecond). NeuronCores are looked for (`hardware`) when a Neuron target is first asked about. A Neuron target
or the simulator is never satisfied by a CPU feature, and the simulator never by any machine: a caller must name it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from lqcd_runtime.hardware.descriptor import NeuronCore
    from lqcd_runtime.manifest import Entry

# name: (architecture, rank within it, features in /proc/cpuinfo spelling). Levels as in the x86-64 psABI.
_V2 = ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
CPU_TARGETS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "x86-64-v2": ("x86_64", 2, _V2),
    "x86-64-v3": ("x86_64", 3, _V3),
    "x86-64-v4": ("x86_64", 4, _V4),
    "aarch64": ("aarch64", 1, ("asimd",)),
}
NEURON_TARGETS = ("inf2", "trn1", "trn2", "trn3")
SIM_TARGET = "sim"
TARGETS = (*CPU_TARGETS, *NEURON_TARGETS, SIM_TARGET)
ENGINES = ("cpu", "neuron", "sim")


def engine_of(target: str) -> str:
    """The engine that runs artifacts of a target: "cpu", "neuron" or "sim"."""
    return "sim" if target == SIM_TARGET else "neuron" if target in NEURON_TARGETS else "cpu"


class Host:
    """What a machine can execute: architecture, CPU feature flags, NeuronCores. Pass one explicitly to ask about another machine.

    neuron: descriptors of `lqcd_runtime.devices()`, or a function that finds them when first needed.
    """

    __slots__ = ("_neuron", "architecture", "features")

    def __init__(
        self, architecture: str, features: Iterable[str], neuron: Sequence[NeuronCore] | Callable[[], Sequence[NeuronCore]] = ()
    ) -> None:
        self.architecture = architecture
        self.features = frozenset(features)
        self._neuron = neuron

    @property
    def neuron(self) -> tuple[NeuronCore, ...]:
        """Descriptors of the NeuronCores, usable or not."""
        if callable(self._neuron):
            self._neuron = self._neuron()
        return tuple(self._neuron)

    def refusal_of(self, entry: Entry) -> str | None:
        """None where this host can execute an artifact, else one sentence: on its target or its logical cores."""
        return self.refusal_of_record(entry.as_dict())

    def refusal_of_record(self, record: dict[str, Any]) -> str | None:
        """The same of a build record, or of what an entry is made of."""
        reason = self.refusal(record["target"])
        if reason is None and record["target"] in NEURON_TARGETS:
            from lqcd_runtime.engines.neuron_floor import lnc_refusal

            lnc = (record.get("neff") or {}).get("lnc")
            reason = lnc_refusal(lnc if isinstance(lnc, int) else 0, next(c for c in self.neuron if c.available))
        return reason

    def refusal(self, target: str) -> str | None:
        """None where this host can execute the target, else one sentence why not."""
        if target == SIM_TARGET:
            return 'is a simulation, which stands for no machine; engine="sim" runs it'
        if target in NEURON_TARGETS:
            return self._neuron_refusal(target)
        if target not in CPU_TARGETS:
            return f"target {target} is not known"
        architecture, _, needed = CPU_TARGETS[target]
        if architecture != self.architecture:
            return f"needs {architecture}, this machine is {self.architecture}"
        absent = [f for f in needed if f not in self.features]
        if absent:
            return f"needs {', '.join(absent)}, this machine has {self.best_target() or 'none of the known levels'}"
        return None

    def _neuron_refusal(self, target: str) -> str | None:
        from lqcd_runtime.engines.neuron_floor import GENERATION_OF, generation_refusal

        if not self.neuron:
            return f"needs NeuronCore-{GENERATION_OF[target]} ({target}), this machine has no NeuronCore"
        reason = generation_refusal(target, self.neuron[0])
        if reason is None and not any(core.available for core in self.neuron):
            reason = str(self.neuron[0].reason)
        return reason

    def preference(self, target: str) -> tuple[int, int]:
        """Higher is better: a NeuronCore before a CPU, this very chip before one of its generation, CPUs by rank."""
        if target in NEURON_TARGETS:
            return 1, int(bool(self.neuron) and self.neuron[0].target == target)
        return 0, rank(target)

    def best_target(self) -> str | None:
        """The highest CPU target this host can execute, or None."""
        runnable = [
            (rank, name)
            for name, (arch, rank, needed) in CPU_TARGETS.items()
            if arch == self.architecture and self.features.issuperset(needed)
        ]
        return max(runnable)[1] if runnable else None


def rank(target: str) -> int:
    """Preference among targets of one architecture; higher is better. -1 for what is no CPU target."""
    return CPU_TARGETS[target][1] if target in CPU_TARGETS else -1


_host: Host | None = None


def this_host() -> Host:
    """The machine this process runs on, probed once."""
    global _host
    if _host is None:
        import os

        _host = Host(os.uname().machine, _cpu_features("/proc/cpuinfo"), _neuron_cores)
    return _host


def _neuron_cores() -> list[NeuronCore]:
    from lqcd_runtime.hardware import devices

    return devices()


def _cpu_features(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            for line in f:
                label, _, value = line.partition(":")
                if label.strip() in ("flags", "Features"):
                    return value.split()
    except OSError:
        pass
    return []
