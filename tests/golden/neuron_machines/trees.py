"""What /sys, /dev and neuron-ls hold on each instance type: written from AWS's documentation and the driver's source.

The tables here are transcribed a second time, on purpose: nothing is taken from lqcd_runtime.hardware, which they judge.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from lqcd_runtime.hardware.probes import Roots

# chip: (device name, device and core architecture, driver's instance word, PCI device, physical cores, bytes, default LNC)
CHIPS = {
    "inf1": ("Inferentia", "NDv1", "NCv1", "Inf1", "0x7064", 4, 8589934592, 1),
    "trn1": ("Trainium1", "NDv2", "NCv2", "Trn1", "0x7164", 2, 34359738368, 1),
    "inf2": ("Inferentia2", "NDv3", "NCv2", "Inf2", "0x7264", 2, 34359738368, 1),
    "trn2": ("Trainium2", "NDv3", "NCv3", "Trn2", "0x7364", 8, 103079215104, 2),
    "trn3": ("Trainium3", "NDv4", "NCv4", "Trn3", "0x7564", 8, 154618822656, 2),
}
# instance: (chip, chips, physical cores, cores seen by the runtime, GiB of device memory)
INSTANCES = {
    "inf1.xlarge": ("inf1", 1, 4, 4, 8),
    "inf1.2xlarge": ("inf1", 1, 4, 4, 8),
    "inf1.6xlarge": ("inf1", 4, 16, 16, 32),
    "inf1.24xlarge": ("inf1", 16, 64, 64, 128),
    "inf2.xlarge": ("inf2", 1, 2, 2, 32),
    "inf2.8xlarge": ("inf2", 1, 2, 2, 32),
    "inf2.24xlarge": ("inf2", 6, 12, 12, 192),
    "inf2.48xlarge": ("inf2", 12, 24, 24, 384),
    "trn1.2xlarge": ("trn1", 1, 2, 2, 32),
    "trn1.32xlarge": ("trn1", 16, 32, 32, 512),
    "trn1n.32xlarge": ("trn1", 16, 32, 32, 512),
    "trn2.3xlarge": ("trn2", 1, 8, 4, 96),
    "trn2.48xlarge": ("trn2", 16, 128, 64, 1536),
    "trn2u.48xlarge": ("trn2", 16, 128, 64, 1536),
    "trn2n.48xlarge": ("trn2", 16, 128, 64, 1536),
    # One host of a Trn3 UltraServer: of 64 chips on 4 hosts, of 144 chips on 36 hosts.
    "trn3-gen1-host": ("trn3", 64 // 4, 512 // 4, 256 // 4, 9216 // 4),
    "trn3-gen2-host": ("trn3", 144 // 36, 1152 // 36, 576 // 36, 20736 // 36),
}
DRIVER = {"inf1": "2.24.7.0"}
NEW_DRIVER = "2.30.2.0"


def sysfs(instance: str) -> dict[str, str]:
    """{path under /sys: content} that the driver makes, with its version."""
    chip, count, *_ = INSTANCES[instance]
    name, device_arch, core_arch, word, _, cores, *_ = CHIPS[chip]
    files = {"module/neuron/version": DRIVER.get(chip, NEW_DRIVER) + "\n"}
    for n in range(count):
        base = f"devices/virtual/neuron_device/neuron{n}"
        files |= {
            f"{base}/info/architecture/arch_type": device_arch + "\n",
            f"{base}/info/architecture/device_name": name + "\n",
            f"{base}/info/architecture/instance_type": word + "\n",
            f"{base}/info/serial_number": f"{n:016x}\n",
        }
        files |= {f"{base}/neuron_core{c}/info/architecture/arch_type": core_arch + "\n" for c in range(cores)}
    return files


def pci(instance: str) -> dict[str, str]:
    """{path under /sys: content} of the PCI bus: the chips, between a network card of the same vendor and a disk."""
    chip, count, *_ = INSTANCES[instance]
    addresses = [f"0000:{0x10 + n:02x}:1e.0" for n in range(count)]
    files = {}
    bus = [("0000:00:05.0", "0x1d0f", "0xec20"), ("0000:f0:1f.0", "0x1b36", "0x0010")]
    for address, vendor, device in [*bus, *((a, "0x1d0f", CHIPS[chip][4]) for a in addresses)]:
        files |= {f"bus/pci/devices/{address}/vendor": vendor + "\n", f"bus/pci/devices/{address}/device": device + "\n"}
    return files


def dmi(instance: str) -> dict[str, str]:
    """The product name; AWS's pages name none for a Trn3 host."""
    return {} if "host" in instance else {"devices/virtual/dmi/id/product_name": instance + "\n"}


def listing(instance: str, lnc: int | None = None, pid: int | None = None) -> bytes:
    """What `neuron-ls -j` prints; `pid`: a process on device 0."""
    chip, count, *_ = INSTANCES[instance]
    cores, size, default = CHIPS[chip][5:]
    logical = cores // (lnc or default)
    objects = []
    process = {"pid": pid, "command": "python", "neuron_runtime_version": "2.34.10.0"}
    for n in range(count):
        one = {
            "neuron_device": n, "bdf": f"{0x10 + n:02x}:1e.0", "cpu_affinity": "0-3", "numa_node": "0", "connected_to": None,
            "nc_count": logical, "memory_size": size, "neuroncore_ids": list(range(n * logical, (n + 1) * logical)),
            "neuron_processes": [process] if pid and n == 0 else [],
        }  # fmt: skip
        objects.append(one | ({"logical_neuroncore_config": lnc or default} if default == 2 else {}))
    return json.dumps(objects).encode()


def plant(
    folder: Path, instance: str, *, show: tuple[str, ...] = ("sysfs", "pci", "dmi", "dev", "neuron-ls"), ls: bytes | None = None
) -> Roots:
    """Write what `show` names of a machine under a folder; the Roots that look at it. ls: another output of neuron-ls."""
    files = {}
    for place, make in {"sysfs": sysfs, "pci": pci, "dmi": dmi}.items():
        if place in show:
            files |= {f"sys/{path}": text for path, text in make(instance).items()}
    if "dev" in show:
        files |= {f"dev/neuron{n}": "" for n in range(INSTANCES[instance][1])}
    if "neuron-ls" in show:
        files["opt/bin/neuron-ls"] = ""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="ascii")
    return roots(folder, run=lambda _: listing(instance) if ls is None else ls)


def roots(folder: Path, **options: Callable[[str], object]) -> Roots:
    """Roots under a folder."""
    return Roots(str(folder / "sys"), str(folder / "dev"), str(folder / "opt"), **options)  # type: ignore[arg-type]
