"""What a benchmark says of a machine: CPUs, caches, the measuring loops themselves, the guard. No figure of speed is asserted."""

from __future__ import annotations

import ctypes
import io
import json
import os
import platform
import random
from collections.abc import Iterator
from pathlib import Path

import capstone
import pytest
from elftools.elf.elffile import ELFFile

from lqcd_aot.bench import guard, machine, probes
from lqcd_aot.bench.machine import Level
from lqcd_aot.bench.roofline import probe_size
from lqcd_aot.compilers import find_toolchain
from lqcd_runtime.errors import UsageError
from lqcd_runtime.target import CPU_TARGETS, this_host


def plant(root: Path, cpus: int, siblings: int = 1, l3_sharers: int = 4) -> Path:
    """sysfs of a machine whose neighbouring CPUs share a core."""
    for cpu in range(cpus):
        core = [c for c in range(cpus) if c // siblings == cpu // siblings]
        shared = range(cpu // l3_sharers * l3_sharers, cpu // l3_sharers * l3_sharers + l3_sharers)
        topology = root / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(",".join(map(str, core)) + "\n")
        caches = (
            ("1", "Data", "48K", core),
            ("1", "Instruction", "32K", core),
            ("2", "Unified", "2048K", core),
            ("3", "Unified", "36M", shared),
        )
        for i, (level, kind, size, sharers) in enumerate(caches):
            folder = root / f"cpu{cpu}" / "cache" / f"index{i}"
            folder.mkdir(parents=True)
            text = f"{min(sharers)}-{max(sharers)}" if len(sharers) > 1 else str(cpu)
            for name, value in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", text)):
                (folder / name).write_text(value + "\n")
    return root


def test_caches_are_read_from_sysfs(tmp_path: Path) -> None:
    found = machine.levels(5, plant(tmp_path, 8, siblings=2))
    assert found == [
        Level("L1", 48 << 10, (4, 5)), Level("L2", 2 << 20, (4, 5)), Level("L3", 36 << 20, (4, 5, 6, 7)), Level("memory", 0, ()),
    ]  # fmt: skip


def test_a_machine_without_caches_has_usual_ones(tmp_path: Path) -> None:
    assert [level.name for level in machine.levels(0, tmp_path)] == ["L1", "L2", "L3", "memory"]


def test_threads_go_to_different_cores_from_the_highest_number_down(tmp_path: Path) -> None:
    sysfs = plant(tmp_path, 8, siblings=2)
    assert machine.choose_cpus(1, range(8), sysfs) == (7,)
    assert machine.choose_cpus(4, range(8), sysfs) == (1, 3, 5, 7)
    assert machine.choose_cpus(5, range(8), sysfs) == (1, 3, 5, 6, 7)
    assert machine.choose_cpus(2, [0, 1, 3], sysfs) == (1, 3)
    with pytest.raises(UsageError, match="may use fewer CPUs"):
        machine.choose_cpus(3, [0, 1], sysfs)


def test_private_caches_add_up_and_shared_ones_do_not() -> None:
    private, shared, memory = Level("L2", 1000, (3,)), Level("L3", 8000, (0, 1, 2, 3)), Level("memory", 0, ())
    known = [private, shared, memory]
    assert [machine.level_of(n, (3,), known).name for n in (1000, 1001, 8000, 8001)] == ["L2", "L3", "L3", "memory"]
    assert [machine.level_of(n, (2, 3), known).name for n in (2000, 2001, 8000, 8001)] == ["L2", "L3", "L3", "memory"]
    assert machine.level_of(16000, (0, 1, 2, 3, 4), known).name == "L3"  # a fifth CPU has another such cache
    assert [probe_size(level, near, (2, 3)) for level, near in zip(known, [None, private, shared], strict=True)] == [
        1000, 4000, 64 << 20,
    ]  # fmt: skip


def test_pinning_is_undone(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    cpu = max(before)
    with machine.pinned([cpu]):
        assert os.sched_getaffinity(0) == {cpu}
    assert os.sched_getaffinity(0) == before


def test_a_description_names_no_one() -> None:
    text = json.dumps(machine.description((0,)))
    for secret in {platform.node(), os.environ.get("USER", ""), str(Path.home())} - {"", "/"}:
        assert secret not in text or len(secret) < 4
    assert {"processor", "caches", "cpus_used", "load"} <= machine.description((0,)).keys()


@pytest.fixture(scope="module")
def loops() -> Iterator[probes.Probes]:
    target = this_host().best_target()
    assert target is not None
    yield probes.build(find_toolchain(), target)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mixed", [False, True])
def test_the_arithmetic_loops_compute(loops: probes.Probes, dtype: str, mixed: bool) -> None:
    """The sum that comes back is checked inside; lowest, median and highest are in order."""
    found = loops.flops(dtype, mixed=mixed, cpus=[max(machine.allowed_cpus())], rounds=3)
    assert 0 < found.low <= found.median <= found.high


def test_the_bandwidth_loops_touch_every_byte(loops: probes.Probes) -> None:
    """A read returns the exclusive or of the first words of all vectors; a copy leaves its first half in the second."""
    size, width = 64 * loops.vector_bytes, loops.vector_bytes
    data = random.Random(3).randbytes(size)
    for kind in range(3):
        memory = loops_buffer(data)
        times, gate, result = (ctypes.c_int64 * 2)(), ctypes.c_uint32(0), ctypes.c_uint64(0)
        arguments = (memory.address, size, 1, 0, ctypes.byref(result), ctypes.byref(gate), 1, times)
        assert loops._dll.speed_bytes(kind, *arguments) >= 0
        after = ctypes.string_at(memory.address, size)
        if kind == 0:
            wanted = 0
            for i in range(0, size, width):
                wanted ^= int.from_bytes(data[i : i + 8], "little")
            assert (result.value, after) == (wanted, data)
        else:
            assert after == data[: size // 2] * 2


def loops_buffer(data: bytes) -> probes.Buffer:
    made = probes.Buffer(len(data))
    ctypes.memmove(made.address, data, len(data))
    return made


def test_two_threads_meet_or_one_gives_up(loops: probes.Probes) -> None:
    cpus = machine.allowed_cpus()
    assert loops.round_trip(cpus[:1]) == 0
    if len(cpus) > 1:
        assert loops.round_trip(cpus[:2], rounds=1) > 0


def test_the_compiler_left_the_flops_in() -> None:
    """Second derivation of 52 and 110 flops a lane and pass: the vector instructions of x86-64-v3, counted in machine code."""
    code = find_toolchain().compile(probes.program("x86-64-v3"), "x86-64-v3", timeout=300)
    elf = ELFFile(io.BytesIO(code))
    text = elf.get_section_by_name(".text")
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    names = [i.mnemonic for i in engine.disasm(text.data(), text["sh_addr"]) if "ymm" in i.op_str]
    symbols = {s.name for s in elf.get_section_by_name(".dynsym").iter_symbols()}
    for suffix in ("ps", "pd"):
        fused = sum(n.startswith("vfmadd") and n.endswith(suffix) for n in names)
        products, sums = names.count(f"vmul{suffix}"), names.count(f"vadd{suffix}")
        assert (fused, products, sums) == (26 + 40, 8, 22)
        assert 2 * 26 == 52
        assert 2 * 40 + products + sums == 110
    # The hop: 8 directions, 2 spins, 3 colours, re and im, 6 products each; 12 sums to project and 24 to add, but for the first.
    assert 40 + 8 == 8 * 2 * 3 * 2 * 6 * 2 // 24
    assert 22 == (8 * 12 + 7 * 24) * 2 // 24
    assert 110 == 1320 * 2 // 24
    assert any(n.startswith("vmovnt") for n in names), "no streaming stores"
    assert "memcpy" not in symbols


@pytest.mark.parametrize("target", [t for t in CPU_TARGETS if t != "x86-64-v3"])
def test_the_loops_compile_for_every_target(target: str) -> None:
    assert find_toolchain().compile(probes.program(target), target, timeout=300).startswith(b"\x7fELF")


def test_a_row_whose_cpus_were_moved_is_measured_again() -> None:
    trips, calls = iter([60e-9, 400e-9, 60e-9, 62e-9]), []
    outcome = guard.guarded(lambda: calls.append(1) or len(calls), (0, 1), lambda _: next(trips))
    assert (outcome.result, outcome.trips, outcome.moved) == (2, (60e-9, 62e-9), False)


def test_a_row_whose_cpus_keep_moving_is_marked() -> None:
    trips = iter([60e-9, 400e-9] * guard.ATTEMPTS)
    outcome = guard.guarded(lambda: "row", (0, 1), lambda _: next(trips))
    assert (outcome.result, outcome.moved) == ("row", True)
    assert list(trips) == []


def test_one_thread_is_not_probed() -> None:
    outcome = guard.guarded(lambda: "row", (1,), lambda _: pytest.fail("probed"))
    assert (outcome.result, outcome.trips, outcome.moved) == ("row", None, False)


def test_time_that_other_work_took_is_read_from_the_kernel(tmp_path: Path) -> None:
    for task, text in (("1", "100 7000 3\n"), ("22", "5 500 1\n"), ("other", "5 900 1\n"), ("3", "")):
        (tmp_path / task).mkdir()
        (tmp_path / task / "schedstat").write_text(text)
    assert guard.waited(tmp_path) == 7500
    assert guard.waited(tmp_path / "absent") is None


def test_lost_time_is_a_part_of_the_time_of_all_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, clock = iter([10, 10 + 300_000_000]), iter([5.0, 6.0])
    monkeypatch.setattr(guard, "waited", lambda: next(counts))
    monkeypatch.setattr(guard.time, "perf_counter", lambda: next(clock))
    assert guard.guarded(lambda: "row", (0, 1), None).lost == pytest.approx(0.15)
    monkeypatch.setattr(guard, "waited", lambda: None)
    monkeypatch.setattr(guard.time, "perf_counter", lambda: 0.0)
    assert guard.guarded(lambda: "row", (0,), None).lost is None
