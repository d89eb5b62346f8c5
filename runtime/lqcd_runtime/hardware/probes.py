"""What a machine shows of Neuron devices: sysfs, PCI, DMI, /dev, neuron-ls. One function per place, each returns facts only.

Owns the paths and the parsing. Every path hangs under `Roots`, so that a recorded tree can be looked at in place of this machine.
Unreadable and absent are the same: no fact. The sysfs file `core_count` is for root alone; cores are counted by their folders.
Judged against recorded trees made from AWS's documentation and the driver's source; never run on a Neuron machine.
"""

from __future__ import annotations

import os

from lqcd_runtime.hardware.chips import BY_PCI_ID, CHIPS, PCI_VENDOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lqcd_runtime.hardware.chips import Chip

NEURON_LS_SECONDS = 10.0


class Roots:
    """Where to look. sys, dev, opt: folders; may_open: whether a device node can be opened; run: program -> its output."""

    __slots__ = ("dev", "may_open", "opt", "run", "sys")

    def __init__(
        self,
        sys: str = "/sys",
        dev: str = "/dev",
        opt: str = "/opt/aws/neuron",
        may_open: Callable[[str], bool] | None = None,
        run: Callable[[str], bytes | None] | None = None,
    ) -> None:
        self.sys, self.dev, self.opt = sys, dev, opt
        self.may_open = may_open or _may_open
        self.run = run or run_neuron_ls


class SysfsDevice:
    """index: N of neuronN; chip; cores: physical ones; family: the driver's word in lower case, or ""."""

    __slots__ = ("chip", "cores", "family", "index")

    def __init__(self, index: int, chip: Chip, cores: int, family: str) -> None:
        self.index, self.chip, self.cores, self.family = index, chip, cores, family


def sysfs(roots: Roots) -> list[SysfsDevice]:
    """The devices that the driver publishes, by index; one whose chip it does not name in a known word is left out."""
    found = []
    base = f"{roots.sys}/devices/virtual/neuron_device"
    for name in _names(base):
        index = name.removeprefix("neuron")
        if not name.startswith("neuron") or not index.isdecimal():
            continue
        folder = f"{base}/{name}"
        family = _text(f"{folder}/info/architecture/instance_type").lower()
        cores = [n for n in _names(folder) if n.startswith("neuron_core") and n[11:].isdecimal()]
        chip = CHIPS.get(_text(f"{folder}/info/architecture/device_name")) or _chip_by_words(folder, family)
        if chip is not None:
            found.append(SysfsDevice(int(index), chip, len(cores) or chip.cores, family))
    return sorted(found, key=lambda d: d.index)


def _chip_by_words(folder: str, family: str) -> Chip | None:
    """For a driver that does not name the device: its instance word, checked with the core's architecture.

    Never the device's architecture: Inferentia2 and Trainium2 both say NDv3.
    """
    core = _text(f"{folder}/neuron_core0/info/architecture/arch_type").removeprefix("NC")
    named = [c for c in CHIPS.values() if c.sysfs_family == family[:4] and core in (c.core, "")]
    return named[0] if len(named) == 1 else None


def pci(roots: Roots) -> list[Chip]:
    """The chips on the PCI bus, in the order of their addresses; seen without the driver."""
    base = f"{roots.sys}/bus/pci/devices"
    found = []
    for name in _names(base):
        if _text(f"{base}/{name}/vendor") == PCI_VENDOR:
            chip = BY_PCI_ID.get(_text(f"{base}/{name}/device"))
            if chip is not None:
                found.append(chip)
    return found


def product_name(roots: Roots) -> str:
    """DMI's product name, on EC2 the instance type; "" where there is none."""
    return _text(f"{roots.sys}/devices/virtual/dmi/id/product_name")


def driver_version(roots: Roots) -> str:
    """Of the loaded kernel module, or ""."""
    return _text(f"{roots.sys}/module/neuron/version")


def node_refusal(roots: Roots, device: int) -> str | None:
    """None where /dev/neuronN can be opened, else why not."""
    path = f"{roots.dev}/neuron{device}"
    if not os.path.exists(path):
        return f"no /dev/neuron{device}: the driver (package aws-neuronx-dkms) is not loaded"
    return None if roots.may_open(path) else f"/dev/neuron{device} cannot be opened by this user"


def neuron_ls(roots: Roots) -> list[dict[str, Any]]:
    """The objects of `neuron-ls -j`, sorted by device; empty where the tool is absent, fails, hangs or answers no JSON array."""
    program = f"{roots.opt}/bin/neuron-ls"
    if not os.path.exists(program):
        return []
    import json

    try:
        listed = json.loads(roots.run(program) or b"null")
    except (ValueError, RecursionError):
        return []
    if not isinstance(listed, list):
        return []
    devices = [d for d in listed if isinstance(d, dict) and isinstance(d.get("neuron_device"), int)]
    return sorted(devices, key=lambda d: int(d["neuron_device"]))


def run_neuron_ls(program: str) -> bytes | None:
    """Standard output of `neuron-ls -j`, or None where it fails or takes longer than NEURON_LS_SECONDS."""
    import subprocess

    try:
        done = subprocess.run([program, "-j"], capture_output=True, timeout=NEURON_LS_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _may_open(path: str) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return f.read(256).strip()
    except OSError:
        return ""


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
