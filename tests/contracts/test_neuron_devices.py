"""Descriptors of NeuronCores from the trees of every instance type, from each probe alone, and where probes disagree."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import lqcd_runtime
from lqcd_runtime.errors import UsageError
from lqcd_runtime.hardware import capabilities, core_at, devices, is_available, notes, probes
from lqcd_runtime.hardware.chips import CHIPS as OUR_CHIPS
from lqcd_runtime.hardware.chips import INSTANCES as OUR_INSTANCES
from lqcd_runtime.hardware.descriptor import NeuronCore
from lqcd_runtime.hardware.probes import Roots
from lqcd_runtime.settings import NeuronSettings
from tests.golden.neuron_machines import __main__ as golden
from tests.golden.neuron_machines.trees import CHIPS, INSTANCES, listing, plant, roots

EMPTY = NeuronSettings()
ALL = ("sysfs", "pci", "dmi", "dev", "neuron-ls")


def _devices(where: Roots, **options: object) -> list[NeuronCore]:
    return devices(**{"roots": where, "settings": EMPTY, "ask_libnrt": lambda: None, **options})  # type: ignore[arg-type]


def _notes(where: Roots, **options: object) -> list[str]:
    return notes(**{"roots": where, "settings": EMPTY, "ask_libnrt": lambda: None, **options})


@pytest.mark.parametrize("instance", INSTANCES)
def test_descriptors_of_every_instance_type_byte_for_byte(instance: str, tmp_path: Path) -> None:
    found = golden.text_of(_devices(plant(tmp_path, instance)))
    assert found == (Path(golden.__file__).parent / f"{instance}.jsonl").read_text(encoding="ascii")


@pytest.mark.parametrize("instance", INSTANCES)
def test_descriptors_add_up_to_the_published_table(instance: str, tmp_path: Path) -> None:
    chip, chips, physical, seen, gib = INSTANCES[instance]
    name, _, architecture, *_ = CHIPS[chip]
    cores = _devices(plant(tmp_path, instance))
    assert [c.ordinal for c in cores] == list(range(seen))
    assert sum(len(c.physical_cores) for c in cores) == physical
    assert len({(c.device, p) for c in cores for p in c.physical_cores}) == physical
    assert sum(c.memory_bytes for c in cores) == gib * 2**30
    assert {c.device for c in cores} == set(range(chips))
    assert {(c.chip.name, c.architecture, c.lnc, c.available) for c in cores} == {(name, architecture, physical // seen, True)}
    assert {c.found_by for c in cores} == {("sysfs", "pci", *(() if "host" in instance else ("dmi",)), "neuron-ls")}
    assert OUR_INSTANCES[instance] == (name, chips)


def test_the_two_tables_list_the_same_machines() -> None:
    assert set(OUR_INSTANCES) == set(INSTANCES)
    assert {c.name for c in OUR_CHIPS.values()} == {c[0] for c in CHIPS.values()}


@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize("show", [("sysfs", "dev"), ("pci", "dev"), ("dmi", "dev")], ids=lambda s: s[0])
def test_each_probe_alone_finds_the_same_cores(instance: str, show: tuple[str, ...], tmp_path: Path) -> None:
    if show[0] == "dmi" and "host" in instance:
        assert _devices(plant(tmp_path, instance, show=show)) == []
        return
    found = _devices(plant(tmp_path, instance, show=show))
    full = _devices(plant(tmp_path / "full", instance))
    assert [(c.ordinal, c.name, c.memory_bytes, c.available) for c in found] == [
        (c.ordinal, c.name, c.memory_bytes, c.available) for c in full
    ]
    assert {c.found_by for c in found} == {(show[0],)}


@pytest.mark.parametrize(
    ("instance", "family"), [("trn2.48xlarge", 5), ("inf2.24xlarge", 4), ("trn1n.32xlarge", 3), ("inf1.6xlarge", 1)]
)
def test_libnrt_answers_last(instance: str, family: int, tmp_path: Path) -> None:
    seen = INSTANCES[instance][3]
    where = plant(tmp_path, instance, show=("dev",))
    found = _devices(where, ask_libnrt=lambda: (family, seen))
    assert (len(found), {c.found_by for c in found}) == (seen, {("libnrt",)})
    assert {c.family for c in found} == {instance.partition(".")[0]}
    where = plant(tmp_path, instance, show=("dev", "neuron-ls"))
    assert _devices(where) == []
    assert "nothing names their chip" in _notes(where)[0]
    assert len(_devices(where, ask_libnrt=lambda: (family, seen))) == seen
    assert "does not know" in _notes(roots(tmp_path / "no"), ask_libnrt=lambda: (99, 4))[0]


def test_a_machine_without_neuron_has_no_devices(tmp_path: Path) -> None:
    nowhere = roots(tmp_path)
    assert _devices(nowhere) == []
    assert not is_available(roots=nowhere, settings=EMPTY, ask_libnrt=lambda: None)
    with pytest.raises(UsageError, match="NeuronCore 0: is out of range"):
        capabilities(0, roots=nowhere, settings=EMPTY, ask_libnrt=lambda: None)


def test_this_machine_can_be_asked() -> None:
    assert all(isinstance(core, NeuronCore) for core in lqcd_runtime.devices())


def test_without_the_driver_a_device_is_described_and_not_available(tmp_path: Path) -> None:
    cores = _devices(plant(tmp_path, "inf2.xlarge", show=("pci", "dmi")))
    assert len(cores) == 2
    assert {c.reason for c in cores} == {"no /dev/neuron0: the driver (package aws-neuronx-dkms) is not loaded"}
    assert not any(c.available for c in cores)


def test_a_node_that_may_not_be_opened_is_the_reason(tmp_path: Path) -> None:
    plant(tmp_path, "trn1.32xlarge")
    where = roots(tmp_path, may_open=lambda path: not path.endswith("neuron3"), run=lambda _: None)
    cores = _devices(where)
    assert [c.ordinal for c in cores if not c.available] == [6, 7]
    assert cores[6].reason == "/dev/neuron3 cannot be opened by this user"


def test_logical_cores_follow_argument_environment_tool_and_default_in_this_order(tmp_path: Path) -> None:
    where = plant(tmp_path, "trn2.3xlarge", ls=listing("trn2.3xlarge", lnc=1))
    one = NeuronSettings(logical_cores="1")
    assert len(_devices(where)) == 8
    assert len(_devices(where, settings=NeuronSettings(logical_cores="2"))) == 4
    assert len(_devices(where, settings=one, lnc=2)) == 4
    silent = plant(tmp_path / "silent", "trn2.3xlarge", show=("sysfs", "dev"))
    assert [c.physical_cores for c in _devices(silent)] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert [c.memory_bytes >> 30 for c in _devices(silent, settings=one)] == [12] * 8
    inf2 = plant(tmp_path / "inf2", "inf2.xlarge")
    assert "not possible on Inferentia2" in _notes(inf2, settings=NeuronSettings(logical_cores="2"))[0]
    with pytest.raises(UsageError, match="no logical-core size 2"):
        _devices(inf2, lnc=2)


def test_cores_hidden_from_the_process_say_so(tmp_path: Path) -> None:
    where = plant(tmp_path, "trn1.32xlarge")
    cores = _devices(where, settings=NeuronSettings(visible_cores="0-2,30"))
    assert [c.ordinal for c in cores if c.available] == [0, 1, 2, 30]
    assert cores[3].reason == "not in NEURON_RT_VISIBLE_CORES=0-2,30"
    assert _notes(where, settings=NeuronSettings(visible_cores="a-b")) == ["NEURON_RT_VISIBLE_CORES=a-b cannot be read"]


def test_processes_are_shown_on_their_device(tmp_path: Path) -> None:
    cores = _devices(plant(tmp_path, "trn2.48xlarge", ls=listing("trn2.48xlarge", pid=4711)))
    assert [c.ordinal for c in cores if c.processes == (4711,)] == [0, 1, 2, 3]


def test_an_override_describes_without_claiming(tmp_path: Path) -> None:
    cores = _devices(roots(tmp_path), override="trn2.48xlarge:lnc=1")
    assert (len(cores), cores[0].target, cores[0].available) == (128, "trn2", False)
    assert str(cores[0].reason).startswith("named by an override, not seen on this machine")
    assert _devices(plant(tmp_path, "trn2.48xlarge"), override="none") == []
    assert len(_devices(roots(tmp_path / "x"), settings=NeuronSettings(override="inf2.24xlarge"))) == 12
    assert _devices(plant(tmp_path, "trn2.48xlarge"), override="trn2.3xlarge")[0].available
    with pytest.raises(UsageError, match=r"did you mean 'trn1.32xlarge'"):
        _devices(roots(tmp_path), override="trn1.32xlarg")
    with pytest.raises(UsageError, match="unknown option"):
        _devices(roots(tmp_path), override="trn2.48xlarge:lnc=3")


def test_an_ordinal_out_of_range_is_an_error(tmp_path: Path) -> None:
    where = {"roots": plant(tmp_path, "inf2.48xlarge"), "settings": EMPTY}
    assert "bf16" in capabilities(23, **where)
    assert core_at(23, **where).device == 11
    for wrong in (24, -1, True, 1.0, "0"):
        with pytest.raises(UsageError, match="out of range") as caught:
            capabilities(wrong, **where)  # type: ignore[arg-type]
        assert caught.value.expected == "0 to 23"


def test_what_does_not_fit_together_is_said(tmp_path: Path) -> None:
    where = plant(tmp_path, "trn1.32xlarge")
    assert _notes(where) == []
    shutil.rmtree(tmp_path / "sys/devices/virtual/neuron_device/neuron7")
    cores = _devices(where)
    assert len(cores) == 30
    assert {c.device for c in cores} == set(range(16)) - {7}
    assert _notes(where) == [
        "the PCI bus shows 16 x Trainium1, but sysfs shows 15 x Trainium1",
        "the instance type is trn1.32xlarge, but sysfs shows 15 x Trainium1",
        "neuron-ls shows 16 devices, but sysfs shows 15 x Trainium1",
    ]
    product = tmp_path / "sys/devices/virtual/dmi/id/product_name"
    product.write_text("trn9.huge\n")
    assert len(_notes(where)) == 2
    empty = plant(tmp_path / "lost", "trn1.2xlarge", show=())
    (tmp_path / "lost/sys/devices/virtual/dmi/id").mkdir(parents=True)
    (tmp_path / "lost/sys/devices/virtual/dmi/id/product_name").write_text("trn1.99xlarge")
    assert _notes(empty) == ["the instance type is trn1.99xlarge, but no Neuron device is to be seen"]


def test_a_driver_that_does_not_name_the_chip_is_understood_by_core_and_family(tmp_path: Path) -> None:
    where = plant(tmp_path, "trn2.3xlarge", show=("sysfs", "dev"))
    (tmp_path / "sys/devices/virtual/neuron_device/neuron0/info/architecture/device_name").unlink()
    assert {c.chip.name for c in _devices(where)} == {"Trainium2"}
    # Both say NDv3: the core decides.
    (tmp_path / "sys/devices/virtual/neuron_device/neuron0/info/architecture/instance_type").write_text("Inf2\n")
    assert _devices(where) == []


def test_inferentia_needs_the_older_driver(tmp_path: Path) -> None:
    where = plant(tmp_path, "inf1.xlarge")
    (tmp_path / "sys/module/neuron/version").write_text("2.30.2.0\n")
    assert {c.reason for c in _devices(where)} == {"driver 2.30.2.0 does not serve Inferentia; it needs 2.24 or older"}


@pytest.mark.parametrize("output", [b"", b"[", b"{}", b'[1, {"neuron_device": "0"}]', b"[" * 100000, b"\xff"])
def test_nonsense_from_neuron_ls_is_no_evidence(output: bytes, tmp_path: Path) -> None:
    cores = _devices(plant(tmp_path, "inf2.xlarge", ls=output))
    assert {c.found_by for c in cores} == {("sysfs", "pci", "dmi")}


def test_neuron_ls_is_run_and_cannot_hang_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "neuron-ls"

    def script(text: str) -> str:
        program.write_text(f"#!{sys.executable}\n{text}")
        program.chmod(0o755)
        return str(program)

    answer = listing("trn1.2xlarge")
    assert json.loads(
        probes.run_neuron_ls(script(f"import sys; assert sys.argv[1:] == ['-j']; print({answer.decode()!r})")) or b""
    )
    assert probes.run_neuron_ls(script("import sys; sys.exit(1)")) is None
    assert probes.run_neuron_ls(str(tmp_path / "absent")) is None
    monkeypatch.setattr(probes, "NEURON_LS_SECONDS", 0.3)
    # A run that were waited for would end with code 0 and an empty answer, not with None.
    assert probes.run_neuron_ls(script("import time; time.sleep(60)")) is None


def test_values_that_the_public_crate_has_wrong(tmp_path: Path) -> None:
    inf1, trn2 = (_devices(plant(tmp_path / i, i))[0] for i in ("inf1.xlarge", "trn2.48xlarge"))
    assert inf1.memory_bytes == 2 << 30  # 8 GiB are the chip's
    assert "hbm" not in inf1.flags
    assert trn2.memory_bytes == 24 << 30  # of two physical cores
    assert not any("int4" in core.dtypes for core in (inf1, trn2))
    assert all("fp64" not in core.dtypes for core in (inf1, trn2))
