"""The door of lqcd_runtime: few names, each a function whatever was imported before; and `python -m lqcd_runtime`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lqcd_runtime
from lqcd_runtime.__main__ import main
from tests.made import small_bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "x.lqcd"
    path.write_bytes(small_bundle())
    return path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-I", "-m", "lqcd_runtime", *arguments], capture_output=True, text=True, check=False)


def test_at_most_thirteen_names_and_every_one_callable() -> None:
    assert len(lqcd_runtime.__all__) <= 13
    assert set(lqcd_runtime.__all__) == set(lqcd_runtime._DOOR) <= set(dir(lqcd_runtime))
    for name in lqcd_runtime.__all__:
        assert callable(getattr(lqcd_runtime, name)) and getattr(lqcd_runtime, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'compile'"):
        _ = lqcd_runtime.compile  # type: ignore[attr-defined]


def test_no_module_hides_a_function_of_the_door() -> None:
    folder = Path(lqcd_runtime.__file__).parent
    modules = {p.stem for p in folder.iterdir() if p.suffix == ".py" or p.is_dir()}
    assert not modules & set(lqcd_runtime.__all__)


def test_importing_the_door_loads_neither_numpy_nor_json_nor_itself() -> None:
    code = "import sys; before = set(sys.modules); import lqcd_runtime; print(*sorted(set(sys.modules) - before))"
    out = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(out) - {"__future__"} == {"lqcd_runtime"}  # __future__ is there before where an import hook took it


def test_opening_and_selecting_load_no_numpy(bundle: Path) -> None:
    code = (
        "import sys, lqcd_runtime as l; from lqcd_runtime.signature import Spec\n"
        f"l.open({str(bundle)!r}).select(Spec('wilson', '4x4x4x4'))\n"
        "print(*sorted(m for m in ('numpy', 'ctypes', 'pathlib', 'dataclasses', 'typing', 'inspect') if m in sys.modules))"
    )
    bare = subprocess.run([sys.executable, "-I", "-c", code.splitlines()[-1].replace("print", "import sys; print")],
                          capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    out = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(out) == set(bare)


def test_list_tells_what_runs_here(bundle: Path) -> None:
    rows = json.loads(run(str(bundle), "list", "--json").stdout)["entries"]
    assert len(rows) == 4
    text = run(str(bundle), "list").stdout.splitlines()
    assert len(text) == 4 and all("bytes" in line for line in text)
    assert {r["name"] for r in rows if r["refusal"] is not None} >= {
        "wilson-4x4x4x4-f64-b1@aarch64"
    } or "aarch64" in os.uname().machine


def test_verify_and_selfcheck_of_unchecked_artifacts(bundle: Path) -> None:
    report = json.loads(run(str(bundle), "verify", "--json").stdout)
    assert report == {"path": str(bundle), "bytes": bundle.stat().st_size, "verified": True, "signatures": []}
    done = run(str(bundle), "selfcheck", "--json")
    assert done.returncode == 20 and "none of these artifacts could be replayed" in done.stderr
    assert "NOTHING WAS CHECKED: 0 passed, 0 failed, 4 skipped" in run(str(bundle), "selfcheck").stdout
    checks = json.loads(done.stdout)
    assert checks["skipped"] == 4 and checks["passed"] == checks["failed"] == 0
    assert all(c["reason"] for c in checks["checks"])


def test_selfcheck_verifies_every_byte_first(bundle: Path, tmp_path: Path) -> None:
    """One changed byte of code that is not even run here."""
    data = bytearray(bundle.read_bytes())
    data[data.rindex(b"code of ")] ^= 1
    changed = tmp_path / "changed.lqcd"
    changed.write_bytes(data)
    done = run(str(changed), "selfcheck")
    assert done.returncode == 12 and "expected:" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("verb", ["list", "verify", "selfcheck"])
@pytest.mark.parametrize(
    ("what", "exit_code"), [("absent", 1), ("empty", 12), ("truncated", 12), ("changed", 12), ("folder", 10), ("text", 12)]
)
def test_bad_input_is_one_clean_message(bundle: Path, tmp_path: Path, verb: str, what: str, exit_code: int) -> None:
    data = bundle.read_bytes()
    path = {
        "absent": tmp_path / "absent.lqcd", "empty": tmp_path / "empty", "truncated": tmp_path / "short",
        "changed": tmp_path / "changed", "folder": tmp_path, "text": tmp_path / "text",
    }[what]  # fmt: skip
    at = data.index(b"x86-64-v2")
    content = {"empty": b"", "truncated": data[:-1], "changed": data[:at] + b"y" + data[at + 1 :], "text": b"hello\n" * 100}
    if what in content:
        path.write_bytes(content[what])
    done = run(str(path), verb)
    assert done.returncode == exit_code and done.stdout == ""
    assert "Traceback" not in done.stderr and str(path) in done.stderr.splitlines()[0]
    as_json = run(str(path), verb, "--json")
    assert as_json.returncode == exit_code and as_json.stderr == ""
    assert json.loads(as_json.stdout)["exit_code"] == exit_code


def test_usage_errors_are_two() -> None:
    for arguments in ((), ("x.lqcd",), ("x.lqcd", "explode")):
        done = run(*arguments)
        assert done.returncode == 2 and "Traceback" not in done.stderr


def test_ctrl_c_is_130(bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(main.__globals__["VERBS"], "list", interrupted)
    assert main([str(bundle), "list"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_that_hangs_up_is_no_traceback(bundle: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-I", "-u", "-m", "lqcd_runtime", str(bundle), "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait() in (0, 1) and "Traceback" not in error
