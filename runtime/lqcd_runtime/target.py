"""CPU targets and what this machine can execute.

Owns: the ordered list of targets with the CPU features each needs, and the host probe (/proc/cpuinfo and uname; no child
process, under a millisecond). A Neuron target or the simulator is never satisfied by a CPU feature.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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


class Host:
    """What a machine can execute: architecture and CPU feature flags. Pass one explicitly to ask about another machine."""

    __slots__ = ("architecture", "features")

    def __init__(self, architecture: str, features: Iterable[str]) -> None:
        self.architecture = architecture
        self.features = frozenset(features)

    def refusal(self, target: str) -> str | None:
        """None where this host can execute the target, else one sentence why not."""
        if target not in CPU_TARGETS:
            return f"target {target} is not a CPU"
        architecture, _, needed = CPU_TARGETS[target]
        if architecture != self.architecture:
            return f"needs {architecture}, this machine is {self.architecture}"
        absent = [f for f in needed if f not in self.features]
        if absent:
            return f"needs {', '.join(absent)}, this machine has {self.best_target() or 'none of the known levels'}"
        return None

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

        _host = Host(os.uname().machine, _cpu_features("/proc/cpuinfo"))
    return _host


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
