"""An artifact of an HLO program on the cores of an engine: arrays by logical name in, arrays out. For the Neuron engine and the
simulator alike (protocol: engines/neuron.py).

    artifact.run({"psi": a, "diagonal": d}, resident) -> {"out": array}
    state = artifact.begin({"x": ..., "r": ..., "p": ..., "rr": ...}, core); artifact.step(state, scalars, resident) -> {...}

Owns: one loaded program and one set of staging tensors per core, made on first use; scalars rewritten only when they change;
residents written once per core and shared by all artifacts of one engine; one call at a time per core. Knows no lattice.
"""

from __future__ import annotations

import threading

import numpy as np

from lqcd_runtime.binding import Binding
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CorruptError, EngineError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from numpy.typing import NDArray

    from lqcd_runtime.binding import Slot
    from lqcd_runtime.manifest import Entry

    Array = NDArray[Any]

    class OnDevice(Protocol):
        """Resident, or several seen as one."""

        def on(self, core: int) -> dict[str, Any]:
            """{name: device tensor} on a core."""


class Resident:
    """Arrays that stay on the device: written to a core when that core first needs them, freed with this object.

    arrays: {name: array}; or make: () -> arrays, called at the first use.
    """

    def __init__(
        self, engine: Any, arrays: Mapping[str, Array] | None = None, make: Callable[[], Mapping[str, Array]] | None = None
    ):
        self._engine, self._arrays, self._make = engine, arrays, make
        self._on: dict[int, dict[str, Any]] = {}
        self._lock = threading.RLock()

    def on(self, core: int) -> dict[str, Any]:
        """{name: device tensor} on a core. Errors: those of the engine, after which nothing of them is held there."""
        with self._lock:
            if core not in self._on:
                if self._arrays is None:
                    assert self._make is not None
                    self._arrays = self._make()
                self._on[core] = _upload(self._engine, self._arrays, core)
            return self._on[core]

    def close(self) -> None:
        """Free the device memory; a later use writes it again. Errors: those of the engine."""
        with self._lock:
            for tensors in self._on.values():
                for tensor in tensors.values():
                    tensor.close()
            self._on.clear()


class State:
    """State arrays of one run of a chunk program, on one core."""

    def __init__(self, tensors: dict[str, Any], core: int) -> None:
        self.tensors, self.core = tensors, core

    def read(self, name: str) -> Array:
        """A copy of one array. Errors: those of the engine."""
        array: Array = self.tensors[name].read()
        return array

    def close(self) -> None:
        """Free the device memory. Errors: those of the engine."""
        for tensor in self.tensors.values():
            tensor.close()


class _OnCore:
    """A loaded program with its staging tensors."""

    def __init__(self, engine: Any, code: bytes, entry: Entry, binding: Binding, core: int) -> None:
        self.lock = threading.RLock()
        self.staged: dict[str, Any] = {}
        self.scalars: dict[str, bytes] = {}
        self.loaded = engine.load(code, entry, core)
        aliased = set(binding.aliases)
        try:
            for slot in [*binding.named("input", "scalar"), *(r for r in binding.results if r.name not in aliased)]:
                self.staged[slot.name] = engine.tensor(slot.name, slot.shape, slot.numpy_dtype, core)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for tensor in self.staged.values():
            tensor.close()
        self.loaded.close()


