"""nrtpy, AWS's Python loader of NEFFs (beta since SDK 2.32), behind the engine protocol.

Owns every use of nrtpy. It takes a file, so the NEFF stands in a private folder while it is loaded. It documents no free: tensors
go with the last reference. The package of that name on PyPI is a placeholder whose import raises, so it is never mistaken for it.
Written from AWS's documentation and exercised against a double of it; the real package has never been imported here.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.binding import Binding, tensor_names
from lqcd_runtime.engines.neuron import check_neff, machine_refusal
from lqcd_runtime.engines.neuron_floor import numbers
from lqcd_runtime.engines.nrt_status import NeuronError
from lqcd_runtime.errors import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.hardware.descriptor import NeuronCore
    from lqcd_runtime.manifest import Entry


def importable() -> Any:
    """The module, or None where it is absent or the placeholder."""
    import importlib

    try:
        module = importlib.import_module("nrtpy")
    except Exception:  # a half-installed native package may raise anything; ctypes is the way then
        return None
    return module if hasattr(module, "NrtpyModel") and hasattr(module, "NrtpyTensor") else None


class NrtpyTensor:
    """An array in a core's memory, held by an nrtpy.NrtpyTensor."""

    def __init__(self, engine: NrtpyEngine, name: str, shape: tuple[int, ...], dtype: Any, core: int) -> None:
        self.shape, self.dtype, self.name = shape, np.dtype(dtype), f"tensor {name}"
        make = engine.module.NrtpyTensor.from_numpy
        self._tensor = engine.guarded("NrtpyTensor.from_numpy", self.name, make, np.zeros(shape, dtype), name=name, core_id=core)
        self._engine = engine

    @property
    def held(self) -> Any:
        """The nrtpy object. Errors: EngineError after close."""
        if self._tensor is None:
            raise EngineError(f"{self.name}: was closed")
        return self._tensor

    def write(self, array: NDArray[Any]) -> None:
        """Copy to the device. Errors: NeuronError, EngineError for another shape or dtype."""
        if array.shape != self.shape or array.dtype != self.dtype:
            expected = f"{self.dtype} {list(self.shape)}"
            raise EngineError(
                f"{self.name}: was given another array", expected=expected, found=f"{array.dtype} {list(array.shape)}"
            )
        write = self.held.write_from_numpy
        self._engine.guarded("NrtpyTensor.write_from_numpy", self.name, write, np.ascontiguousarray(array))

    def read(self) -> NDArray[Any]:
        """Copy from the device; bytes that nrtpy gives without a type take ours."""
        found = np.asarray(self._engine.guarded("NrtpyTensor.numpy", self.name, self.held.numpy))
        return np.array(np.ascontiguousarray(found).reshape(-1).view("u1").view(self.dtype).reshape(self.shape))

    def close(self) -> None:
        """Drop the reference."""
        self._tensor = None


class NrtpyLoaded:
    """An nrtpy.NrtpyModel, called by the names of its binding."""

    def __init__(self, engine: NrtpyEngine, model: Any, binding: Binding, name: str) -> None:
        self._engine, self._model, self._name = engine, model, name
        table = {(0, n): _bytes(i) for n, i in model.input_tensors_info.items()}
        table |= {(1, n): _bytes(i) for n, i in model.output_tensors_info.items()}
        known = all(table.values())
        self._inputs, self._outputs = tensor_names(binding, table if known else None, name)

    def execute(self, inputs: dict[str, NrtpyTensor], outputs: dict[str, NrtpyTensor]) -> None:
        """Run once. Errors: NeuronError, EngineError after close."""
        if self._model is None:
            raise EngineError(f"{self._name}: was closed")
        self._engine.guarded(
            "NrtpyModel", self._name, self._model, {self._inputs[n]: t.held for n, t in inputs.items()},
            outputs={self._outputs[n]: t.held for n, t in outputs.items()},
        )  # fmt: skip

    def close(self) -> None:
        """Drop the model."""
        self._model = None


class NrtpyEngine:
    """nrtpy of this process. version: of the package, which is that of the runtime it belongs to; via: "nrtpy"."""

    name = "neuron"
    via = "nrtpy"

    def __init__(self, module: Any, descriptors: Sequence[NeuronCore], version: str | None = None) -> None:
        """Errors: EngineError where no core is available."""
        self.module = module
        self.version = numbers(version if version is not None else _installed_version())
        self.descriptors = [core for core in descriptors if core.available]
        self.cores = tuple(range(len(self.descriptors)))
        reason = machine_refusal(descriptors, self.version)
        if reason is not None:
            raise EngineError("NeuronCores: cannot be used", found=reason, hint="lqcd-aot devices")

    def load(self, code: bytes, entry: Entry, core: int) -> NrtpyLoaded:
        """Check, then load on a core. Errors: as NeuronEngine.load."""
        import tempfile

        check_neff(code, entry, self.descriptors[core], self.version)
        with tempfile.TemporaryDirectory(prefix=".lqcd-") as folder:
            path = f"{folder}/artifact.neff"
            with open(path, "xb") as f:
                f.write(code)
            name = f"artifact {entry.name}"
            load = self.module.NrtpyModel.load_from_neff
            model = self.guarded("NrtpyModel.load_from_neff", name, load, path, name=entry.build_key[:16], core_id=core)
        return NrtpyLoaded(self, model, Binding.of(entry), name)

    def tensor(self, name: str, shape: tuple[int, ...], dtype: Any, core: int) -> NrtpyTensor:
        """Memory on a core. Errors: NeuronError."""
        return NrtpyTensor(self, name, shape, dtype, core)

    def guarded(self, call: str, subject: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call nrtpy; its exceptions become NeuronError with the status they carry."""
        try:
            return function(*arguments, **options)
        except (self.module.NrtError, self.module.NrtpyError) as err:
            status = getattr(err, "status", None)
            raise NeuronError(call, int(status) if isinstance(status, int) else None, subject) from err

    def close(self) -> None:
        """nrtpy.reset(): drops what it holds."""
        self.module.reset()


def _bytes(info: Any) -> int:
    """Size in bytes of a tensor's description; 0 where it does not say."""
    size = getattr(info, "size", None) or (info.get("size") if isinstance(info, dict) else None)
    return int(size) if isinstance(size, int) else 0


def _installed_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("nrtpy")
    except metadata.PackageNotFoundError:
        return ""
