"""Verbs `devices` and the Neuron part of `doctor`: what they print, and PyPI's placeholders told from AWS's packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lqcd_aot.cli import doctor_neuron, run
from lqcd_runtime import hardware
from lqcd_runtime.hardware.probes import Roots
from lqcd_runtime.settings import OVERRIDE
from tests.golden.neuron_machines import __main__ as golden
from tests.golden.neuron_machines.trees import plant

STUB = 'raise ImportError("WRONG PACKAGE. Please install the package from Neuron Repository")\n'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roots:
    """This machine as an inf2.8xlarge."""
    roots = plant(tmp_path / "root", "inf2.8xlarge")
    for name in (OVERRIDE, "NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE", "NEURON_RT_VISIBLE_CORES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(hardware, "Roots", lambda: roots)
    return roots


def _install(folder: Path, name: str, files: dict[str, str]) -> None:
    """A distribution as pip leaves it."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    rows = [f"{path},sha256=x,{len(text)}" for path, text in files.items()]
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/METADATA,,", f"{info.name}/RECORD,,", ""]))


def _doctor(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[bool, str]]:
    assert run(["doctor", "--json"]) == 0
    return {f["what"]: (f["ok"], f["fact"]) for f in json.loads(capsys.readouterr().out)}


def test_devices_in_json_are_the_descriptors(machine: Roots, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["devices", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    lines = (Path(golden.__file__).parent / "inf2.8xlarge.jsonl").read_text().splitlines()
    assert answer == {"cores": [json.loads(line) for line in lines], "notes": []}


def test_devices_in_a_table(machine: Roots, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(word in lines[1] for word in ("NeuronCore-v2 (Inferentia2)", "inf2.8xlarge", "16.0 GiB", "available"))
    monkeypatch.setenv(OVERRIDE, "none")
    assert run(["devices"]) == 0
    assert "no NeuronCore" in capsys.readouterr().out


def test_an_override_and_its_errors(machine: Roots, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["devices", "--as", "trn2.48xlarge", "--json"]) == 0
    cores = json.loads(capsys.readouterr().out)["cores"]
    assert len(cores) == 64
    # Device 0 is there, under another name; the others are not.
    assert [core["available"] for core in cores[:5]] == [True] * 4 + [False]
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "1")
    assert run(["devices", "--as", "trn2.3xlarge", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["cores"]) == 8
    assert run(["devices", "--as", "trn2.3xlarge", "--lnc", "3"]) == 2
    assert run(["devices", "--as", "p5.48xlarge", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"] == "UsageError"


def test_doctor_says_what_is_there(machine: Roots, capsys: pytest.CaptureFixture[str]) -> None:
    found = _doctor(capsys)
    assert found["neuron devices"] == (True, "2 of 2 x NeuronCore-v2 (Inferentia2), logical cores of 1, driver 2.30.2.0")
    assert found["libnrt"][0] is False
    assert "install aws-neuronx-runtime-lib" in found["libnrt"][1]


def test_placeholders_are_diagnosed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(str(site))
    for name in ("neuronx-cc", "torch-neuronx", "nrtpy"):
        # As on PyPI: the folder may have a hyphen in its name, so that not even the import error is reached.
        _install(site, name, {f"{name}/__init__.py": STUB})
    _install(site, "libneuronxla", {"libneuronxla/__init__.py": "", **{f"libneuronxla/part{i}.py": "" for i in range(20)}})
    found = _doctor(capsys)
    for name in ("torch-neuronx", "nrtpy"):
        ok, fact = found[name]
        assert not ok
        assert fact.startswith("1.0 is PyPI's placeholder, not AWS's package; pip uninstall")
        assert "--extra-index-url" in fact
    ok, fact = found["neuronx-cc"]
    assert not ok
    assert "placeholder" in fact
    assert found["libneuronxla"] == (True, "1.0: needed by torch-neuronx")


def test_a_package_of_metadata_only_is_a_placeholder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    _install(tmp_path, "nki-made-up", {})
    _install(tmp_path, "small-and-real", {"small_and_real/__init__.py": "def work() -> int:\n    return 1\n"})
    assert doctor_neuron.is_placeholder("nki-made-up")
    assert not doctor_neuron.is_placeholder("small-and-real")
