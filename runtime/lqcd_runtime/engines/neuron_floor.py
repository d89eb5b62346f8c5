"""Whether a NEFF can run here, decided before libnrt sees it: chip generation, logical cores, NEFF and runtime versions, driver.

Owns the rules, each with its source in AWS's notes: NEFF's logical-core size must equal the runtime's; a NEFF is of one core
generation (NeuronCore-v2 programs for trn1 and inf2 are interchangeable in practice, which AWS's maintainers confirm and nobody
promises); a newer compiler needs the runtime of its SDK; runtime and driver have floors for each other.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.hardware.descriptor import NeuronCore
    from lqcd_runtime.neff import NeffHeader

GENERATION_OF = {"trn1": "v2", "inf2": "v2", "trn2": "v3", "trn3": "v4"}


def generation_refusal(target: str, core: NeuronCore) -> str | None:
    """None where the core executes programs of the target."""
    needed = GENERATION_OF.get(target)
    if needed == core.generation:
        return None
    return f"needs NeuronCore-{needed} ({target}), this machine has {core.name}"


def lnc_refusal(lnc: int, core: NeuronCore) -> str | None:
    """None where a program of this logical-core size (0: not said) fits."""
    if lnc in (0, core.lnc):
        return None
    return f"is compiled for logical cores of {lnc}, this machine uses {core.lnc}; NEURON_LOGICAL_NC_CONFIG={lnc} changes it"


def header_refusal(header: NeffHeader, entry_neff: dict[str, Any], core: NeuronCore, runtime: tuple[int, ...]) -> str | None:
    """None where header, record and machine agree, else one sentence. runtime: version of libnrt."""
    said = entry_neff.get("lnc")
    if isinstance(said, int) and header.lnc and said != header.lnc:
        return f"its record says logical cores of {said}, its header {header.lnc}; build it again"
    floor = numbers(str(entry_neff.get("runtime_floor") or ""))
    if floor and runtime[: len(floor)] < floor[: len(runtime)]:
        return f"needs runtime {'.'.join(map(str, floor))}, this machine has {'.'.join(map(str, runtime))}"
    return lnc_refusal(header.lnc, core)


def pair_refusal(runtime: tuple[int, ...], driver: tuple[int, ...], generation: str) -> str | None:
    """None where libnrt and the kernel driver go together; () for a version that is not known, which is no reason to refuse."""
    if not driver or not runtime:
        return None
    ours, theirs = runtime[:2], driver[:2]
    shown = f"runtime {ours[0]}.{ours[1]} and driver {theirs[0]}.{theirs[1]} do not go together"
    if theirs >= (2, 29) and ours < (2, 33):
        return f"{shown}: this driver needs runtime 2.33"
    if ours >= (2, 32) and theirs <= (2, 26):
        return f"{shown}: this runtime needs a driver after 2.26"
    if ours >= (2, 26) and generation == "v3" and theirs < (2, 22):
        return f"{shown}: on trn2 this runtime needs driver 2.22"
    return None


def numbers(version: str) -> tuple[int, ...]:
    """ "2.34.10.0+abc" -> (2, 34, 10, 0); () for what is no version."""
    parts = version.partition("+")[0].split(".")
    return tuple(int(p) for p in parts) if all(p.isdecimal() for p in parts) else ()
