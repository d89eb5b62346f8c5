"""Every toolchain keeps one contract: identity by content, the same bytes from anywhere, nothing left behind.

The suite runs over the pinned zig, the machine's g++ where there is one, and the fake.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lqcd_aot.compilers import FakeToolchain, Toolchain, find_toolchain
from lqcd_aot.compilers.base import COMMON_FLAGS, FOLDER
from lqcd_runtime.errors import CompileError
from lqcd_runtime.target import CPU_TARGETS, this_host
from tests.contracts.scripted_cc import Text, native_target, scripted_cc

SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>
#ifndef FACTOR
#define FACTOR 1
#endif
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT int is_nan(double x) { return x != x; }
EXPORT int is_finite(double x) { return x - x == 0; }
EXPORT double multiply_add(double a, double b, double c) { return a * b + c; }
EXPORT void* allocate(uint64_t n) { return malloc(n); }
EXPORT const char* file() { return __FILE__; }
void hidden() {}
EXPORT void scale(double* a, int64_t n) { for (int64_t i = 0; i < n; ++i) a[i] *= FACTOR; }
"""
PROGRAM = Text(SOURCE)
NAMES = ["zig", "fake"] + (["g++"] if shutil.which("g++") else [])


@pytest.fixture(autouse=True)
def usual_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests move the cache with XDG_CACHE_HOME, which LQCD_AOT_CACHE would override."""
    monkeypatch.delenv("LQCD_AOT_CACHE", raising=False)


@pytest.fixture(params=NAMES)
def toolchain(request: pytest.FixtureRequest) -> Toolchain:
    makers = {
        "zig": lambda: find_toolchain(neuron="sim"), "fake": FakeToolchain, "g++": lambda: find_toolchain("g++", "sim"),
    }  # fmt: skip
    made: Toolchain = makers[request.param]()
    return made


def test_it_is_a_toolchain(toolchain: Toolchain) -> None:
    assert isinstance(toolchain, Toolchain)


def test_identity_is_content_and_nothing_else(toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = toolchain.identity(native_target())
    assert {"compiler", "version"} <= set(identity)
    assert all(isinstance(k, str) and isinstance(v, str) and v and os.sep not in v for k, v in identity.items())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert toolchain.identity(native_target()) == identity


def test_flags_hold_no_path_and_never_hide_nan(toolchain: Toolchain) -> None:
    flags = toolchain.flags(native_target())
    assert not [f for f in flags if os.sep in f]
    assert not {"-ffast-math", "-ffinite-math-only", "-Ofast", "-march=native"} & set(flags)


def test_flags_differ_between_targets(toolchain: Toolchain) -> None:
    targets = [t for t in CPU_TARGETS if toolchain.refusal(t) is None]
    assert len({toolchain.flags(t) for t in targets}) == len(targets)


def test_a_target_that_is_no_cpu_is_refused_with_the_reason(toolchain: Toolchain) -> None:
    refusal = str(toolchain.refusal("trn2"))
    assert refusal == "trn2 is not a CPU target" or refusal.startswith("--compiler sim builds only")
    with pytest.raises(CompileError, match="trn2"):
        toolchain.compile(PROGRAM, "trn2")


def test_same_bytes_from_two_folders_and_nothing_left_behind(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every target it takes; with poisoned compiler variables in the environment the second time."""
    poison = tmp_path / "include"
    poison.mkdir()
    (poison / "stdint.h").write_text("#error the environment reached the compiler\n")
    folders = [tmp_path / "a", tmp_path / "another folder"]
    for folder in folders:
        folder.mkdir()
    for target in (t for t in CPU_TARGETS if toolchain.refusal(t) is None):
        first = toolchain.compile(PROGRAM, target, timeout=120, workdir=folders[0])
        with monkeypatch.context() as environment:
            environment.chdir(poison)
            for name in ("CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH"):
                environment.setenv(name, str(poison))
            second = toolchain.compile(PROGRAM, target, timeout=120, workdir=folders[1])
        assert first == second, target
        assert b"another folder" not in second and str(tmp_path).encode() not in first
    assert [list(folder.iterdir()) for folder in folders] == [[], []]


def test_constants_change_the_bytes(toolchain: Toolchain) -> None:
    target = native_target()
    one, two = (Text(SOURCE, digest=str(n) * 64, constants={"FACTOR": str(n)}) for n in (1, 2))
    assert toolchain.compile(one, target) != toolchain.compile(two, target)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "fake"])
def test_the_artifact_needs_libc_alone_and_exports_only_what_is_marked(name: str, tmp_path: Path) -> None:
    from elftools.elf.elffile import ELFFile

    toolchain = find_toolchain(None if name == "zig" else name)
    path = tmp_path / "artifact.so"
    path.write_bytes(toolchain.compile(PROGRAM, native_target()))
    with path.open("rb") as f:
        elf = ELFFile(f)
        needed = {t.needed for t in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")}
        symbols = {s.name for s in elf.get_section_by_name(".dynsym").iter_symbols() if s["st_shndx"] != "SHN_UNDEF"}
        assert elf.get_section_by_name(".note.gnu.build-id") is None
    assert needed == {"libc.so.6"}
    assert symbols >= {"is_nan", "is_finite", "multiply_add", "allocate", "scale"} and "hidden" not in str(symbols)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "fake"])
