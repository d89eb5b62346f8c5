"""The driver of neuronx-cc against the double's executable, exactly as against the real one, and that too where it is installed.

What only the double can show (failures on request) is marked by its script. The options are checked against the documented list.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lqcd_aot.compilers import FakeToolchain, Toolchain, find_toolchain, interrupt_all
from lqcd_aot.compilers.dispatch import Absent
from lqcd_aot.compilers.neuronx import NeuronxToolchain, find_neuronx
from lqcd_aot.compilers.neuronx_errors import ADVICE, advice, classify_neuronx, code_of
from lqcd_aot.compilers.neuronx_options import RELEASES, options, release_of
from lqcd_aot.compilers.process import Ended
from lqcd_aot.compilers.sim import SimToolchain
from lqcd_aot.doubles.version import BANNER_VERSION
from lqcd_runtime.errors import CompileError
from lqcd_runtime.neff import MEDIA_TYPE, SIM_MEDIA_TYPE, is_sim, parse_neff, parse_sim
from lqcd_runtime.target import CPU_TARGETS, NEURON_TARGETS
from tests.contracts.neuronx_double import double, journal, program
from tests.contracts.scripted_cc import Text, native_target, still_running

REAL = shutil.which("neuronx-cc")


@pytest.fixture(autouse=True)
def own_facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lqcd_aot.compilers.facts._memory", {})
    monkeypatch.setenv("LQCD_AOT_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=["double", "sim", *(["real"] if REAL else [])])
def toolchain(request: pytest.FixtureRequest, tmp_path: Path) -> Toolchain:
    if request.param == "sim":
        return SimToolchain()
    return NeuronxToolchain(Path(str(REAL)) if request.param == "real" else double(tmp_path))


def a_target(toolchain: Toolchain) -> str:
    return "sim" if isinstance(toolchain, SimToolchain) else "trn1"


def test_the_contract_of_every_toolchain_of_hlo(toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Identity by content, a checked container, a record's members; nothing of the environment, nothing left behind."""
    target = a_target(toolchain)
    assert isinstance(toolchain, Toolchain)
    identity = toolchain.identity(target)
    assert {"compiler", "version"} <= set(identity) and not [v for v in identity.values() if os.sep in v]
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("NEURON_CC_FLAGS", "--auto-cast=all")
    hlo = program(target)
    code = toolchain.compile(hlo, target, timeout=300, workdir=work)
    assert list(work.iterdir()) == [] and toolchain.identity(target) == identity
    made = toolchain.artifact(hlo, code, target)
    assert made.media_type == (SIM_MEDIA_TYPE if target == "sim" else MEDIA_TYPE)
    assert made.members["binding"] == hlo.binding and json.loads(json.dumps(made.members)) == made.members
    assert made.members["neff"]["target"] == target
    for other in CPU_TARGETS:
        assert toolchain.refusal(other) is not None
        with pytest.raises(CompileError):
            toolchain.compile(hlo, other)
    with pytest.raises(CompileError, match="is not written for"):
        toolchain.compile(Text(), target)


def test_a_record_says_what_the_header_does_not(tmp_path: Path) -> None:
    toolchain = NeuronxToolchain(double(tmp_path, version="2.25.3371.0+0123abcd"))
    hlo = program("trn2")
    neff = toolchain.artifact(hlo, toolchain.compile(hlo, "trn2"), "trn2").members["neff"]
    assert (neff["target"], neff["compiler"], neff["sdk"], neff["runtime_floor"]) == (
        "trn2", "2.25.3371.0+0123abcd", "2.30", "2.32.31.0",
    )  # fmt: skip
    assert (neff["lnc"], neff["version"], neff["build"]) == (2, "2.0", "2.25.3371.0+0123abcd")
    assert len(neff["hash"]) == 32 and neff["feature_bits"].startswith("0x")


def test_the_command_line_is_the_documented_one_and_says_every_option(tmp_path: Path) -> None:
    toolchain = NeuronxToolchain(double(tmp_path))
    for target in ("inf2", "trn2"):
        toolchain.compile(program(target), target)
    (_, *first), (_, *second) = journal(tmp_path)
    assert first[:2] == second[:2] == ["compile", "model.hlo.pb"]
    usual = {
        "--framework=XLA", "--model-type=generic", "--auto-cast=none", "--optlevel=2", "--enable-mixed-precision-accumulation",
        "--implicit-integer-downcast=none", "--output=model.neff", "--logfile=log-neuron-cc.txt", "--verbose=info",
    }  # fmt: skip
    assert set(first[2:]) == usual | {"--target=inf2"}
    assert set(second[2:]) == usual | {"--target=trn2", "--logical-nc-config=2", "--native-int64=disabled"}
    assert not [word for word in (*toolchain.flags("inf2"), *toolchain.flags("trn2")) if os.sep in word or "model." in word]


