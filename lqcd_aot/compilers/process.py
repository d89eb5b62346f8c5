"""One compile = one child process in its own session: started, watched, killed as a group.

Owns the only place of the build side where a compiler is executed. The child gets a closed standard input, a log file instead
of pipes (a grandchild that keeps a pipe open cannot hold us up) and a few environment variables. Knows nothing of programs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.005
_live: set[int] = set()
_interrupted: set[int] = set()
_lock = threading.RLock()  # a signal handler may call interrupt_all while this thread holds it


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended. returncode: as subprocess spells it (negative: signal), None where the time limit struck."""

    returncode: int | None
    log: str
    interrupted: bool
    seconds: float


def run_child(argv: Sequence[str], *, folder: Path, environment: Mapping[str, str], log: Path, timeout: float | None) -> Ended:
    """Run `argv` in `folder` to its end, or kill its whole process group after `timeout` seconds.

    log: file that receives standard output and error. No process of the group outlives this call, whatever ends it. Errors:
    OSError where the program cannot be executed; KeyboardInterrupt and any other exception pass through after the group is dead.
    """
    started = time.monotonic()
    child: subprocess.Popen[bytes] | None = None
    ended = interrupted = False
    try:
        # Started and registered in one step: interrupt_all must not miss a compile that has just begun.
        with log.open("wb") as sink, _lock:
            child = subprocess.Popen(
                list(argv), cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
            _live.add(child.pid)
        ended = _wait(child.pid, None if timeout is None else started + timeout)
    finally:
        if child is not None:
            interrupted = _end(child)
    text = log.read_bytes().decode("utf-8", "replace")
    return Ended(child.returncode if ended else None, text, interrupted, time.monotonic() - started)


def _end(child: subprocess.Popen[bytes]) -> bool:
    """Kill what is left of the child's group and reap it; True where interrupt_all was the cause of death."""
    with _lock:
        # The leader is not reaped yet, so its number still names this group and no other.
        _kill_group(child.pid)
        _live.discard(child.pid)
        interrupted = child.pid in _interrupted
        _interrupted.discard(child.pid)
    child.wait()
    return interrupted


def interrupt_all() -> int:
    """Kill every compile of this process, from any thread; each then raises CompileError of class "interrupted".

    For a pool of threads: the main thread receives Ctrl-C, the compiles wait in the others. Returns how many there were.
    """
    with _lock:
        for pid in _live:
            _interrupted.add(pid)
            _kill_group(pid)
        return len(_live)


def _wait(pid: int, deadline: float | None) -> bool:
    """True when the child has ended (left unreaped), False when the deadline passed first."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if deadline is not None and time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
        os.killpg(pid, signal.SIGKILL)
