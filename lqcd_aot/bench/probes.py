"""The limits of this machine, measured: flops, bytes per second, and the round trip of a cache line between two CPUs.

    probes = build(toolchain, target)
    probes.flops("float32", mixed=True, cpus=(0, 1))      flops per second of both together
    probes.bandwidth("read", size, cpus)                  bytes per second from a working set of `size` bytes in all
    probes.round_trip((0, 1))                             seconds

Owns threads, pinning and repetition around the loops of speed.cpp, which is compiled as artifacts are. A copy counts the bytes
read and the bytes written; those a cache reads before it overwrites them are not counted.
"""

from __future__ import annotations

import ctypes
import statistics
import threading
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.bench.machine import pinned
from lqcd_aot.program.model import Program
from lqcd_runtime.engines.library import Library
from lqcd_runtime.engines.memory import Buffer
from lqcd_runtime.errors import EngineError

if TYPE_CHECKING:
    from lqcd_aot.compilers import Toolchain

KINDS = ("read", "copy", "copy_stream")
ROUNDS = 7
ROUND_SECONDS = 0.003
TRIPS = 2000
CHAINS = 13
ENTRY = "speed.cpp"


class Figure(NamedTuple):
    """A rate (or a time): median, lowest and highest of the rounds."""

    median: float
    low: float
    high: float


def program(target: str) -> Program:
    """The measuring program for a CPU target."""
    from lqcd_aot.program.cpu.variant import VECTOR_BYTES

    text = files("lqcd_aot.bench").joinpath(ENTRY).read_text("utf-8")
    return Program(files=((ENTRY, text),), defines=(("SPEED_VECTOR_BYTES", str(VECTOR_BYTES[target])),), entry=ENTRY)


def build(toolchain: Toolchain, target: str) -> Probes:
    """Compile and load. Errors: CompileError, EngineError."""
    from lqcd_aot.program.cpu.variant import VECTOR_BYTES

    return Probes(Library(toolchain.compile(program(target), target, timeout=300), "speed"), VECTOR_BYTES[target])