class NeffArtifact:
    """entry, binding, engine; cores: those of the engine."""

    def __init__(self, engine: Any, code: bytes, entry: Entry) -> None:
        """Nothing is loaded yet. Errors: CorruptError where the bytes are not those of the entry or it has no binding."""
        if sha256_hex(code) != entry.code["sha256"]:
            raise CorruptError(
                f"artifact {entry.name}: does not match its digest", expected=entry.code["sha256"], found=sha256_hex(code)
            )
        self.engine, self.entry, self.binding = engine, entry, Binding.of(entry)
        self.cores: tuple[int, ...] = tuple(engine.cores)
        self._code = code
        self._on: dict[int, _OnCore] = {}
        self._lock = threading.RLock()
        self._closed = False

    def load(self, core: int | None = None) -> _OnCore:
        """Load on a core unless that was done. Errors: those of the engine; UsageError for a core it does not have."""
        core = self.cores[0] if core is None else core
        if core not in self.cores:
            raise UsageError(f"core {core}: is not usable", expected=", ".join(map(str, self.cores)))
        with self._lock:
            if self._closed:
                raise EngineError(f"artifact {self.entry.name}: was closed")
            if core not in self._on:
                self._on[core] = _OnCore(self.engine, self._code, self.entry, self.binding, core)
            return self._on[core]

    def run(self, inputs: Mapping[str, Array], resident: OnDevice | None = None, core: int | None = None) -> dict[str, Array]:
        """One execution: every input and scalar by name -> every result. Errors: UsageError for absent or surplus arrays."""
        if self.binding.aliases:
            raise UsageError(f"artifact {self.entry.name}: has a state", hint="begin() and step()")
        return self._execute(inputs, resident, {}, self.cores[0] if core is None else core)

    def begin(self, arrays: Mapping[str, Array], core: int | None = None) -> State:
        """A state on a core with these arrays. Errors: UsageError for absent, surplus or misshapen ones."""
        core = self.cores[0] if core is None else core
        self._check(arrays, self.binding.named("state"), "state")
        return State(_upload(self.engine, arrays, core), core)

    def step(self, state: State, inputs: Mapping[str, Array], resident: OnDevice | None = None) -> dict[str, Array]:
        """One execution that replaces the state in place; the other results. Errors: as `run`."""
        return self._execute(inputs, resident, state.tensors, state.core)

    def close(self) -> None:
        """Unload everywhere; idempotent. Errors: those of the engine."""
        with self._lock:
            self._closed = True
            while self._on:
                self._on.popitem()[1].close()

    def _execute(
        self, inputs: Mapping[str, Array], resident: OnDevice | None, state: dict[str, Any], core: int
    ) -> dict[str, Array]:
        self._check(inputs, self.binding.named("input", "scalar"), "inputs")
        placed = self.load(core)
        held = resident.on(core) if resident is not None else {}
        absent = [slot.name for slot in self.binding.named("resident") if slot.name not in held]
        if absent:
            raise UsageError(f"artifact {self.entry.name}: has no {absent[0]} on the device", found=", ".join(held) or "nothing")
        with placed.lock:
            for slot in self.binding.named("input", "scalar"):
                _stage(placed, slot, np.asarray(inputs[slot.name]))
            known = held | state | placed.staged
            arguments = {slot.name: known[slot.name] for slot in self.binding.parameters}
            aliases = self.binding.aliases
            results = {
                r.name: state[aliases[r.name]] if r.name in aliases else placed.staged[r.name] for r in self.binding.results
            }
            placed.loaded.execute(arguments, results)
            return {name: tensor.read() for name, tensor in results.items() if name not in aliases}

    def _check(self, arrays: Mapping[str, Array], slots: list[Slot], what: str) -> None:
        if set(arrays) != {slot.name for slot in slots}:
            expected = ", ".join(slot.name for slot in slots) or "none"
            raise UsageError(
                f"artifact {self.entry.name}: was given other {what}", expected=expected, found=", ".join(arrays) or "none"
            )
        for slot in slots:
            array = np.asarray(arrays[slot.name])
            if array.shape != slot.shape or array.dtype != np.dtype(slot.numpy_dtype):
                raise UsageError(
                    f"artifact {self.entry.name}: {slot.name} has the wrong shape or dtype",
                    expected=f"{slot.numpy_dtype} {list(slot.shape)}", found=f"{array.dtype} {list(array.shape)}",
                )  # fmt: skip


def _stage(placed: _OnCore, slot: Slot, array: Array) -> None:
    if slot.role == "scalar":
        spelled = array.tobytes()
        if placed.scalars.get(slot.name) == spelled:
            return
        # Forgotten first: a write that fails leaves the tensor with anything.
        placed.scalars.pop(slot.name, None)
        placed.staged[slot.name].write(array)
        placed.scalars[slot.name] = spelled
    else:
        placed.staged[slot.name].write(array)


def _upload(engine: Any, arrays: Mapping[str, Array], core: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    try:
        for name, array in arrays.items():
            made[name] = engine.tensor(name, array.shape, array.dtype, core)
            made[name].write(np.ascontiguousarray(array))
    except BaseException:
        for tensor in made.values():
            tensor.close()
        raise
    return made
