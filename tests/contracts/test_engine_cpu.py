"""The CPU engine: nothing is loaded unverified, nothing is left behind, nobody gets another artifact's code."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lqcd_runtime.bundle import Bundle, open_bundle
from lqcd_runtime.engines import library
from lqcd_runtime.engines.cpu import CpuArtifact, default_threads, load
from lqcd_runtime.engines.memory import HUGE, Buffer
from lqcd_runtime.errors import CorruptError, EngineError, LqcdError, TooNewError, UsageError
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host
from tests.made import bundle_bytes, record
from tests.tiny import compile_tiny, tiny_entry

SPEC = Spec("wilson", "2x2x2x3", "float64", batch=2)
OTHERS = [SPEC.replace(lattice=(2, 2, 3, n)) for n in (2, 3)]


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> dict[Spec, bytes]:
    folder = tmp_path_factory.mktemp("tiny")
    return {spec: compile_tiny(folder, spec) for spec in [SPEC, *OTHERS]}


@pytest.fixture
def bundle(tmp_path: Path, codes: dict[Spec, bytes]) -> Bundle:
    target = this_host().best_target()
    assert target is not None
    path = tmp_path / "tiny.lqcd"
    path.write_bytes(bundle_bytes([record(s, target, c) for s, c in codes.items()], codes.values()))
    return open_bundle(path)


def left_behind() -> dict[str, Any]:
    """What a load could leave: descriptors, mappings, temporary files."""
    gc.collect()
    mappings = Path("/proc/self/maps").read_text(encoding="ascii", errors="replace")
    return {
        "fds": sorted(str(p.readlink()) for p in Path("/proc/self/fd").iterdir() if p.is_symlink()),
        "lqcd mappings": [line for line in mappings.splitlines() if "memfd:lqcd" in line or ".lqcd-" in line],
        "files": sorted(p.name for p in Path(tempfile.gettempdir()).glob(".lqcd-*")),
    }


def apply_entry(artifact: CpuArtifact, threads: int = 1, diagonal: float = 2.0) -> None:
    size = artifact.bytes_of(1)
    a, b, u, w = Buffer(size), Buffer(size), Buffer(64), Buffer(8)
    scalars = (ctypes.c_double * 8)(diagonal)
    artifact.call("lqcd_apply", a.address, b.address, u.address, None, w.address, scalars, threads=threads)
    assert ctypes.c_double.from_address(w.address).value == threads


def test_pinning_is_asked_for_by_a_setting(codes: dict[Spec, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative number of threads reaches the artifact; nothing else than 0 and 1 is understood."""
    artifact = load(codes[SPEC], tiny_entry(SPEC, codes[SPEC]))
    size = artifact.bytes_of(1)
    a, b, u, w = Buffer(size), Buffer(size), Buffer(64), Buffer(8)
    for word, threads, seen in (("1", 2, -2), ("0", 3, 3), ("", 4, 4)):
        monkeypatch.setenv("LQCD_RUNTIME_PIN", word)
        arguments = a.address, b.address, u.address, None, w.address, (ctypes.c_double * 8)(2.0)
        artifact.call("lqcd_apply", *arguments, threads=threads)
        assert ctypes.c_double.from_address(w.address).value == seen
    monkeypatch.setenv("LQCD_RUNTIME_PIN", "yes")
    with pytest.raises(UsageError, match="LQCD_RUNTIME_PIN"):
        artifact.call("lqcd_apply", *arguments, threads=5)


def test_five_hundred_loads_leave_nothing(codes: dict[Spec, bytes]) -> None:
    entry = tiny_entry(SPEC, codes[SPEC])
    other = left_behind()  # what earlier tests of this process hold, such as the measuring loops of the bench
    apply_entry(load(codes[SPEC], entry), threads=2)
    before, lines = left_behind(), len(Path("/proc/self/maps").read_bytes().splitlines())
    for _ in range(500):
        artifact = load(codes[SPEC], entry)
        assert artifact.via == "memfd"
        apply_entry(artifact, threads=3)
        del artifact
    assert left_behind() == before
    assert before["lqcd mappings"] == other["lqcd mappings"] and before["files"] == other["files"]
    # The allocator may keep an arena; 500 leaked libraries would be 2,000 mappings.
    assert len(Path("/proc/self/maps").read_bytes().splitlines()) <= lines + 20


