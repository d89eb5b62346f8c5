"""NeuronCores of this machine: `lqcd_runtime.devices()`. One descriptor per logical core, whether it can be used or not.

    chips       the numbers: chips, cores, instance types
    probes      sysfs, PCI, DMI, /dev, neuron-ls: facts, each under an injectable root
    discover    their order, and what does not fit together
    descriptor  `NeuronCore`

    devices()  enumerate()      descriptors, by ordinal
    is_available()              whether any core can be used
    capabilities(ordinal)       its flags and dtypes
    notes()                     what the probes do not agree on

The descriptor service of ironaccelerator-neuron, with documented values: memory per core is the chip's divided by its cores,
Inferentia has no HBM, no generation has int4, trn2 and trn3 pair two cores by default. Judged against recorded trees for every
instance type; it has never run on a Neuron machine.
"""

from __future__ import annotations

from lqcd_runtime.errors import UsageError
from lqcd_runtime.hardware.descriptor import NeuronCore
from lqcd_runtime.hardware.discover import Machine, look, parse_override
from lqcd_runtime.hardware.probes import Roots, driver_version, node_refusal
from lqcd_runtime.settings import NeuronSettings, neuron_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lqcd_runtime.hardware.discover import AskLibnrt

OLD_DRIVER = (2, 24)  # the last driver series that knows Inferentia (NeuronCore-v1)


def devices(
    *,
    override: str | None = None,
    lnc: int | None = None,
    roots: Roots | None = None,
    settings: NeuronSettings | None = None,
    ask_libnrt: AskLibnrt | None = None,
) -> list[NeuronCore]:
    """The logical NeuronCores of this machine, by ordinal; an empty list where there are none.

    override: "trn2.48xlarge", "trn2.48xlarge:lnc=1" or "none", in place of looking; lnc: 1 or 2 in place of the environment's or
    the machine's; roots, settings, ask_libnrt: another machine's, for replays. Errors: UsageError for an unknown override or an
    lnc that the chip does not have.
    """
    return survey(override=override, lnc=lnc, roots=roots, settings=settings, ask_libnrt=ask_libnrt)[0]


enumerate = devices


def notes(**where: object) -> list[str]:
    """Sentences on what the probes do not agree on. Arguments as of `devices`."""
    return survey(**where)[1]  # type: ignore[arg-type]


def is_available(**where: object) -> bool:
    """Whether any NeuronCore can be used by this process. Arguments as of `devices`."""
    return any(core.available for core in survey(**where)[0])  # type: ignore[arg-type]


def capabilities(ordinal: int, **where: object) -> tuple[str, ...]:
    """Flags and dtypes of one core, in one tuple. Errors: UsageError for an ordinal out of range."""
    return (core := core_at(ordinal, **where)).flags + core.dtypes


def core_at(ordinal: int, **where: object) -> NeuronCore:
    """One descriptor. Errors: UsageError for an ordinal out of range."""
    found = survey(**where)[0]  # type: ignore[arg-type]
    if isinstance(ordinal, bool) or not isinstance(ordinal, int) or not 0 <= ordinal < len(found):
        expected = f"0 to {len(found) - 1}" if found else "none: this machine has no NeuronCore"
        raise UsageError(f"NeuronCore {ordinal}: is out of range", expected=expected, hint="lqcd-aot devices")
    return found[ordinal]


def survey(
    *,
    override: str | None = None,
    lnc: int | None = None,
    roots: Roots | None = None,
    settings: NeuronSettings | None = None,
    ask_libnrt: AskLibnrt | None = None,
) -> tuple[list[NeuronCore], list[str]]:
    """(descriptors, notes). Arguments and errors as of `devices`."""
    settings, roots = settings or neuron_settings(), roots or Roots()
    named = override or settings.override
    machine = parse_override(named) if named else look(roots, ask_libnrt or _ask_libnrt)
    if machine.chip is None:
        return [], machine.notes
    size = _logical(machine, lnc, settings)
    per_device = machine.cores // size
    visible = _visible(settings.visible_cores, machine)
    version = driver_version(roots)
    cores: list[NeuronCore] = []
    for device in machine.devices:
        refusal = node_refusal(roots, device) or _driver_refusal(machine, version)
        if refusal is not None and named:
            refusal = f"named by an override, not seen on this machine: {refusal}"
        running = machine.listed.get(device, {}).get("neuron_processes") or []
        for k in range(per_device):
            ordinal = len(cores)
            hidden = None if visible is None or ordinal in visible else f"not in NEURON_RT_VISIBLE_CORES={settings.visible_cores}"
            cores.append(
                NeuronCore(
                    machine.chip, ordinal, device, tuple(range(k * size, (k + 1) * size)), family=machine.family,
                    instance_type=machine.instance_type, reason=refusal or hidden, driver=version,
                    processes=tuple(int(p["pid"]) for p in running if str(p.get("pid", "")).isdecimal()),
                    found_by=tuple(machine.found_by),
                )
            )  # fmt: skip
    return cores, machine.notes


def _logical(machine: Machine, asked: int | None, settings: NeuronSettings) -> int:
    """Physical cores per logical core: argument, environment, neuron-ls or override, the chip's default."""
    assert machine.chip is not None
    known = (1, 2) if machine.chip.default_lnc == 2 else (1,)
    if asked is not None:
        if asked not in known:
            raise UsageError(f"{machine.chip.name}: has no logical-core size {asked}", expected=" or ".join(map(str, known)))
        return asked
    if settings.logical_cores:
        if settings.logical_cores in map(str, known):
            return int(settings.logical_cores)
        machine.notes.append(f"NEURON_LOGICAL_NC_CONFIG={settings.logical_cores} is not possible on {machine.chip.name}")
    return machine.lnc if machine.lnc in known else machine.chip.default_lnc


def _visible(text: str, machine: Machine) -> frozenset[int] | None:
    """The ordinals of "0-3,8"; None for no restriction or one that cannot be read."""
    if not text:
        return None
    chosen: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            machine.notes.append(f"NEURON_RT_VISIBLE_CORES={text} cannot be read")
            return None
        chosen.update(range(int(first), int(last or first) + 1))
    return frozenset(chosen)


def _driver_refusal(machine: Machine, version: str) -> str | None:
    """Newer drivers dropped the first generation."""
    numbers = tuple(int(n) for n in version.split(".")[:2] if n.isdecimal())
    if machine.chip is not None and machine.chip.core == "v1" and numbers > OLD_DRIVER:
        return f"driver {version} does not serve Inferentia; it needs 2.24 or older"
    return None


def _ask_libnrt() -> tuple[int, int] | None:
    from lqcd_runtime.engines.nrt_library import instance_of_this_machine

    return instance_of_this_machine()