def test_options_follow_the_compiler_s_version() -> None:
    """The int64 options exist from 2.27 on; an older compiler would refuse them."""
    old = options("trn2", "2.26.6360.0")
    assert not [option for option in old if "int64" in option or "downcast" in option]
    assert "--native-int64=disabled" in options("trn2", "2.28.1.0") and release_of("2.28.1.0") is None
    assert len({options(target, BANNER_VERSION) for target in NEURON_TARGETS}) == len(NEURON_TARGETS)
    assert [r.compiler for r in RELEASES] == sorted({r.compiler for r in RELEASES})


FAILURES: dict[str, tuple[dict[str, Any], str, str]] = {
    "instruction limit": (
        {"logfile": "ERROR: [NCC_EVRF007] Instructions generated by compiler 7000000 exceeds 5000000", "exit": 70},
        "deterministic", "NCC_EVRF007: too many instructions",
    ),
    "device memory": ({"say": "[NCC_EOOM001] activations", "exit": 70}, "deterministic", "more device memory"),
    "unsupported": ({"say": "ERROR: [NCC_EVRF001] operator", "exit": 70}, "deterministic", "lacks an operator"),
    "undocumented": ({"say": "[NCC_EXYZ123] something new", "exit": 70}, "deterministic", "list of compiler error codes"),
    "internal": ({"say": "[NCC_ITEN406] internal", "exit": 70}, "unknown", "an internal error of the compiler"),
    "an older compiler's": ({"say": "ERROR [XTP002] internal", "exit": 1}, "unknown", "XTP002"),
    "exit 70 that says nothing": ({"exit": 70}, "resource", "-j 1"),
    "out of memory": ({"signal": "SIGKILL"}, "resource", "-j 1"),
    "disk full": ({"say": "[NCC_EVRF064] OSError: No space left on device", "exit": 70}, "resource", "NCC_EVRF064"),
    "segmentation fault": ({"signal": "SIGSEGV"}, "unknown", "the compiler crashed"),
    "stopped by somebody": ({"signal": "SIGTERM"}, "interrupted", "build again"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_has_its_class_its_advice_and_its_log(name: str, tmp_path: Path) -> None:
    attempt, failure_class, hint = FAILURES[name]
    toolchain = NeuronxToolchain(double(tmp_path, attempts=[attempt]))
    with pytest.raises(CompileError) as caught:
        toolchain.compile(program(), "trn1", workdir=tmp_path)
    assert caught.value.failure_class == failure_class and hint in str(caught.value.hint)
    assert attempt.get("say", attempt.get("logfile", "")) in caught.value.log
    assert "wilson-4x2x2x2-f32-b1@trn1" in caught.value.fact
    assert not list(tmp_path.glob("compile-*"))
    assert parse_neff(toolchain.compile(program(), "trn1")).lnc == 1, "the attempt after the last succeeds"


def test_codes_are_read_from_real_texts() -> None:
    for text, code in (
        ("ERROR 12 [job.HLOToTensorizer.0]: [NCC_EVRF004] Complex data types are not supported", "NCC_EVRF004"),
        ("[XTP003] Instruction count over the threshold (5000000)", "XTP003"),
        ("2026 INFO: [F32] not a code; NCC_ALSO_NOT", None),
    ):
        assert code_of(text) == code
    assert all(code_of(f"[{code}]") == code for code in ADVICE)
    for code, said in ADVICE.items():
        ended = Ended(70, f"[{code}] x", False, 1.0)
        assert (classify_neuronx(ended), advice(ended)) == ("deterministic", f"{code}: {said}")
    assert classify_neuronx(Ended(0, "[NCC_EVRF007] in a warning", False, 1.0)) is None


def test_a_time_limit_kills_the_group(tmp_path: Path) -> None:
    toolchain = NeuronxToolchain(double(tmp_path, attempts=[{"sleep": 60, "child": True}]))
    toolchain.flags("trn1")  # the questions after version and targets are not part of the time
    hlo = program()
    with pytest.raises(CompileError) as caught:
        toolchain.compile(hlo, "trn1", timeout=1.5)
    assert caught.value.failure_class == "timeout" and "raise `timeout`" in str(caught.value.hint)
    assert still_running([row[0] for row in journal(tmp_path)]) == []


def test_an_interrupt_is_not_a_failure_of_the_program(tmp_path: Path) -> None:
    toolchain, hlo = NeuronxToolchain(double(tmp_path, attempts=[{"sleep": 60}])), program()
    caught: list[CompileError] = []

    def one() -> None:
        try:
            toolchain.compile(hlo, "trn1")
        except CompileError as error:
            caught.append(error)

    thread = threading.Thread(target=one)
    thread.start()
    while not journal(tmp_path):
        time.sleep(0.02)
    interrupt_all()
    thread.join()
    assert [error.failure_class for error in caught] == ["interrupted"]


@pytest.mark.parametrize(
    ("script", "fact"),
    [
        ({"output": "sim"}, "is a NEFF-SIM of the compiler's double"),
        ({"output": "none"}, "reported success without making it"),
        ({"output": "truncated"}, "is truncated"),
        ({"lnc": 2}, "another logical-core configuration"),
    ],
    ids=["a simulation", "no file", "a truncated file", "other logical cores"],
)
def test_what_comes_out_is_checked(script: dict[str, Any], fact: str, tmp_path: Path) -> None:
    """The first row is the law that a simulated artifact never stands for a Neuron target, at the compiler's end."""
    with pytest.raises(CompileError) as caught:
        NeuronxToolchain(double(tmp_path, **script)).compile(program(), "trn1")
    assert fact in caught.value.fact and caught.value.failure_class == "unknown"


def test_a_name_with_a_hash_is_found(tmp_path: Path) -> None:
    assert parse_neff(NeuronxToolchain(double(tmp_path, output="renamed")).compile(program(), "trn1")).lnc == 1


def test_it_is_found_on_path_and_run_to_be_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = double(tmp_path)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    found = find_toolchain()
    assert [found.refusal(t) for t in ("inf2", "trn1", "trn2", "trn3")] == [None] * 4
    assert found.identity("inf2")["version"] == BANNER_VERSION and found.identity(native_target())["compiler"] == "zig c++"
    assert journal(tmp_path) == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ({"version": "2.16.372.0+4a9b2326"}, "is older than 2.20"),
        ({"targets": ["inf2", "trn1", "trn2"]}, "compiles for inf2 trn1 trn2"),
        ({"version": "1"}, "does not behave like neuronx-cc"),
    ],
)
def test_a_compiler_that_cannot_serve_says_why(script: dict[str, Any], reason: str, tmp_path: Path) -> None:
    toolchain = NeuronxToolchain(double(tmp_path, **script))
    assert reason in str(toolchain.refusal("trn3"))
    with pytest.raises(CompileError) as caught:
        toolchain.flags("trn3")
    assert "--extra-index-url" in str(caught.value.hint)