def test_nan_stays_visible_and_multiply_add_is_fused(name: str, tmp_path: Path) -> None:
    """(1 + 2^-27)(1 - 2^-27) - 1 is -2^-54 when fused and 0 when the product is rounded first."""
    target = this_host().best_target()
    assert target is not None
    path = tmp_path / "artifact.so"
    path.write_bytes(find_toolchain(None if name == "zig" else name).compile(PROGRAM, target))
    library = ctypes.CDLL(str(path))
    library.multiply_add.restype = ctypes.c_double
    library.file.restype = ctypes.c_char_p
    nan, inf = ctypes.c_double(float("nan")), ctypes.c_double(float("inf"))
    assert library.is_nan(nan) == 1 and library.is_nan(inf) == 0
    assert library.is_finite(nan) == 0 and library.is_finite(inf) == 0 and library.is_finite(ctypes.c_double(1)) == 1
    step = 2.0**-27
    fused = library.multiply_add(ctypes.c_double(1 + step), ctypes.c_double(1 - step), ctypes.c_double(-1))
    assert fused == (0.0 if target == "x86-64-v2" else -(2.0**-54))
    assert library.file() == b"entry.cpp"


def test_common_flags_map_the_private_folder_away() -> None:
    assert f"-ffile-prefix-map={FOLDER}=." in COMMON_FLAGS


def test_zig_serves_every_cpu_target() -> None:
    assert [find_toolchain().refusal(t) for t in CPU_TARGETS] == [None] * len(CPU_TARGETS)


def test_zig_many_at_once_on_a_fresh_cache_give_one_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shared cache is built by the first and locked against the others; its place does not show in the bytes."""
    usual = find_toolchain().compile(PROGRAM, "x86-64-v3")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda _: find_toolchain().compile(PROGRAM, "x86-64-v3", timeout=300), range(8)))
    assert set(codes) == {usual}


@pytest.mark.parametrize("damage", ["not a folder", "inside"])
def test_zig_survives_a_damaged_or_unwritable_shared_cache(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = find_toolchain().compile(PROGRAM, "x86-64-v3")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if damage == "inside":
        (tmp_path / "lqcd-aot" / "zig").mkdir(parents=True)
        for name in "bhoz":
            (tmp_path / "lqcd-aot" / "zig" / name).write_text("a file where zig wants a folder")
    else:
        (tmp_path / "lqcd-aot").write_text("a file where we want a folder")
    assert find_toolchain().compile(PROGRAM, "x86-64-v3", timeout=300) == usual


def test_no_zig_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CompileError, match="is not installed") as caught:
        find_toolchain()
    assert "pip install ziglang" in str(caught.value.hint) and "--cc" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["absent", "not executable"])
def test_no_compiler_at_the_path_says_so(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "g++"
    if kind == "not executable":
        path.write_text("#!/bin/sh\n")
    with pytest.raises(CompileError, match="is not an executable file") as caught:
        find_toolchain(str(path))
    assert "pip install ziglang" in str(caught.value.hint)


def test_a_program_that_is_no_compiler_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"does not behave like clang\+\+ or g\+\+"):
        find_toolchain("/bin/false").identity(native_target())


def test_another_architecture_is_refused_for_cc(tmp_path: Path) -> None:
    other = "aarch64" if native_target() != "aarch64" else "x86-64-v3"
    toolchain = find_toolchain(str(scripted_cc(tmp_path, "exit 0")))
    assert "scripted-g++ compiles for" in str(toolchain.refusal(other))
    with pytest.raises(CompileError, match="cannot compile for it") as caught:
        toolchain.flags(other)
    assert "--cc" in str(caught.value.hint)


def test_facts_follow_the_file_and_survive_a_broken_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another content is another identity; a cache of nonsense, or one that cannot be written, changes nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("lqcd_aot.compilers.facts._memory", {})
    path = scripted_cc(tmp_path, "exit 0")
    first = find_toolchain(str(path)).identity(native_target())
    facts = tmp_path / "cache" / "lqcd-aot" / "facts.json"
    assert f"c++ {path}" in json.loads(facts.read_text())["files"]
    for nonsense in ("", "[]", '{"schema": "lqcd-aot/facts/v1", "files": [1]}'):
        facts.write_text(nonsense)
        monkeypatch.setattr("lqcd_aot.compilers.facts._memory", {})
        assert find_toolchain(str(path)).identity(native_target()) == first
    path.write_text(path.read_text() + "# another content\n")
    second = find_toolchain(str(path)).identity(native_target())
    assert second["binary_sha256"] != first["binary_sha256"] and second["version"] == first["version"]
    monkeypatch.setattr("lqcd_aot.compilers.facts._memory", {})
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no-such-folder")
    assert find_toolchain(str(path)).identity(native_target()) == second


def test_identity_of_zig_is_remembered_between_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process reads the digest instead of the 180 MB: it must not run or hash the binary at all."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("lqcd_aot.compilers.facts._memory", {})
    identity = find_toolchain().identity(native_target())
    monkeypatch.setattr("lqcd_aot.compilers.facts._memory", {})
    monkeypatch.setattr("lqcd_aot.compilers.zig.sha256_file", lambda path: pytest.fail(f"hashed {path}"))
    assert find_toolchain().identity(native_target()) == identity


def test_the_fake_counts_and_fails_by_script(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    fake = FakeToolchain(failures={"thing@here": ["resource", "keyboard"]}, journal=journal)
    with pytest.raises(CompileError) as caught:
        fake.compile(PROGRAM, "x86-64-v3")
    assert caught.value.failure_class == "resource"
    with pytest.raises(KeyboardInterrupt):
        fake.compile(PROGRAM, "x86-64-v3")
    assert fake.compile(PROGRAM, "x86-64-v3") != FakeToolchain("2").compile(PROGRAM, "x86-64-v3")
    assert fake.compiled == ["thing@here"] * 3 and journal.read_text() == "thing@here\n" * 3
    with pytest.raises(CompileError) as caught:
        FakeToolchain(delay=0.05).compile(PROGRAM, "x86-64-v3", timeout=0.01)
    assert caught.value.failure_class == "timeout"
