"""AWS's Neuron chips, cores and instance types: the numbers. Owns tables only; looks at no machine.

Sources: AWS's architecture pages of Inferentia .. Trainium3 and of NeuronCore-v1 .. v4, the driver's source for the sysfs words
and PCI ids. Memory per chip is GiB of HBM (Inferentia: DRAM); SBUF is 128 partitions x 192, 224, 256 KiB; PSUM 128 x 16 KiB.
NeuronCore-v1 has an SRAM whose size AWS does not publish: 0 here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    class Core(NamedTuple):
        """One core generation."""

        generation: str
        architecture: str
        sbuf_bytes: int
        psum_bytes: int
        dtypes: tuple[str, ...]
        flags: tuple[str, ...]

    class Chip(NamedTuple):
        """One chip."""

        name: str
        core: str
        cores: int
        memory_bytes: int
        target: str | None
        default_lnc: int
        pci_ids: tuple[str, ...]
        sysfs_family: str

else:
    from collections import namedtuple

    Core = namedtuple("Core", "generation architecture sbuf_bytes psum_bytes dtypes flags")
    Chip = namedtuple("Chip", "name core cores memory_bytes target default_lnc pci_ids sysfs_family")

KIB, GIB = 1 << 10, 1 << 30
_FP8 = ("fp8_e3m4", "fp8_e4m3", "fp8_e5m2")
_V2_TYPES = ("fp32", "tf32", "bf16", "fp16", *_FP8, "int8", "uint8", "int16", "int32", "uint32")
_COMMON = ("tensor_engine", "multi_stream")
_V2_FLAGS = (*_COMMON, "hbm", "control_flow", "dynamic_shapes", "stochastic_rounding", "collectives")
_V3_FLAGS = (*_V2_FLAGS, "logical_cores", "structured_sparsity", "native_int64")

CORES = {
    "v1": Core("v1", "NCv1", 0, 0, ("fp32", "bf16", "fp16", "int8"), _COMMON),
    "v2": Core("v2", "NCv2", 128 * 192 * KIB, 128 * 16 * KIB, _V2_TYPES, _V2_FLAGS),
    "v3": Core("v3", "NCv3", 128 * 224 * KIB, 128 * 16 * KIB, (*_V2_TYPES, "int64"), _V3_FLAGS),
    # Trainium3's compiler knows no fp8_e3m4; its 4- and 8-bit floats are the OCP microscaling formats.
    "v4": Core(
        "v4", "NCv4", 128 * 256 * KIB, 128 * 16 * KIB,
        (*(t for t in _V2_TYPES if t != "fp8_e3m4"), "int64", "mxfp8", "mxfp4"),
        (*_V3_FLAGS, "microscaling"),
    ),
}  # fmt: skip

CHIPS = {
    chip.name: chip
    for chip in (
        Chip("Inferentia", "v1", 4, 8 * GIB, None, 1, ("0x7064", "0x7065", "0x7066", "0x7067"), "inf1"),
        Chip("Trainium1", "v2", 2, 32 * GIB, "trn1", 1, ("0x7164",), "trn1"),
        Chip("Inferentia2", "v2", 2, 32 * GIB, "inf2", 1, ("0x7264",), "inf2"),
        Chip("Trainium2", "v3", 8, 96 * GIB, "trn2", 2, ("0x7364",), "trn2"),
        Chip("Trainium3", "v4", 8, 144 * GIB, "trn3", 2, ("0x7564", "0x7565"), "trn3"),
    )
}
PCI_VENDOR = "0x1d0f"
BY_PCI_ID = {pci_id: chip for chip in CHIPS.values() for pci_id in chip.pci_ids}

# instance type: (chip, chips). A Trn3 UltraServer is several hosts; one host is what a process sees, and AWS's pages name no
# instance type for it, so these two have names of ours.
INSTANCES = {
    "inf1.xlarge": ("Inferentia", 1), "inf1.2xlarge": ("Inferentia", 1),
    "inf1.6xlarge": ("Inferentia", 4), "inf1.24xlarge": ("Inferentia", 16),
    "inf2.xlarge": ("Inferentia2", 1), "inf2.8xlarge": ("Inferentia2", 1),
    "inf2.24xlarge": ("Inferentia2", 6), "inf2.48xlarge": ("Inferentia2", 12),
    "trn1.2xlarge": ("Trainium1", 1), "trn1.32xlarge": ("Trainium1", 16), "trn1n.32xlarge": ("Trainium1", 16),
    "trn2.3xlarge": ("Trainium2", 1), "trn2.48xlarge": ("Trainium2", 16), "trn2u.48xlarge": ("Trainium2", 16),
    "trn2n.48xlarge": ("Trainium2", 16),
    "trn3-gen1-host": ("Trainium3", 16), "trn3-gen2-host": ("Trainium3", 4),
}  # fmt: skip

# Families as in nrt.h's instance enumeration: number -> word.
NRT_FAMILIES = {
    1: "inf1", 2: "trn1", 3: "trn1n", 4: "inf2", 5: "trn2", 6: "trn2n", 7: "inf2e", 8: "trn2p", 9: "trn2u", 10: "trn2e",
    11: "trn2eu", 12: "trn2ac", 13: "trn2uac", 14: "trn3", 15: "trn3pds98",
}  # fmt: skip


def family_of(instance_type: str) -> str:
    """ "trn1n" of "trn1n.32xlarge"; "" for what is no Neuron instance type."""
    word = instance_type.strip().lower().partition(".")[0].partition("-")[0]
    return word if word[:4] in ("inf1", "inf2", "trn1", "trn2", "trn3") else ""


def chip_of_family(family: str) -> Chip | None:
    """The chip of an instance family: trn2u -> Trainium2."""
    return next((chip for chip in CHIPS.values() if family[:4] == chip.sysfs_family), None)
