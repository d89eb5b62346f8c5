"""The C double of libnrt, compiled once per content, and NEFFs that it can run."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.engines.nrt_library import NrtLibrary
from lqcd_runtime.hardware.chips import CHIPS
from lqcd_runtime.hardware.descriptor import NeuronCore
from lqcd_runtime.manifest import Entry, entry_dict
from lqcd_runtime.neff import MEDIA_TYPE, write_neff
from lqcd_runtime.signature import Spec
from tests.made import record

SOURCE = Path(__file__).with_name("libnrt_double.c")
KINDS = {"set": 0, "tensor": 1, "info": 2, "model": 3}
NRT_DTYPES = {"float32": 0xA, "bfloat16": 6, "int32": 8}
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, ctypes.POINTER(ctypes.c_char_p),
    ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_int32),
)  # fmt: skip

Program = Callable[[bytes, dict[str, np.ndarray]], dict[str, np.ndarray]]


@cache
def compiled() -> str:
    """Path of the shared object."""
    text = SOURCE.read_bytes()
    out = Path(tempfile.gettempdir()) / f"lqcd-libnrt-double-{sha256_hex(text)[:16]}.so"
    if not out.exists():
        with tempfile.TemporaryDirectory(dir=out.parent) as folder:
            made = Path(folder) / "libnrt.so.1"
            command = [sys.executable, "-m", "ziglang", "cc", "-O1", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden"]
            subprocess.run([*command, "-o", str(made), str(SOURCE)], check=True, capture_output=True)
            made.rename(out)
    return str(out)


class Double:
    """The library as the runtime sees it (`library`), and its control functions. One per process: `reset` starts anew."""

    def __init__(self) -> None:
        self.library = NrtLibrary(compiled())
        self._dll = self.library._dll
        self._dll.nrt_double_report.restype = ctypes.c_char_p
        self._dll.nrt_double_calls.restype = ctypes.c_uint64
        self._dll.nrt_double_calls.argtypes = [ctypes.c_char_p]
        self._dll.nrt_double_inject.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
        self._dll.nrt_double_machine.argtypes = [
            ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t,
        ]  # fmt: skip
        self._callback: Any = None
        self.reset()

    def reset(self) -> None:
        """As in a new process, on a machine with four cores of Trainium2 and runtime 2.34."""
        self._dll.nrt_double_reset()
        self.machine()

    def machine(
        self, cores: int = 4, family: int = 5, lnc: int = 1, version: tuple[int, int] = (2, 34), memory: int = 1 << 34
    ) -> None:
        """What it answers about the machine."""
        self._dll.nrt_double_machine(cores, family, lnc, *version, memory)

    def report(self) -> str:
        """Breaches of the contract and leaks, one a line; "" for none."""
        return str(self._dll.nrt_double_report().decode())

    def inject(self, call: str, status: int, after: int = 0) -> None:
        """Let a call of a function answer a status, after `after` calls that go as usual."""
        self._dll.nrt_double_inject(call.encode(), status, after)

    def pending(self) -> bool:
        """Whether an injected status still waits."""
        return bool(self._dll.nrt_double_pending())

    def calls(self, call: str) -> int:
        """How often a function was called since the last reset."""
        return int(self._dll.nrt_double_calls(call.encode()))

    def alive(self, kind: str | None = None) -> int:
        """Handles that are not released."""
        return int(self._dll.nrt_double_alive(-1 if kind is None else KINDS[kind]))

    def compute(self, program: Program) -> None:
        """Hand executions of "op callback" to a function (bytes of the NEFF, {input: bytes}) -> {output: array}."""

        def call(code: int, size: int, count: int, names: Any, data: Any, sizes: Any, usage: Any) -> int:
            try:
                memory = [(ctypes.c_uint8 * sizes[i]).from_address(data[i]) for i in range(count)]
                buffers = {(usage[i], names[i].decode()): np.frombuffer(memory[i], np.uint8) for i in range(count)}
                inputs = {name: np.array(data) for (use, name), data in buffers.items() if use == 0}
                for name, array in program(ctypes.string_at(code, size), inputs).items():
                    buffers[1, name][:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            except Exception as err:
                sys.stderr.write(f"double: {err!r}\n")
                return 1
            return 0

        self._callback = _CALLBACK(call)
        self._dll.nrt_double_set_callback(self._callback)


def double_neff(
    binding: dict[str, Any],
    operations: Iterable[str],
    code: bytes = b"",
    *,
    rename: Callable[[str, int, int], str] | None = None,
    **header: Any,
) -> bytes:
    """A NEFF for the double. operations: its "op" lines without the word; rename: (name, number, usage) -> tensor name."""
    lines = ["NRT-DOUBLE 1"]
    sizes = {"float32": 4, "bfloat16": 2, "int32": 4}
    for usage, word, slots in ((0, "input", binding["parameters"]), (1, "output", binding["results"])):
        for i, slot in enumerate(slots):
            size = sizes[slot["dtype"]] * int(np.prod(slot["shape"], dtype=np.int64))
            name = rename(slot["name"], i, usage) if rename else slot["name"]
            lines.append(f"{word} {name} {NRT_DTYPES[slot['dtype']]} {size}")
    payload = "\n".join([*lines, *(f"op {op}" for op in operations), "end", ""]).encode() + code
    return write_neff(payload, **{"build": "2.27.5334.0+double", "lnc": 1, **header})


def neff_entry(
    spec: Spec, code: bytes, binding: dict[str, Any], target: str = "trn2", neff: dict[str, Any] | None = None
) -> Entry:
    """The entry of a NEFF."""
    raw = entry_dict(record(spec, target, code)) | {"binding": binding, "neff": neff or {"lnc": 1, "runtime_floor": "2.34.10.0"}}
    raw["outputs"]["code"]["media_type"] = MEDIA_TYPE
    return Entry.from_dict(raw, "double")


def cores(count: int = 4, chip: str = "Trainium2", lnc: int = 1, driver: str = "2.30.2.0") -> list[NeuronCore]:
    """Available cores."""
    return [NeuronCore(CHIPS[chip], i, 0, tuple(range(i * lnc, (i + 1) * lnc)), driver=driver) for i in range(count)]


def binding_of(parameters: Sequence[tuple[str, list[int], str]], results: Sequence[tuple[str, list[int], str]]) -> dict[str, Any]:
    """A float32 binding from (name, shape, role); results of role "state" are aliased with the parameter of their name."""
    names = [p[0] for p in parameters]
    return {
        "layout": "toy",
        "parameters": [
            {"number": i, "name": n, "shape": s, "dtype": "float32", "role": r} for i, (n, s, r) in enumerate(parameters)
        ],
        "results": [{"name": n, "shape": s, "dtype": "float32", "role": r} for n, s, r in results],
        "aliases": [[i, names.index(n)] for i, (n, _, r) in enumerate(results) if r == "state"],
    }