PLACES = [(None, "is not installed"), ("1.0.post1", "PyPI's placeholder"), ("2.27.1.0", "not on PATH")]


@pytest.mark.parametrize(("installed", "says"), PLACES)
def test_no_compiler_says_what_is_in_its_place(installed: str | None, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    def version(name: str) -> str:
        if installed is None:
            raise metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr("lqcd_aot.compilers.neuronx.metadata.version", version)
    monkeypatch.setattr("lqcd_aot.compilers.neuronx.shutil.which", lambda *_, **__: None)
    found = find_neuronx()
    assert isinstance(found, Absent) and says in str(found.refusal("trn1")) and "lqcd-aot[neuron]" in str(found.refusal("trn1"))
    with pytest.raises(CompileError, match="is not an executable file"):
        find_neuronx("/nowhere/neuronx-cc")


def test_the_simulator_serves_no_other_target() -> None:
    both = find_toolchain(neuron="sim")
    assert all(both.refusal(target) for target in NEURON_TARGETS)
    assert all(SimToolchain().refusal(target) for target in (*NEURON_TARGETS, *CPU_TARGETS))
    assert FakeToolchain().refusal("sim") is not None
    hlo = program("sim")
    code = both.compile(hlo, "sim", timeout=60)
    assert is_sim(code) and parse_sim(code).hlo == hlo.hlo and parse_sim(code).manifest["simulated"] is True
    assert both.compile(hlo, "sim", timeout=60) == code


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lqcd_aot.doubles.neuronx_cc", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_the_double_refuses_what_the_real_one_would(tmp_path: Path) -> None:
    """Exit status 70 with a code for a program, 2 for a command line; help names commands and targets."""
    good = tmp_path / "good.pb"
    good.write_bytes(program().hlo)
    (tmp_path / "bad.pb").write_bytes(good.read_bytes()[:-3])
    usual = ("--framework", "XLA", "--target", "trn1")
    done = run("compile", "good.pb", *usual, "--output", "x.neff", folder=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "Compiler status PASS") and (tmp_path / "x.neff").exists()
    done = run("compile", "bad.pb", *usual, folder=tmp_path)
    assert done.returncode == 70 and "NCC_EVRF064" in done.stderr and "Compiler status ERROR" in done.stderr
    assert "NCC_EVRF064" in (tmp_path / "log-neuron-cc.txt").read_text()
    assert "NCC_EARG001" in run("compile", "good.pb", *usual, "-lnc", "2", folder=tmp_path).stderr
    assert run("compile", "good.pb", "--framework", "XLA", "--target", "trn9", folder=tmp_path).returncode == 2
    assert run("compile", "good.pb", *usual, "--auto-cast", "some", folder=tmp_path).returncode == 2
    assert "trn2" in run("compile", "--help", folder=tmp_path).stdout
    assert "dot" in run("list-operators", "--framework", "XLA", folder=tmp_path).stdout.split()
    assert run("--version", folder=tmp_path).stdout.strip() == f"NeuronX Compiler version {BANNER_VERSION}"