def test_descriptor_numbers_are_not_reused_while_a_library_lives(codes: dict[Spec, bytes]) -> None:
    """glibc knows libraries by path: /proc/self/fd/7 twice would be the first library twice."""
    live = {spec: load(code, tiny_entry(spec, code)) for spec, code in codes.items()}
    for _ in range(8):
        for spec, code in codes.items():
            del live[spec]
            live[spec] = load(code, tiny_entry(spec, code))
            for each, artifact in live.items():
                assert artifact.bytes_of(1) == 16 * 12 * each.batch * int(np.prod(each.lattice))


@pytest.mark.parametrize("refusal", ["memfd_create", "dlopen"])
def test_where_memfd_is_forbidden_a_private_folder_serves_and_vanishes(
    codes: dict[Spec, bytes], monkeypatch: pytest.MonkeyPatch, refusal: str
) -> None:
    seen: list[tuple[int, int]] = []
    real = ctypes.CDLL

    def dlopen(path: str, **options: Any) -> ctypes.CDLL:
        if path.startswith("/proc/"):
            raise OSError("failed to map segment from shared object")
        seen.append((Path(path).stat().st_mode & 0o777, Path(path).parent.stat().st_mode & 0o777))
        return real(path, **options)

    def forbidden(*_: object) -> int:
        raise PermissionError(1, "Operation not permitted")

    if refusal == "memfd_create":
        monkeypatch.setattr(os, "memfd_create", forbidden)
    monkeypatch.setattr(library.ctypes, "CDLL", dlopen)
    before = left_behind()
    artifact = load(codes[SPEC], tiny_entry(SPEC, codes[SPEC]))
    apply_entry(artifact)
    assert artifact.via == tempfile.gettempdir()
    assert seen == [(0o500, 0o700)]
    assert left_behind()["files"] == before["files"] and left_behind()["fds"] == before["fds"]
    del artifact
    assert left_behind() == before


def test_where_nothing_may_be_executed_every_refusal_is_told(codes: dict[Spec, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def dlopen(path: str, **_: Any) -> ctypes.CDLL:
        raise OSError(f"{path}: failed to map segment")

    monkeypatch.setattr(library.ctypes, "CDLL", dlopen)
    before = left_behind()
    with pytest.raises(EngineError, match="cannot be loaded") as caught:
        load(codes[SPEC], tiny_entry(SPEC, codes[SPEC]))
    assert "memfd" in str(caught.value) and tempfile.gettempdir() in str(caught.value)
    assert left_behind() == before


def make_changed_byte(code: bytes, folder: Path) -> tuple[bytes, bytes]:
    return code, code[:-1] + bytes([code[-1] ^ 1])


def make_text(code: bytes, folder: Path) -> tuple[bytes, bytes]:
    return b"not machine code", b"not machine code"


def make_stub_elf(code: bytes, folder: Path) -> tuple[bytes, bytes]:
    return code[:200], code[:200]


def make_wrong_identity(code: bytes, folder: Path) -> tuple[bytes, bytes]:
    data = compile_tiny(folder, SPEC, identity="wilson-9x9x9x9-f64-b1@x86-64-v2")
    return data, data


def make_later_abi(code: bytes, folder: Path) -> tuple[bytes, bytes]:
    data = compile_tiny(folder, SPEC, abi=2)
    return data, data


def make_older_abi(code: bytes, folder: Path) -> tuple[bytes, bytes]:
    data = compile_tiny(folder, SPEC, abi=0)
    return data, data


def make_incomplete(code: bytes, folder: Path) -> tuple[bytes, bytes]:
    data = compile_tiny(folder, SPEC, extra=("-DWITHOUT_APPLY",))
    return data, data


def make_stranger(code: bytes, folder: Path) -> tuple[bytes, bytes]:
    libc = next(
        line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libc.so" in line or "libc-" in line
    )
    data = Path(libc).read_bytes()
    return data, data


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (make_changed_byte, CorruptError, "does not match its digest"),
        (make_text, EngineError, "is no shared object"),
        (make_stub_elf, EngineError, "cannot be loaded"),
        (make_wrong_identity, EngineError, "is mislabelled"),
        (make_later_abi, TooNewError, "has another ABI"),
        (make_older_abi, EngineError, "has another ABI"),
        (make_incomplete, EngineError, "has no entry point lqcd_apply"),
        (make_stranger, EngineError, "is not one of ours"),
    ],
)
def test_what_is_not_the_artifact_of_its_entry_is_refused(
    codes: dict[Spec, bytes],
    tmp_path: Path,
    make: Callable[[bytes, Path], tuple[bytes, bytes]],
    error: type[LqcdError],
    words: str,
) -> None:
    recorded, given = make(codes[SPEC], tmp_path)
    before = left_behind()
    with pytest.raises(error, match=words):
        load(given, tiny_entry(SPEC, recorded))
    assert left_behind() == before


