"""libnrt.so.1 through ctypes: where it is, the prototypes of AWS's headers, version and instance, every status checked.

Owns binding and calling; no life cycle (engines/nrt.py). Prototypes from nrt.h, nrt_version.h and nrt_experimental.h as the
Neuron SDK publishes them. Exercised against a double in C that checks arguments; never against AWS's library.
"""

from __future__ import annotations

import ctypes
import os

from lqcd_runtime.engines.nrt_status import SUCCESS, NeuronError
from lqcd_runtime.errors import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLACES = ("libnrt.so.1", "/opt/aws/neuron/lib/libnrt.so.1")

_P, _PP = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
_I, _I32, _U32P, _N, _S = ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_uint32), ctypes.c_size_t, ctypes.c_char_p


class Version(ctypes.Structure):
    """nrt_version_t, 224 bytes."""

    _fields_ = (
        ("major", ctypes.c_uint64), ("minor", ctypes.c_uint64), ("patch", ctypes.c_uint64), ("maintenance", ctypes.c_uint64),
        ("detail", ctypes.c_char * 128), ("git_hash", ctypes.c_char * 64),
    )  # fmt: skip


class InstanceInfo(ctypes.Structure):
    """nrt_instance_info_t, 32 bytes."""

    _fields_ = (
        ("family", ctypes.c_uint32), ("size", ctypes.c_uint32), ("arch_name", ctypes.c_char * 16),
        ("revision", ctypes.c_char * 8),
    )  # fmt: skip


class TensorInfo(ctypes.Structure):
    """nrt_tensor_info_t, 296 bytes: name, usage (0 input, 1 output), size, dtype, shape."""

    _fields_ = (
        ("name", ctypes.c_char * 256), ("usage", _I), ("size", _N), ("dtype", _I), ("shape", _U32P), ("ndim", ctypes.c_uint32),
    )  # fmt: skip


# name: arguments; all answer NRT_STATUS.
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "nrt_init": (_I, _S, _S),
    "nrt_get_version": (ctypes.POINTER(Version), _N),
    "nrt_get_total_vnc_count": (_U32P,),
    "nrt_get_visible_vnc_count": (_U32P,),
    "nrt_get_instance_info": (ctypes.POINTER(InstanceInfo), _N),
    "nrt_load": (_P, _N, _I32, _I32, _PP),
    "nrt_unload": (_P,),
    "nrt_get_model_tensor_info": (_P, _PP),
    "nrt_free_model_tensor_info": (_P,),
    "nrt_allocate_tensor_set": (_PP,),
    "nrt_add_tensor_to_tensor_set": (_P, _S, _P),
    "nrt_tensor_allocate": (_I, _I, _N, _S, _PP),
    "nrt_tensor_allocate_slice": (_P, _N, _N, _S, _PP),
    "nrt_tensor_write": (_P, _P, _N, _N),
    "nrt_tensor_read": (_P, _P, _N, _N),
    "nrt_execute": (_P, _P, _P),
}
# name: arguments; these answer nothing.
VOID: dict[str, tuple[Any, ...]] = {
    "nrt_close": (),
    "nrt_destroy_tensor_set": (_PP,),
    "nrt_tensor_free": (_PP,),
}
# Not promised by the headers, or renamed between releases: absent in some libraries.
OLDER_NAMES = {"nrt_get_total_vnc_count": "nrt_get_total_nc_count", "nrt_get_visible_vnc_count": "nrt_get_visible_nc_count"}
OPTIONAL = ("nrt_get_model_tensor_info", "nrt_free_model_tensor_info", "nrt_get_instance_info")


class NrtLibrary:
    """The bound library. path: what was loaded."""

    def __init__(self, path: str) -> None:
        """Load and bind. Errors: EngineError where it cannot be loaded or lacks a documented function."""
        try:
            self._dll = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as err:
            raise EngineError(
                "libnrt: cannot be loaded", found=err, hint="install aws-neuronx-runtime-lib; LD_LIBRARY_PATH=/opt/aws/neuron/lib"
            ) from err
        self.path = path
        self._functions: dict[str, Any] = {}
        for name, arguments in (PROTOTYPES | VOID).items():
            function = getattr(self._dll, name, None) or getattr(self._dll, OLDER_NAMES.get(name, name), None)
            if function is None and name not in OPTIONAL:
                raise EngineError(f"libnrt {path}: has no function {name}", hint="update aws-neuronx-runtime-lib")
            if function is not None:
                function.restype, function.argtypes = (None if name in VOID else _I), list(arguments)
                self._functions[name] = function

    def has(self, name: str) -> bool:
        """Whether an optional function is there."""
        return name in self._functions

    def call(self, name: str, *arguments: Any, subject: str = "") -> None:
        """Call a function. Errors: NeuronError for any status but success, naming `subject`."""
        status = self._functions[name](*arguments)
        if status is not None and status != SUCCESS:
            raise NeuronError(name, int(status), subject)

    def make(self, name: str, *arguments: Any, subject: str = "") -> int:
        """Call a function whose last argument is where a new handle is left; the handle. Errors: as `call`, or for NULL."""
        handle = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(handle), subject=subject)
        if not handle.value:
            raise NeuronError(name, 3, subject)
        return handle.value

    def version(self) -> tuple[int, int, int]:
        """(major, minor, patch) of the runtime; callable before nrt_init."""
        found = Version()
        self.call("nrt_get_version", ctypes.byref(found), ctypes.sizeof(found))
        return int(found.major), int(found.minor), int(found.patch)

    def count(self, name: str = "nrt_get_visible_vnc_count") -> int:
        """Logical cores that this process may use (or the instance has); callable before nrt_init."""
        found = ctypes.c_uint32()
        self.call(name, ctypes.byref(found))
        return int(found.value)

    def family(self) -> int:
        """The instance family's number in nrt.h; 0 where the library does not say."""
        if not self.has("nrt_get_instance_info"):
            return 0
        found = InstanceInfo()
        self.call("nrt_get_instance_info", ctypes.byref(found), ctypes.sizeof(found))
        return int(found.family)


def find_library() -> NrtLibrary:
    """The machine's libnrt. Errors: EngineError where there is none."""
    errors = []
    for place in PLACES:
        try:
            return NrtLibrary(place)
        except EngineError as err:
            errors.append(err)
    raise errors[-1]


def instance_of_this_machine() -> tuple[int, int] | None:
    """(instance family, logical cores), or None where there is no libnrt or it does not answer."""
    try:
        library = find_library()
        return library.family(), library.count("nrt_get_total_vnc_count")
    except EngineError:
        return None
