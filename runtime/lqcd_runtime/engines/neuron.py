"""The Neuron engine over libnrt: NEFFs on NeuronCores. Refuses before loading what cannot run, with the reason.

Owns the choice of backend (nrtpy where it can be imported, else libnrt through ctypes), the one session of this process, and the
refusals. The protocol it shares with the simulator:

    engine.cores                                     process-relative numbers of the usable logical cores
    engine.load(code, entry, core) -> loaded         loaded.execute({parameter: tensor}, {result: tensor}), loaded.close()
    engine.tensor(name, shape, dtype, core) -> t     t.write(array), t.read(), t.close()
    engine.close()

Exercised against doubles of libnrt and nrtpy. No NEFF of the real compiler has been loaded with it, and nothing here has run on a
NeuronCore.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.binding import Binding, tensor_names
from lqcd_runtime.engines.neuron_floor import generation_refusal, header_refusal, numbers, pair_refusal
from lqcd_runtime.engines.nrt import DeviceTensor, Model, Session
from lqcd_runtime.errors import EngineError
from lqcd_runtime.neff import parse_neff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.hardware.descriptor import NeuronCore
    from lqcd_runtime.manifest import Entry


class NeuronTensor:
    """An array in a core's memory. Device memory is not zeroed: a new one holds anything."""

    def __init__(self, session: Session, name: str, shape: tuple[int, ...], dtype: Any, core: int) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        size = self.dtype.itemsize
        for extent in shape:
            size *= extent
        self.memory = DeviceTensor(session, size, core, name)

    def write(self, array: NDArray[Any]) -> None:
        """Copy to the device. Errors: NeuronError, EngineError for another shape or dtype."""
        if array.shape != self.shape or array.dtype != self.dtype:
            raise EngineError(
                f"{self.memory.name}: was given another array", expected=f"{self.dtype} {list(self.shape)}",
                found=f"{array.dtype} {list(array.shape)}",
            )  # fmt: skip
        self.memory.write(np.ascontiguousarray(array))

    def read(self) -> NDArray[Any]:
        """Copy from the device. Errors: NeuronError."""
        out = np.empty(self.shape, self.dtype)
        self.memory.read_into(out)
        return out

    def close(self) -> None:
        """Free. Errors: NeuronError."""
        self.memory.close()


class NeuronLoaded:
    """A NEFF on one core, called by the names of its binding."""

    def __init__(self, model: Model, binding: Binding) -> None:
        self._model = model
        try:
            self._inputs, self._outputs = tensor_names(binding, model.tensors, model.name)
        except BaseException:
            model.close()
            raise

    def execute(self, inputs: dict[str, NeuronTensor], outputs: dict[str, NeuronTensor]) -> None:
        """Run once. A result may be the tensor of the parameter it is aliased with. Errors: NeuronError."""
        self._model.execute(
            {self._inputs[name]: tensor.memory for name, tensor in inputs.items()},
            {self._outputs[name]: tensor.memory for name, tensor in outputs.items()},
        )

    def close(self) -> None:
        """Unload. Errors: NeuronError."""
        self._model.close()


class NeuronEngine:
    """libnrt of this process. descriptors: `lqcd_runtime.devices()` of this machine; version: of libnrt; via: "libnrt"."""

    name = "neuron"
    via = "libnrt"

    def __init__(self, session: Session, descriptors: Sequence[NeuronCore]) -> None:
        """Errors: EngineError where no core is available, or libnrt and driver do not go together."""
        self.session = session
        self.version = session.version
        self.descriptors = [core for core in descriptors if core.available]
        self.cores = tuple(range(min(session.cores, len(self.descriptors))))
        reason = machine_refusal(descriptors, self.version)
        if reason is None and not self.cores:
            reason = "libnrt shows no core to this process"
        if reason is not None:
            session.close()
            raise EngineError("NeuronCores: cannot be used", found=reason, hint="lqcd-aot devices")

    def load(self, code: bytes, entry: Entry, core: int) -> NeuronLoaded:
        """Check, then load on a core. Errors: CorruptError, TooNewError, EngineError with the reason, NeuronError."""
        check_neff(code, entry, self.descriptors[core], self.version)
        return NeuronLoaded(Model(self.session, code, core, f"artifact {entry.name}"), Binding.of(entry))

    def tensor(self, name: str, shape: tuple[int, ...], dtype: Any, core: int) -> NeuronTensor:
        """Memory on a core. Errors: NeuronError."""
        return NeuronTensor(self.session, name, shape, dtype, core)

    def close(self) -> None:
        """Unload and free everything. The runtime of a process cannot be opened again. Errors: NeuronError."""
        self.session.close()


def machine_refusal(descriptors: Sequence[NeuronCore], version: tuple[int, ...]) -> str | None:
    """None where this machine's cores can be used with this libnrt."""
    if not any(core.available for core in descriptors):
        return str(descriptors[0].reason) if descriptors else "this machine has no NeuronCore"
    return pair_refusal(version, numbers(descriptors[0].driver), descriptors[0].generation)


def check_neff(code: bytes, entry: Entry, core: NeuronCore, version: tuple[int, ...]) -> None:
    """Everything that can be known before loading. Errors: CorruptError, TooNewError, EngineError with the reason."""
    header = parse_neff(code, f"artifact {entry.name}")
    reason = generation_refusal(entry.target, core) or header_refusal(header, entry.as_dict().get("neff") or {}, core, version)
    if reason is not None:
        raise EngineError(f"artifact {entry.name}: {reason}", hint="lqcd-aot devices")


_engine: Any = None


def this_engine() -> Any:
    """The one Neuron engine of this process, made on first use: nrtpy where it can be imported, else libnrt.

    Errors: EngineError where there is neither, or no core is available.
    """
    global _engine
    if _engine is None:
        from lqcd_runtime.engines import nrtpy_backend
        from lqcd_runtime.hardware import devices

        module = nrtpy_backend.importable()
        if module is not None:
            _engine = nrtpy_backend.NrtpyEngine(module, devices())
        else:
            from lqcd_runtime.engines.nrt_library import find_library

            _engine = NeuronEngine(Session(find_library()), devices())
        import atexit

        # As documented, nrt_close is the last call of a process; it waits for an execution that a daemon thread still runs.
        atexit.register(_engine.close)
    return _engine
