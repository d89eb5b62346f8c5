"""The CPU engine: verified machine code -> callable entry points (artifacts/README.md, "Entry points", ABI version 1).

Owns: digest check before loading, ABI and identity check after, prototypes, status codes, the life of thread pools. Refuses to
know physics: it passes addresses and numbers. An artifact is unloaded when the last reference to it is gone; pools are joined
first. After a fork the child starts with no pools, because threads do not survive a fork.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref

from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.engines.forks import watch
from lqcd_runtime.engines.library import Library
from lqcd_runtime.errors import CorruptError, EngineError, TooNewError
from lqcd_runtime.settings import pin_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lqcd_runtime.manifest import Entry

ABI = 1
NOT_IN_GROUP = 3  # status of lqcd_pack_gauge: artifacts/README.md, "Entry points"
GAUGE, SPINOR_IN, SPINOR_OUT, WORKSPACE, CLOVER, STATE = range(6)

_P, _I, _D = ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_double)
_COMMON: dict[str, tuple[Any, list[Any]]] = {
    "lqcd_pool_new": (_P, [_I]),
    "lqcd_pool_free": (None, [_P]),
}
_BYTES: dict[str, tuple[Any, list[Any]]] = {"lqcd_bytes": (ctypes.c_uint64, [_I])}
_LAYOUT: dict[str, tuple[Any, list[Any]]] = {"lqcd_gauge_layout": (ctypes.c_char_p, [])}
_PACK: dict[str, tuple[Any, list[Any]]] = {"lqcd_pack_gauge": (_I, [_P, _P, _I, _D, _D, _P])}
_DIRAC: dict[str, tuple[Any, list[Any]]] = {
    "lqcd_pack_spinor": (_I, [_P, _P, _I, _P]),
    "lqcd_unpack_spinor": (_I, [_P, _P, _I, _P]),
    "lqcd_apply": (_I, [_P, _P, _P, _P, _P, _D, _P]),
}
_CLOVER: dict[str, tuple[Any, list[Any]]] = {"lqcd_pack_clover": (_I, [_P, _P, _I, _D, _P])}
_SOLVE: dict[str, tuple[Any, list[Any]]] = {
    "lqcd_solve_begin": (_I, [_P, _P, _P, _P, _P, _P, _P, _D, _P, _P]),
    "lqcd_solve_iterate": (_I, [_P, _P, _P, _P, _D, _P, _I, _P, _P, _P]),
    "lqcd_solve_end": (_I, [_P, _P, _P, _P, _P, _P, _P, _D, _P]),
}
_OBSERVE: dict[str, tuple[Any, list[Any]]] = {"lqcd_observe": (_I, [_D, _P, _D, _P, _P])}
_MAP: dict[str, tuple[Any, list[Any]]] = {"lqcd_map": (_I, [_P, _P, _D, _P, _P])}


def prototypes(entry: Entry) -> dict[str, tuple[Any, list[Any]]]:
    """{entry point: (result, arguments)} that an artifact of this entry exports."""
    spec = entry.spec
    table = _COMMON | _BYTES
    if spec.kind == "builder":
        return table | _LAYOUT | _PACK
    if spec.kind == "dirac":
        packs = ({} if spec.fused else _PACK) | (_CLOVER if spec.operator.startswith("clover") else {})
        return table | _LAYOUT | _DIRAC | packs
    if spec.kind == "solver":
        return table | _LAYOUT | _PACK | _SOLVE | (_CLOVER if spec.operator.startswith("clover") else {})
    return table | (_OBSERVE if spec.kind == "observable" else _MAP)


class _Pool:
    """A thread pool of one artifact; serves one call at a time."""

    __slots__ = ("lock", "pointer")

    def __init__(self, pointer: int | None) -> None:
        self.pointer = pointer
        self.lock = threading.Lock()


class CpuArtifact:
    """A loaded artifact: `call` its entry points, ask `bytes_of` its buffers. `entry`, `layout` (of packed links, or "")."""

    def __init__(self, library: Library, entry: Entry) -> None:
        self.entry = entry
        self.via = library.via
        self._functions = _bind(library, entry)
        layout = self._functions.get("lqcd_gauge_layout", bytes)()
        self.layout = layout.decode("ascii", "replace")
        self._pools: dict[int, _Pool] = {}
        self._pools_lock = threading.Lock()
        watch(self)
        # Not at interpreter exit: a daemon thread may still be computing, and the kernel unmaps everything anyway.
        weakref.finalize(self, _unload, library, self._functions["lqcd_pool_free"], self._pools).atexit = False

    def bytes_of(self, what: int) -> int:
        """Size of a buffer: GAUGE, SPINOR_IN, SPINOR_OUT, WORKSPACE, CLOVER or STATE."""
        return int(self._functions["lqcd_bytes"](what))

    def call(self, name: str, *arguments: Any, threads: int = 1) -> None:
        """Call an entry point with the pool of `threads` threads as its last argument. Errors: EngineError for a bad status."""
        status = self.status(name, *arguments, threads=threads)
        if status != 0:
            raise self.refusal(name, status)

    def refusal(self, name: str, status: int) -> EngineError:
        """What a status other than 0 means, where nothing better is known of it."""
        reason = "refused its arguments" if status == 2 else f"answered status {status}"
        return EngineError(f"artifact {self.entry.name}: {name} {reason}")

    def status(self, name: str, *arguments: Any, threads: int = 1) -> int:
        """As `call`, for who can make more of a status than that it is not 0."""
        if threads <= 1:
            return int(self._functions[name](*arguments, None))
        pool = self._pool(threads)
        with pool.lock:
            return int(self._functions[name](*arguments, pool.pointer))

    def bound(self, name: str, *arguments: Any, threads: int = 1, held: object = None) -> Callable[[], None]:
        """A `call` whose looking up and converting was done once: on a 4^4 lattice they cost a tenth of the work. held: what the
        arguments point into; it lives as long as the call."""
        function = self._functions[name]
        given = [_converted(kind, value) for kind, value in zip(function.argtypes, arguments, strict=False)]
        if threads <= 1:

            def alone(_held: object = held) -> None:
                if status := function(*given, None):
                    raise self.refusal(name, status)

            return alone
        pool = self._pool(threads)

        def shared(_held: object = held) -> None:
            with pool.lock:
                status = function(*given, pool.pointer)
            if status:
                raise self.refusal(name, status)

        return shared

    def _pool(self, threads: int) -> _Pool:
        with self._pools_lock:
            if threads not in self._pools:
                pinned = pin_threads()
                pointer = self._functions["lqcd_pool_new"](-threads if pinned else threads)
                if pinned and not pointer:
                    raise EngineError(
                        f"artifact {self.entry.name}: starts no pinned threads",
                        hint="build it again: older ones cannot pin; or leave out LQCD_RUNTIME_PIN",
                    )
                self._pools[threads] = _Pool(pointer)
            return self._pools[threads]

    def after_fork(self) -> None:
        """In a forked child: the threads are gone, and the locks may be held by threads that are gone."""
        self._pools_lock = threading.Lock()
        self._pools.clear()


def load(code: bytes, entry: Entry) -> CpuArtifact:
    """Load machine code as the artifact of an entry.

    Errors: CorruptError where the bytes are not those of the entry; EngineError where they cannot be loaded, are of another
    machine, or answer another identity; TooNewError for a later ABI.
    """
    if sha256_hex(code) != entry.code["sha256"]:
        raise CorruptError(
            f"artifact {entry.name}: does not match its digest", expected=entry.code["sha256"], found=sha256_hex(code)
        )
    if code[:4] != b"\x7fELF":
        raise EngineError(f"artifact {entry.name}: is no shared object", expected="ELF", found=repr(code[:4]))
    library = Library(code, entry.name)
    try:
        _check(library, entry)
        return CpuArtifact(library, entry)
    except BaseException:
        library.close()
        raise


def _check(library: Library, entry: Entry) -> None:
    """ABI version and identity, before anything else of the artifact is called."""
    try:
        abi, identity = library.dll.lqcd_abi, library.dll.lqcd_identity
    except AttributeError as err:
        raise EngineError(f"artifact {entry.name}: is not one of ours", found=str(err)) from err
    abi.restype, abi.argtypes = _I, []
    identity.restype, identity.argtypes = ctypes.c_char_p, []
    version = abi()
    if version != ABI:
        error = TooNewError if version > ABI else EngineError
        raise error(f"artifact {entry.name}: has another ABI", expected=ABI, found=version)
    found = (identity() or b"").decode("ascii", "replace")
    if found != entry.name:
        raise EngineError(f"artifact {entry.name}: is mislabelled", expected=entry.name, found=found, hint="build it again")


def _converted(kind: Any, value: Any) -> Any:
    """What ctypes makes of an argument at every call, made once."""
    if kind is ctypes.c_void_p and isinstance(value, int):
        return kind(value)
    return ctypes.cast(value, kind) if isinstance(value, ctypes.Array) else value


def _bind(library: Library, entry: Entry) -> dict[str, Any]:
    functions = {}
    for name, (result, arguments) in prototypes(entry).items():
        try:
            function = library.dll[name]
        except AttributeError as err:
            raise EngineError(f"artifact {entry.name}: has no entry point {name}") from err
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    return functions


def _unload(library: Library, free: Any, pools: dict[int, _Pool]) -> None:
    for pool in pools.values():
        if pool.pointer:
            free(pool.pointer)
    pools.clear()
    library.close()


def doubles(values: Any) -> Any:
    """A C array of doubles from a sequence of numbers."""
    values = [float(v) for v in values]
    return (ctypes.c_double * len(values))(*values)


def default_threads(sites: int) -> int:
    """Threads where the caller names none: the CPUs this process may use, at most one per 512 sites.

    Below that a thread's share of a sweep is shorter than waking it.
    """
    return max(1, min(len(os.sched_getaffinity(0)), sites // 512))
