"""The simulator: HLO programs through jaxlib's CPU client. A test double: it proves the program, not the chip.

    SimProgram(hlo).run({"p0": array, ...}) -> {"r0": array, ...}
    SimProgram(hlo, binding).run({"psi_re": array, ...}) -> {"out_re": array, ...}
    SimEngine: the same behind the protocol that the Neuron engine has (engines/neff_artifact.py)

Owns every use of jaxlib, which is imported when the first program is compiled and whose interface drifts between releases.
Array dtypes are numpy's; bfloat16, which numpy lacks, travels as its bits in uint16. Every input is copied before a run, so that
a program that aliases a result with a parameter cannot write into the caller's memory.
What a NeuronCore rounds, how neuronx-cc schedules and what it refuses is not simulated.
"""

from __future__ import annotations

import threading
import weakref

import numpy as np

from lqcd_runtime.errors import EngineError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.manifest import Entry

_ALIGNMENT = 64
_BFLOAT_CODE = 4  # DLDataTypeCode.kDLBfloat
_DTYPE_CODE_OFFSET = 20  # of DLTensor.dtype.code: after the data pointer (8), the device (8) and ndim (4)

_client: Any = None


def _jaxlib() -> tuple[Any, Any, Any]:
    """(jaxlib.xla_client, jaxlib._jax, the CPU client). Errors: EngineError where jaxlib is absent or of another interface."""
    global _client
    try:
        import importlib

        xla, core = importlib.import_module("jaxlib.xla_client"), importlib.import_module("jaxlib._jax")
        if _client is None:
            _client = xla.make_cpu_client()
    except (ImportError, AttributeError) as err:
        raise EngineError(
            "simulator: cannot use jaxlib", expected="jaxlib 0.10", found=err, hint="pip install 'lqcd-aot[sim]'"
        ) from err
    return xla, core, _client


def refusal() -> str | None:
    """Why the simulator cannot run here, or None."""
    try:
        _jaxlib()
    except EngineError as error:
        return f"{error.fact} ({error.found}); {error.hint}"
    return None


class SimProgram:
    """A compiled HLO module. names: of the parameters, in order; results: names of the results, in order.

    hlo: serialised HloModuleProto; binding: names from `parameters` and `results` of a record's binding; without it they are
    p0, p1, ... and r0, r1, ... Errors: EngineError for bytes that XLA refuses or a binding of another program.
    """

    def __init__(self, hlo: bytes, binding: dict[str, Any] | None = None) -> None:
        xla, core, client = _jaxlib()
        try:
            shape = xla.XlaComputation(hlo).program_shape()
            devices = core.DeviceList(tuple(client.devices()[:1]))
            self._executable = client.compile_and_load(core.mlir.hlo_to_stablehlo(hlo), devices, xla.CompileOptions())
        except (ValueError, RuntimeError) as err:
            raise EngineError("simulator: XLA refuses the program", found=str(err).splitlines()[0]) from err
        self._core, self._device = core, client.devices()[0]
        parameters, result = shape.parameter_shapes(), shape.result_shape()
        results = result.tuple_shapes() if result.is_tuple() else [result]
        self._shapes = [(tuple(s.dimensions()), _storage(s.numpy_dtype()), _is_bfloat(s.numpy_dtype())) for s in parameters]
        bound = binding or {}
        self.names = _names(bound.get("parameters"), len(parameters), "p", "parameters")
        self.results = _names(bound.get("results"), len(results), "r", "results")

    def run(self, inputs: dict[str, Any]) -> dict[str, NDArray[Any]]:
        """One execution. inputs: every parameter by name. Errors: UsageError for absent, surplus or misshapen arrays."""
        if sorted(inputs) != sorted(self.names):
            raise UsageError(
                "simulator: was given other inputs", expected=", ".join(self.names), found=", ".join(map(str, inputs))
            )  # fmt: skip
        return self.execute([self.put(i, inputs[name]) for i, name in enumerate(self.names)])

    def put(self, number: int, array: Any) -> Any:
        """A device buffer with a copy of an array, for parameter `number`. Errors: UsageError."""
        shape, dtype, bfloat = self._shapes[number]
        given = np.asarray(array)
        if bfloat and given.dtype.name == "bfloat16":
            given = given.view(np.uint16)
        if given.shape != shape or given.dtype != dtype:
            word = f"{'bfloat16 bits in ' if bfloat else ''}{dtype}"
            raise UsageError(
                f"simulator: {self.names[number]} has the wrong shape or dtype",
                expected=f"{word} {list(shape)}", found=f"{given.dtype} {list(given.shape)}",
            )  # fmt: skip
        capsule = _aligned_copy(given).__dlpack__()
        if bfloat:
            _call_it_bfloat(capsule)
        return self._core.dlpack_managed_tensor_to_buffer(capsule, self._device, None)

    def execute(self, buffers: list[Any]) -> dict[str, NDArray[Any]]:
        """Run on buffers of `put`, in the order of the parameters. A buffer of an aliased parameter is used up."""
        try:
            arrays = self._executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
        except (ValueError, RuntimeError) as err:
            raise EngineError("simulator: the execution failed", found=str(err).splitlines()[0]) from err
        return {name: _owned(column[0]) for name, column in zip(self.results, arrays, strict=True)}