class Probes:
    """The loaded loops. vector_bytes: of the target they were compiled for."""

    def __init__(self, library: Library, vector_bytes: int) -> None:
        self.vector_bytes = vector_bytes
        self._library = library
        self._dll = library.dll
        i32, i64, u32, u64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint64
        gate: list[Any] = [ctypes.POINTER(u32), u32, ctypes.POINTER(i64)]
        doubles = ctypes.POINTER(ctypes.c_double)
        self._dll.speed_flops.argtypes = [i32, i32, doubles, i64, doubles, *gate]
        self._dll.speed_bytes.argtypes = [i32, ctypes.c_void_p, u64, i64, u64, ctypes.POINTER(u64), *gate]
        self._dll.speed_round_trips.argtypes = [i32, ctypes.POINTER(u64), i64, *gate]
        for name in ("speed_flops", "speed_bytes", "speed_round_trips"):
            self._dll[name].restype = i64

    def flops(self, dtype: str, *, mixed: bool, cpus: Sequence[int], rounds: int = ROUNDS) -> Figure:
        """Flops per second of all CPUs: fused multiply-adds alone, or `mixed` as a hop with half spinors issues them."""
        lanes = self.vector_bytes // (8 if dtype == "float64" else 4)
        # x -> 1 x + 0: no number ever leaves its range, and no compiler knows it.
        starts = [1.0 + i / 16 for i in range(CHAINS)]
        numbers = (ctypes.c_double * (2 + CHAINS))(1.0, 0.0, *starts)
        results = [ctypes.c_double() for _ in cpus]

        def call(i: int, passes: int, gate: Any) -> int:
            found: int = self._dll.speed_flops(
                dtype == "float64", mixed, numbers, passes, ctypes.byref(results[i]), *gate
            )  # fmt: skip
            return found

        work = lanes * int(self._dll.speed_flops_per_pass(mixed)) * len(cpus)
        figure = self._rate(call, cpus, work, rounds)
        expected = lanes * sum(starts)
        if any(result.value != expected for result in results):
            raise EngineError("roofline: the measuring loop did not compute", expected=expected, found=results[0].value)
        return figure

    def bandwidth(self, kind: str, size: int, cpus: Sequence[int], *, rounds: int = ROUNDS) -> Figure | None:
        """Bytes per second of all CPUs, each over its own `size / len(cpus)` bytes; None where the compiler has no such store."""
        step = 16 * self.vector_bytes
        each = max(step, size // len(cpus) // step * step)
        buffers = [Buffer(each) for _ in cpus]
        sinks = [ctypes.c_uint64() for _ in cpus]

        def call(i: int, passes: int, gate: Any) -> int:
            sink = ctypes.byref(sinks[i])
            found: int = self._dll.speed_bytes(KINDS.index(kind), buffers[i].address, each, passes, 0, sink, *gate)
            return found

        # Each thread touches its own pages first: written, so that they are pages of their own.
        if self._together(lambda i, gate: call_copy(self._dll, buffers[i], each, sinks[i], gate), cpus) is None:
            raise EngineError("roofline: a measuring thread did not come")
        if kind == "copy_stream" and self._together(lambda i, gate: call(i, 1, gate), cpus) is None:
            return None
        return self._rate(call, cpus, each * len(cpus), rounds)

    def round_trip(self, cpus: Sequence[int], *, rounds: int = 5) -> float:
        """Seconds for a cache line from the first CPU to the farthest of the others and back: median of rounds."""
        first, *others = cpus
        if not others:
            return 0.0
        worst = []
        for other in others:
            spans = []
            for _ in range(rounds):
                line = Buffer(64)
                word = ctypes.cast(line.address, ctypes.POINTER(ctypes.c_uint64))
                span = self._together(
                    lambda i, gate, to=word: self._dll.speed_round_trips(i, to, TRIPS, *gate),  # type: ignore[misc]
                    (first, other),
                )
                if span is None:
                    raise EngineError(f"round trip: CPU {first} and CPU {other} did not meet")
                spans.append(span / TRIPS)
            worst.append(statistics.median(spans))
        return max(worst)

    def _rate(self, call: Callable[[int, int, Any], int], cpus: Sequence[int], work: int, rounds: int) -> Figure:
        """work: what one pass of all CPUs does."""

        def timed(passes: int) -> float:
            span = self._together(lambda i, gate: call(i, passes, gate), cpus)
            if span is None:
                raise EngineError("roofline: a measuring thread did not come")
            return max(span, 1e-9)

        passes = 1
        while timed(passes) < ROUND_SECONDS / 2 and passes < 1 << 40:
            passes *= 2
        rates = sorted(work * passes / timed(passes) for _ in range(rounds))
        return Figure(statistics.median(rates), rates[0], rates[-1])

    @staticmethod
    def _together(call: Callable[[int, Any], int], cpus: Sequence[int]) -> float | None:
        """`call(i, gate)` on every CPU at once: seconds from the first start to the last end; None where one answered -1."""
        gate = ctypes.c_uint32(0)
        times = [(ctypes.c_int64 * 2)() for _ in cpus]
        answers = [0] * len(cpus)

        def work(i: int) -> None:
            with pinned([cpus[i]]):
                answers[i] = call(i, (ctypes.byref(gate), len(cpus), times[i]))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(1, len(cpus))]
        for thread in threads:
            thread.start()
        work(0)
        for thread in threads:
            thread.join()
        if min(answers) < 0:
            return None
        return (max(t[1] for t in times) - min(t[0] for t in times)) / 1e9


def call_copy(dll: Any, buffer: Buffer, size: int, sink: Any, gate: Any) -> int:
    """Write to every page of a buffer once (a zeroed page that was only read is one shared page)."""
    ctypes.memset(buffer.address, 0, size)
    found: int = dll.speed_bytes(KINDS.index("copy"), buffer.address, size, 1, 0, ctypes.byref(sink), *gate)
    return found
