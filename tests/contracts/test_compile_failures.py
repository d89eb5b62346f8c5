"""A compile that fails says why, by class; one that is stopped leaves neither processes nor files."""

from __future__ import annotations

import errno
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lqcd_aot.compilers import find_toolchain, interrupt_all
from lqcd_aot.compilers.failure import LOG_LINES, classify
from lqcd_aot.compilers.process import Ended
from lqcd_runtime.errors import CompileError
from tests.contracts.scripted_cc import Text, native_target, noted_pids, scripted_cc, still_running

SCRIPTS = {
    "a diagnostic": ("echo 'entry.cpp:3:1: error: no such thing'; exit 1", "deterministic"),
    "an undefined symbol": ("echo 'ld.lld: error: undefined symbol: foo'; exit 1", "deterministic"),
    "an unknown flag": ("echo 'clang: error: unknown argument: -fno-such'; exit 1", "deterministic"),
    "killed by the kernel": ("kill -9 $$", "resource"),
    "a child killed by the kernel": ("echo 'g++: fatal error: Killed signal terminated program cc1plus'; exit 1", "resource"),
    "a full disk": ("echo 'entry.cpp:1:1: fatal error: error writing to x.s: No space left on device'; exit 1", "resource"),
    "no memory": ("echo 'cc1plus: out of memory allocating 65536 bytes'; exit 1", "resource"),
    "zig without memory": ("echo 'error: OutOfMemory'; exit 1", "resource"),
    "stopped from outside": ("kill -TERM $$", "interrupted"),
    "a crash": ("echo 'entry.cpp:1:1: internal compiler error: Segmentation fault'; exit 1", "unknown"),
    "a crash by signal": ("kill -SEGV $$", "unknown"),
    "an unreadable message": ("echo 'the moon is full'; exit 1", "unknown"),
    "success without a file": ("exit 0", "unknown"),
    "success with a text file": ("echo hello > $out", "unknown"),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_each_failure_has_its_class_and_leaves_nothing(case: str, tmp_path: Path) -> None:
    body, failure_class = SCRIPTS[case]
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(CompileError) as caught:
        find_toolchain(str(scripted_cc(tmp_path, body))).compile(Text(), native_target(), timeout=60, workdir=work)
    assert caught.value.failure_class == failure_class
    assert "artifact thing@here: " in str(caught.value)
    assert list(work.iterdir()) == []


WRONG_PROGRAMS = {
    "#error": "#error this cannot be built\n",
    "syntax": "int f( {\n",
    "include": '#include "absent.hpp"\n',
    "undefined symbol": 'extern "C" int g(); __attribute__((visibility("default"))) int f() { return g(); }\n',
}


@pytest.mark.parametrize("name", ["zig", *(["g++"] if shutil.which("g++") else [])])
@pytest.mark.parametrize("case", WRONG_PROGRAMS)
def test_real_compilers_refuse_a_wrong_program_for_good(name: str, case: str) -> None:
    with pytest.raises(CompileError) as caught:
        find_toolchain(None if name == "zig" else name).compile(Text(WRONG_PROGRAMS[case]), native_target(), timeout=120)
    assert caught.value.failure_class == "deterministic"
    assert "the compiler refused the program" in str(caught.value)


def test_the_log_is_kept_whole_and_shown_in_part(tmp_path: Path) -> None:
    body = "i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); done; echo 'entry.cpp:1:1: error: end'; exit 1"
    with pytest.raises(CompileError) as caught:
        find_toolchain(str(scripted_cc(tmp_path, body))).compile(Text(), native_target())
    assert caught.value.log.count("\n") == 51
    shown = str(caught.value)
    assert "line 30\n" not in shown and "line 31\n" in shown and "entry.cpp:1:1: error: end" in shown
    assert len(caught.value.details) == LOG_LINES + 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0, None), (None, "timeout"), (-9, "resource"), (137, "resource"), (-2, "interrupted"), (130, "interrupted"),
        (-15, "interrupted"), (-11, "unknown"), (1, "unknown"),
    ],
)  # fmt: skip
def test_exit_codes_without_words(code: int | None, expected: str | None) -> None:
    assert classify(Ended(code, "", False, 0.0)) == expected
    assert classify(Ended(code, "", True, 0.0)) == "interrupted"


def test_a_full_work_folder_is_a_lack_of_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    toolchain = find_toolchain(str(scripted_cc(tmp_path, "exit 0")))
    toolchain.flags(native_target())
    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(CompileError, match="No space left") as caught:
        toolchain.compile(Text(), native_target())
    assert caught.value.failure_class == "resource"


FAMILY = 'sleep 300 & echo $! >> "$notes/pids"; (trap "" TERM; sleep 300) & echo $! >> "$notes/pids"; sleep 300'


def test_a_timeout_kills_the_whole_family(tmp_path: Path) -> None:
    """The compiler, its child and a grandchild that ignores SIGTERM."""
    work = tmp_path / "work"
    work.mkdir()
    toolchain = find_toolchain(str(scripted_cc(tmp_path, FAMILY)))
    toolchain.identity(native_target())
    with pytest.raises(CompileError, match=r"exceeded the time limit of 1\.5 s") as caught:
        toolchain.compile(Text(), native_target(), timeout=1.5, workdir=work)
    assert caught.value.failure_class == "timeout"
    assert still_running(noted_pids(tmp_path, at_least=3)) == []
    assert list(work.iterdir()) == []


def test_what_a_successful_compile_leaves_running_is_killed_too(tmp_path: Path) -> None:
    with pytest.raises(CompileError):
        find_toolchain(str(scripted_cc(tmp_path, 'sleep 300 & echo $! >> "$notes/pids"; exit 0'))).compile(
            Text(), native_target()
        )
    assert still_running(noted_pids(tmp_path, at_least=2)) == []


CTRL_C = """
import sys
from lqcd_aot.compilers import find_toolchain
from tests.contracts.scripted_cc import Text, native_target
try:
    find_toolchain(sys.argv[1]).compile(Text(), native_target(), workdir=sys.argv[2])
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_passes_through_after_the_family_is_dead(tmp_path: Path, repo_root: Path) -> None:
    """KeyboardInterrupt, not CompileError: nobody can record it as a failure of the program."""
    work = tmp_path / "work"
    work.mkdir()
    compiler = scripted_cc(tmp_path, FAMILY)
    command = [sys.executable, "-c", CTRL_C, str(compiler), str(work)]
    with subprocess.Popen(command, cwd=repo_root, stderr=subprocess.PIPE, text=True) as process:
        pids = noted_pids(tmp_path, at_least=3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert still_running(pids) == []
    assert list(work.iterdir()) == []


def test_interrupt_all_stops_compiles_that_wait_in_threads(tmp_path: Path) -> None:
    caught: list[CompileError] = []

    def compile_one() -> None:
        try:
            find_toolchain(str(compiler)).compile(Text(), native_target())
        except CompileError as error:
            caught.append(error)

    compiler = scripted_cc(tmp_path, FAMILY)
    threads = [threading.Thread(target=compile_one) for _ in range(2)]
    for thread in threads:
        thread.start()
    pids = noted_pids(tmp_path, at_least=6)
    assert interrupt_all() == 2
    for thread in threads:
        thread.join(timeout=60)
    assert [error.failure_class for error in caught] == ["interrupted"] * 2
    assert still_running(pids) == []