class SimTensor:
    """An array of the simulated device."""

    __slots__ = ("array", "name")

    def __init__(self, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        self.name, self.array = name, np.zeros(shape, dtype)

    def write(self, array: NDArray[Any]) -> None:
        """Replace the contents."""
        self.array = np.array(array)

    def read(self) -> NDArray[Any]:
        """A copy of the contents."""
        return self.array.copy()

    def close(self) -> None:
        """Drop the contents."""
        self.array = np.zeros(0)


class SimLoaded:
    """A program on a simulated core: `execute(inputs, outputs)` over SimTensor by logical name."""

    def __init__(self, program: SimProgram) -> None:
        self._program = program

    def execute(self, inputs: dict[str, SimTensor], outputs: dict[str, SimTensor]) -> None:
        """Run once; outputs may be the same tensors as inputs."""
        results = self._program.run({name: tensor.array for name, tensor in inputs.items()})
        for name, tensor in outputs.items():
            tensor.write(results[name])

    def close(self) -> None:
        """Forget the executable."""
        del self._program


class SimEngine:
    """Engine of NEFF-SIM containers. cores: four simulated ones, which only order the work and share compiled programs."""

    name = "sim"
    cores = (0, 1, 2, 3)

    def __init__(self) -> None:
        self._programs: weakref.WeakValueDictionary[str, SimProgram] = weakref.WeakValueDictionary()
        self._compiling = threading.RLock()

    def load(self, code: bytes, entry: Entry, core: int) -> SimLoaded:
        """Compile the container's HLO. Errors: EngineError, CorruptError."""
        return SimLoaded(self.program(code, entry.as_dict().get("binding"), f"artifact {entry.name}"))

    def program(self, code: bytes, binding: dict[str, Any] | None, where: str = "NEFF-SIM") -> SimProgram:
        """The compiled program of a container, compiled once for as long as anybody holds it. Errors: as `load`."""
        from lqcd_runtime.digest import sha256_hex
        from lqcd_runtime.neff import parse_sim

        key = sha256_hex(code)
        with self._compiling:
            program = self._programs.get(key)
            if program is None:
                program = SimProgram(parse_sim(code, where).hlo, binding)
                self._programs[key] = program
            return program

    def tensor(self, name: str, shape: tuple[int, ...], dtype: Any, core: int) -> SimTensor:
        """A zeroed array of the simulated device."""
        return SimTensor(name, shape, dtype)

    def close(self) -> None:
        """Holds nothing."""


_simulator: SimEngine | None = None


def this_simulator() -> SimEngine:
    """The one simulator of this process, so that artifacts share their residents."""
    global _simulator
    if _simulator is None:
        _simulator = SimEngine()
    return _simulator


def _names(listed: Any, count: int, prefix: str, what: str) -> list[str]:
    if listed is None:
        return [f"{prefix}{i}" for i in range(count)]
    ordered = sorted(listed, key=lambda p: p["number"]) if what == "parameters" else listed
    if len(ordered) != count:
        raise EngineError(f"simulator: the binding is of another program ({what})", expected=count, found=len(ordered))
    return [str(p["name"]) for p in ordered]


def _is_bfloat(dtype: Any) -> bool:
    return bool(np.dtype(dtype).name == "bfloat16")


def _storage(dtype: Any) -> Any:
    return np.dtype(np.uint16) if _is_bfloat(dtype) else np.dtype(dtype)


def _aligned_copy(array: NDArray[Any]) -> NDArray[Any]:
    """A C-ordered copy whose first byte is 64-byte aligned, as XLA:CPU's vector loads want it."""
    pages = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -pages.__array_interface__["data"][0] % _ALIGNMENT
    copy = pages[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _owned(array: Any) -> NDArray[Any]:
    # numpy's buffer protocol has no bfloat16, and only the package jax, which is not needed here, teaches jaxlib's arrays
    # another way; their own conversion serves every dtype.
    host = array._single_device_array_to_np_array_did_copy()[0]
    return np.array(host.view(np.uint16) if _is_bfloat(host.dtype) else host)


def _call_it_bfloat(capsule: Any) -> None:
    """Change the type code of a DLPack capsule of uint16 to bfloat16, which numpy cannot say."""
    import ctypes

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    ctypes.memset(pointer(capsule, b"dltensor") + _DTYPE_CODE_OFFSET, _BFLOAT_CODE, 1)