def test_a_refused_call_is_an_error(codes: dict[Spec, bytes]) -> None:
    with pytest.raises(EngineError, match="lqcd_apply refused its arguments"):
        apply_entry(load(codes[SPEC], tiny_entry(SPEC, codes[SPEC])), diagonal=666.0)


def test_one_artifact_is_loaded_once_and_unloaded_with_its_last_user(bundle: Bundle) -> None:
    before = left_behind()
    links = np.ones((2, 2, 2, 3, 4, 3, 3), np.complex128)
    first = bundle.operator("wilson", gauge=links, mass=-2.0, batch=2)
    second = bundle.operator("wilson", gauge=links, mass=-1.0, batch=2)
    assert first.artifact is second.artifact and first.packed is second.packed
    assert bundle.operator("wilson", gauge=links, mass=-1.0, batch=2, t_boundary=-1).packed is not first.packed
    assert bundle.operator("wilson", gauge=2 * links, mass=-1.0, batch=2).packed is not first.packed
    del first
    second.apply(np.zeros((2, 2, 2, 3, 4, 3), np.complex128))
    del second
    assert left_behind() == before


def test_a_closed_bundle_leaves_its_operators_usable(bundle: Bundle) -> None:
    D = bundle.operator("wilson", gauge=np.ones((2, 2, 2, 3, 4, 3, 3), np.complex128), mass=-2.0, batch=2)
    bundle.close()
    assert np.array_equal(D.apply(np.ones((2, 2, 2, 3, 4, 3), complex)), np.full((2, 2, 2, 3, 4, 3), 3 + 0j))


def test_after_a_fork_the_child_has_no_pools_and_no_held_locks(bundle: Bundle) -> None:
    """Another thread holds every lock at the moment of the fork; the child must neither wait nor use the parent's pool."""
    D = bundle.operator("wilson", gauge=np.ones((2, 2, 2, 3, 4, 3, 3), np.complex128), mass=-2.0, batch=2, threads=2)
    psi = np.ones((2, 2, 2, 3, 4, 3), complex)
    expected = D.apply(psi)
    parent_pool = D.artifact._pools[2]
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with D._busy, parent_pool.lock, D.artifact._pools_lock:
            held.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            no_pools = not D.artifact._pools
            code = 0 if no_pools and np.array_equal(D.apply(psi), expected) and D.artifact._pools[2] is not parent_pool else 2
        finally:
            os._exit(code)
    release.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert D.artifact._pools[2] is parent_pool and np.array_equal(D.apply(psi), expected)


def test_loading_starts_no_process(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a child process")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "fork", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse)
    monkeypatch.setattr(os, "system", refuse)
    D = bundle.operator("wilson", gauge=np.ones((2, 2, 2, 3, 4, 3, 3), np.complex128), mass=-2.0, batch=2)
    assert D.artifact.via == "memfd"


def test_buffers_are_aligned_zero_private_and_freed() -> None:
    before = len(Path("/proc/self/maps").read_bytes().splitlines())
    for size in (0, 1, 64, 4097, HUGE - 1, HUGE, 3 * HUGE + 5):
        buffer = Buffer(size)
        assert buffer.address % (HUGE if size >= HUGE else 4096) == 0
        assert ctypes.string_at(buffer.address, size) == bytes(size)
        if size:
            ctypes.memset(buffer.address + size - 1, 7, 1)
            child = os.fork()
            if child == 0:
                ctypes.memset(buffer.address + size - 1, 9, 1)
                os._exit(0)
            os.waitpid(child, 0)
            assert ctypes.string_at(buffer.address + size - 1, 1) == b"\7"
    del buffer
    gc.collect()
    assert len(Path("/proc/self/maps").read_bytes().splitlines()) <= before + 2


def test_threads_by_default_follow_the_work_and_the_cpus() -> None:
    cpus = len(os.sched_getaffinity(0))
    assert default_threads(1) == 1 and default_threads(511) == 1
    assert default_threads(1 << 30) == cpus
