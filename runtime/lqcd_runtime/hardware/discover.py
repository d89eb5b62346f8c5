"""Which Neuron devices a machine has: the probes asked in order, the first that knows decides, the others are compared with it.

    override, sysfs, PCI ids, DMI product name, neuron-ls, libnrt

Owns `Machine` (the evidence, before it becomes descriptors) and the sentences on what does not fit together. Never an import of
a package, never a guess from a count: a machine of which no probe names the chip has no devices and a note.
"""

from __future__ import annotations

from lqcd_runtime.errors import UsageError
from lqcd_runtime.hardware import probes
from lqcd_runtime.hardware.chips import CHIPS, INSTANCES, NRT_FAMILIES, chip_of_family, family_of
from lqcd_runtime.signature import suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lqcd_runtime.hardware.chips import Chip
    from lqcd_runtime.hardware.probes import Roots

    # () -> (family number of nrt.h, logical cores), or None where there is no libnrt
    AskLibnrt = Callable[[], tuple[int, int] | None]


class Machine:
    """chip: None where there is none; devices: N of each /dev/neuronN; cores: physical ones per device; lnc: what neuron-ls or
    an override says, else 0; found_by: probes that agree; listed: neuron-ls objects by device; notes: sentences for a user."""

    def __init__(
        self, chip: Chip | None = None, devices: tuple[int, ...] = (), *, family: str = "", found_by: str = "", lnc: int = 0
    ) -> None:
        self.chip, self.devices, self.family, self.lnc = chip, devices, family, lnc
        self.cores = chip.cores if chip else 0
        self.instance_type = ""
        self.found_by = [found_by] if found_by else []
        self.listed: dict[int, dict[str, Any]] = {}
        self.notes: list[str] = []


def parse_override(text: str) -> Machine:
    """ "trn2.48xlarge", "trn2.48xlarge:lnc=1" or "none". Errors: UsageError with the known instance types."""
    name, _, option = text.strip().partition(":")
    if name == "none" and not option:
        return Machine(found_by="override")
    if name not in INSTANCES:
        raise UsageError(
            f"Neuron override {text!r}: is not known{suggest(name, INSTANCES)}", expected="none, " + ", ".join(INSTANCES)
        )
    if option not in ("", "lnc=1", "lnc=2"):
        raise UsageError(f"Neuron override {text!r}: has an unknown option", expected="lnc=1 or lnc=2", found=option)
    chip, count = INSTANCES[name]
    family = family_of(name)
    machine = Machine(CHIPS[chip], tuple(range(count)), family=family, found_by="override", lnc=int(option[4:] or 0))
    machine.instance_type = name
    return machine


def look(roots: Roots, ask_libnrt: AskLibnrt) -> Machine:
    """The evidence of a machine."""
    driver, bus, product = probes.sysfs(roots), probes.pci(roots), probes.product_name(roots)
    machine = _from_driver(driver) or _from_bus(bus) or _from_product(product)
    listed = probes.neuron_ls(roots)
    if machine is None:
        machine = _from_libnrt(listed, ask_libnrt)
    machine.listed = {int(d["neuron_device"]): d for d in listed}
    _compare(machine, bus, product)
    return machine


def _from_driver(found: list[probes.SysfsDevice]) -> Machine | None:
    if not found:
        return None
    first = found[0]
    machine = Machine(first.chip, tuple(d.index for d in found), family=family_of(first.family), found_by="sysfs")
    machine.cores = first.cores
    if any(d.chip is not first.chip or d.cores != first.cores for d in found):
        machine.notes.append("sysfs shows devices that differ; all are described as the first one")
    return machine


def _from_bus(found: list[Chip]) -> Machine | None:
    return Machine(found[0], tuple(range(len(found))), found_by="pci") if found else None


def _from_product(product: str) -> Machine | None:
    if product in INSTANCES:
        machine = parse_override(product)
        machine.found_by = ["dmi"]
        return machine
    return None


def _from_libnrt(listed: list[dict[str, Any]], ask_libnrt: AskLibnrt) -> Machine:
    """Where only neuron-ls or nothing answered: neuron-ls does not name the chip, so libnrt must."""
    answer = ask_libnrt()
    if answer is None:
        machine = Machine()
        if listed:
            machine.notes.append(f"neuron-ls shows {len(listed)} devices, but nothing names their chip; name the instance type")
        return machine
    number, logical = answer
    family = NRT_FAMILIES.get(number, "")
    chip = chip_of_family(family)
    if chip is None:
        machine = Machine(found_by="libnrt")
        machine.notes.append(f"libnrt answers instance family {number}, which this release does not know")
        return machine
    if listed:
        return Machine(chip, tuple(int(d["neuron_device"]) for d in listed), family=family, found_by="neuron-ls")
    per_device = chip.cores // chip.default_lnc
    machine = Machine(chip, tuple(range(-(-logical // per_device))), family=family, found_by="libnrt")
    if logical % per_device:
        machine.notes.append(f"libnrt counts {logical} logical cores, which do not fill whole devices")
    return machine


def _compare(machine: Machine, bus: list[Chip], product: str) -> None:
    """Add the probes that agree, note those that do not, and take from them what the first could not know."""
    chip = machine.chip
    if chip is None:
        if family_of(product):
            machine.notes.append(f"the instance type is {product}, but no Neuron device is to be seen")
        return
    if "pci" not in machine.found_by and bus:
        _agree(
            machine, "pci", bus[0] is chip and len(bus) == len(machine.devices), f"the PCI bus shows {len(bus)} x {bus[0].name}"
        )
    family = family_of(product)
    if family and "dmi" not in machine.found_by:
        # A known type must have the right count, an unknown one of the right family is one that came later.
        known = INSTANCES.get(product)
        same = chip_of_family(family) is chip and (known is None or known[1] == len(machine.devices))
        _agree(machine, "dmi", same, f"the instance type is {product}")
        if chip_of_family(family) is chip:
            machine.instance_type, machine.family = product, family
    listed = machine.listed
    if listed and "neuron-ls" not in machine.found_by:
        _agree(machine, "neuron-ls", sorted(listed) == sorted(machine.devices), f"neuron-ls shows {len(listed)} devices")
    sizes = {int(d["logical_neuroncore_config"]) for d in listed.values() if str(d.get("logical_neuroncore_config")) in "12"}
    if not machine.lnc and len(sizes) == 1:
        machine.lnc = sizes.pop()


def _agree(machine: Machine, probe: str, agrees: bool, fact: str) -> None:
    if agrees:
        machine.found_by.append(probe)
    else:
        name = machine.chip.name if machine.chip else ""
        machine.notes.append(f"{fact}, but {machine.found_by[0]} shows {len(machine.devices)} x {name}")
