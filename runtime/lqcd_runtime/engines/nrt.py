"""A session of libnrt and what lives in it: device tensors, tensor sets, loaded NEFFs. Nothing outlives the session.

Owns the life cycle: init once, every handle released once, in the order sets, tensors, models, nrt_close; use after close and
use in a forked child are refused before libnrt is reached. A handle that nobody refers to is released by the garbage collector.
A release that fails raises and stays owed: closing the session tries it again. Executions of one model are one at a time.
Never run against AWS's library (see nrt_library).
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from contextlib import contextmanager

from lqcd_runtime.engines.nrt_library import NrtLibrary, TensorInfo
from lqcd_runtime.engines.nrt_status import NeuronError
from lqcd_runtime.errors import EngineError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from numpy.typing import NDArray

NO_FRAMEWORK = 1
ON_DEVICE = 0
ANY_COUNT = -1  # nrt_load's vnc_count, which the header calls deprecated: always -1
_RELEASE = {
    "set": "nrt_destroy_tensor_set",
    "tensor": "nrt_tensor_free",
    "info": "nrt_free_model_tensor_info",
    "model": "nrt_unload",
}
_BY_REFERENCE = ("set", "tensor")  # released through a pointer to the pointer


class Session:
    """An initialised libnrt. library; version: (major, minor, patch); cores: logical cores visible to this process."""

    def __init__(self, library: NrtLibrary) -> None:
        """nrt_init. Errors: NeuronError, after which nothing is held."""
        self.library = library
        self.version = library.version()
        library.call("nrt_init", NO_FRAMEWORK, b"", b"", subject="libnrt")
        self._pid = os.getpid()
        self._closed = False
        self._lock = threading.RLock()
        self._running, self._idle = 0, threading.Condition()
        self._owed: dict[str, dict[int, None]] = {kind: {} for kind in _RELEASE}
        try:
            self.cores = library.count()
        except NeuronError:
            self.close()
            raise

    def check(self, what: str = "libnrt") -> None:
        """Errors: EngineError after close or in a forked child."""
        if os.getpid() != self._pid:
            raise EngineError(
                f"{what}: belongs to the process that this one was forked from", expected="libnrt used by one process",
                hint='multiprocessing.get_context("spawn"), or open the bundle after the fork',
            )  # fmt: skip
        if self._closed:
            raise EngineError(f"{what}: the Neuron runtime of this process was closed", hint="start a new process")

    def call(self, name: str, *arguments: Any, subject: str) -> None:
        """A call that `close` waits for. Errors: NeuronError, EngineError after close or in a forked child."""
        with self._in_use(subject):
            self.library.call(name, *arguments, subject=subject)

    def make(self, kind: str, name: str, *arguments: Any, subject: str) -> int:
        """A call that makes a handle, which is owed from then on. kind: "set", "tensor", "info" or "model". Errors: as `call`."""
        with self._in_use(subject):
            handle = self.library.make(name, *arguments, subject=subject)
            self._owed[kind][handle] = None
            return handle

    def release(self, kind: str, handle: int) -> None:
        """Release a handle once; nothing to do after that, after close and in a forked child. Errors: NeuronError."""
        if os.getpid() != self._pid:
            return  # before any lock: one that another thread held at the fork stays locked here for ever
        with self._lock:
            if not self._closed and handle in self._owed[kind]:
                self._release(kind, handle)

    def _release(self, kind: str, handle: int) -> None:
        if kind in _BY_REFERENCE:
            self.library.call(_RELEASE[kind], ctypes.byref(ctypes.c_void_p(handle)))
        else:
            self.library.call(_RELEASE[kind], handle)
        del self._owed[kind][handle]

    @contextmanager
    def _in_use(self, subject: str) -> Iterator[None]:
        self.check(subject)
        with self._idle:
            self.check(subject)
            self._running += 1
        try:
            yield
        finally:
            with self._idle:
                self._running -= 1
                self._idle.notify_all()

    def held(self) -> dict[str, int]:
        """How many handles of each kind are not released."""
        return {kind: len(handles) for kind, handles in self._owed.items()}

    def close(self) -> None:
        """Wait for executions, release everything, nrt_close; idempotent.

        Errors: NeuronError of the first release that failed, after nrt_close.
        """
        if os.getpid() != self._pid:
            return
        with self._idle:
            self._idle.wait_for(lambda: self._running == 0)
            if self._closed:
                return
            self._closed = True
        with self._lock:
            failures = self._release_all()
            self.library.call("nrt_close")
        if failures:
            raise failures[0]

    def _release_all(self) -> list[NeuronError]:
        failures = []
        for _ in ("once", "again what failed"):
            for kind, handles in self._owed.items():
                for handle in list(handles):
                    try:
                        self._release(kind, handle)
                    except NeuronError as err:
                        failures.append(err)
        return failures


class _Handle:
    """A handle with its owner. A collected one is released quietly, an explicitly closed one loudly."""

    kind = ""

    def __init__(self, session: Session, handle: int, name: str) -> None:
        self.session, self.name = session, name
        self._handle = handle
        self._closed = False
        weakref.finalize(self, _collect, session, self.kind, handle).atexit = False

    @property
    def handle(self) -> int:
        """Errors: EngineError after close."""
        self.session.check(self.name)
        if self._closed:
            raise EngineError(f"{self.name}: was closed")
        return self._handle

    def close(self) -> None:
        """Release; idempotent. Errors: NeuronError; closing the session tries again."""
        self._closed = True
        self.session.release(self.kind, self._handle)


def _collect(session: Session, kind: str, handle: int) -> None:
    try:
        session.release(kind, handle)
    except NeuronError:
        return  # nobody is there to hear it; Session.close tries again and complains


class DeviceTensor(_Handle):
    """Memory of a core. size: bytes."""

    kind = "tensor"

    def __init__(self, session: Session, size: int, core: int, name: str, handle: int | None = None) -> None:
        """Allocate. Errors: NeuronError, UsageError for a size that this libnrt miscounts."""
        session.check(name)
        if size >= 1 << 32 and session.version[:2] <= (2, 28):
            raise UsageError(
                f"tensor {name}: is too large for this libnrt", expected="less than 4 GiB up to runtime 2.28", found=size,
                hint="update aws-neuronx-runtime-lib, or use shards",
            )  # fmt: skip
        if handle is None:
            place = (ON_DEVICE, core, size, name.encode())
            handle = session.make("tensor", "nrt_tensor_allocate", *place, subject=f"tensor {name}")
        super().__init__(session, handle, f"tensor {name}")
        self.size, self.core = size, core

    def write(self, array: NDArray[Any], offset: int = 0) -> None:
        """Copy a C-ordered array to the device. Errors: NeuronError, UsageError where it does not fit."""
        self._fits(array, offset)
        address = array.__array_interface__["data"][0]
        self.session.call("nrt_tensor_write", self.handle, address, offset, array.nbytes, subject=self.name)

    def read_into(self, array: NDArray[Any], offset: int = 0) -> None:
        """Copy from the device into a C-ordered array. Errors: as `write`."""
        self._fits(array, offset)
        address = array.__array_interface__["data"][0]
        self.session.call("nrt_tensor_read", self.handle, address, offset, array.nbytes, subject=self.name)

    def slice(self, offset: int, size: int) -> DeviceTensor:
        """A view of a part, without a copy; it keeps this tensor alive. Errors: UsageError, NeuronError."""
        if offset < 0 or size <= 0 or offset + size > self.size:
            raise UsageError(f"{self.name}: has no bytes {offset} to {offset + size}", expected=f"within {self.size}")
        make = self.session.make
        handle = make("tensor", "nrt_tensor_allocate_slice", self.handle, offset, size, b"slice", subject=self.name)
        part = DeviceTensor(self.session, size, self.core, f"slice of {self.name}", handle)
        part.__dict__["of"] = self
        return part

    def _fits(self, array: NDArray[Any], offset: int) -> None:
        if not array.flags.c_contiguous or offset < 0 or offset + array.nbytes > self.size:
            raise UsageError(
                f"{self.name}: the array does not fit",
                expected=f"C order, {self.size - offset} bytes",
                found=f"{array.nbytes} bytes",
            )


class TensorSet(_Handle):
    """Named tensors of one execution. Keeps them alive."""

    kind = "set"

    def __init__(self, session: Session, tensors: dict[str, DeviceTensor]) -> None:
        """Errors: NeuronError, after which nothing is held."""
        session.check("tensor set")
        super().__init__(session, session.make("set", "nrt_allocate_tensor_set", subject="tensor set"), "tensor set")
        self._tensors = tensors
        try:
            for name, tensor in tensors.items():
                session.call("nrt_add_tensor_to_tensor_set", self.handle, name.encode(), tensor.handle, subject=f"tensor {name}")
        except BaseException:
            self.close()
            raise


class Model(_Handle):
    """A NEFF on one core. tensors: {(0 input or 1 output, name): bytes}, None where libnrt cannot tell."""

    kind = "model"

    def __init__(self, session: Session, neff: bytes, core: int, name: str) -> None:
        """nrt_load. Errors: NeuronError, after which nothing is held."""
        session.check(name)
        super().__init__(session, session.make("model", "nrt_load", neff, len(neff), core, ANY_COUNT, subject=name), name)
        self.core = core
        self._busy = threading.RLock()
        try:
            self.tensors = self._info()
        except BaseException:
            self.close()
            raise

    def _info(self) -> dict[tuple[int, str], int] | None:
        if not self.session.library.has("nrt_get_model_tensor_info"):
            return None
        table = self.session.make("info", "nrt_get_model_tensor_info", self.handle, subject=self.name)
        try:
            count = ctypes.c_uint64.from_address(table).value
            entries = (TensorInfo * count).from_address(table + 8)
            return {(int(entry.usage), entry.name.decode("utf-8", "replace")): int(entry.size) for entry in entries}
        finally:
            self.session.release("info", table)

    def execute(self, inputs: dict[str, DeviceTensor], outputs: dict[str, DeviceTensor]) -> None:
        """Run once, synchronously. Keys: the NEFF's tensor names. Errors: NeuronError, EngineError after close."""
        with self._busy:
            first = TensorSet(self.session, inputs)
            try:
                second = TensorSet(self.session, outputs)
                try:
                    self.session.call("nrt_execute", self.handle, first.handle, second.handle, subject=self.name)
                finally:
                    second.close()
            finally:
                first.close()

    def close(self) -> None:
        """Unload, after an execution that runs. Errors: NeuronError."""
        with self._busy:
            super().close()
