"""Threads that work through a list, bounded by their number and by memory.

Owns the queue, the memory tokens and the end: by completion, by a fatal error, or by Ctrl-C. Knows nothing of what a task does.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
Answer = Literal["done", "busy"]

# How often the main thread looks up: a signal reaches Python code only there.
TICK_SECONDS = 0.05
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.01, 0.25
MEMORY_SHARE = 0.8


class Pool(Generic[T]):
    """Runs `work(task)` for every task.

    jobs: threads; memory_of: bytes one task needs; memory: bytes to share (a task that needs more than all of it runs alone).
    work answers "done", or "busy" where somebody else holds the task: it comes again after the others, ever more slowly.
    """

    def __init__(self, jobs: int, memory_of: Callable[[T], int], memory: int, work: Callable[[T], Answer]) -> None:
        self._jobs, self._memory_of, self._memory, self._work = max(1, jobs), memory_of, memory, work
        self._ready: deque[T] = deque()
        self._later: list[tuple[float, float, T]] = []
        self._used = self._running = 0
        self._fatal: BaseException | None = None
        self._stopped = False
        self._changed = threading.Condition()

    def run(self, tasks: Sequence[T], on_stop: Callable[[], object]) -> None:
        """Until every task is done. A task's exception stops all and is raised here; so does KeyboardInterrupt.

        on_stop is called again and again while threads are still at work after a stop, to end what they wait for.
        """
        self._ready.extend(tasks)
        threads = [threading.Thread(target=self._loop, daemon=True) for _ in range(min(self._jobs, len(tasks)))]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads) and self._fatal is None:
                with self._changed:
                    self._changed.wait(TICK_SECONDS)
        finally:
            self._stop()
            while any(thread.is_alive() for thread in threads):
                if self._stopped and (self._fatal is not None or self._ready or self._running):
                    on_stop()
                threads[0].join(TICK_SECONDS)
                threads.sort(key=lambda thread: not thread.is_alive())
        if self._fatal is not None:
            raise self._fatal

    def _stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _loop(self) -> None:
        while (taken := self._take()) is not None:
            task, pause = taken
            try:
                answer = self._work(task)
            except BaseException as error:  # handed to the main thread, which raises it
                with self._changed:
                    self._fatal = self._fatal or error
                    self._stopped = True
                    self._give_back(task)
                return
            with self._changed:
                if answer == "busy":
                    pause = min(max(2 * pause, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
                    self._later.append((time.monotonic() + pause, pause, task))
                self._give_back(task)

    def _give_back(self, task: T) -> None:
        self._used -= self._memory_of(task)
        self._running -= 1
        self._changed.notify_all()

    def _take(self) -> tuple[T, float] | None:
        """The next task that fits into memory, waiting for one; None at the end."""
        with self._changed:
            while True:
                if self._stopped or not (self._ready or self._later or self._running):
                    return None
                candidate = self._candidate()
                if candidate is not None:
                    task, pause = candidate
                    self._used += self._memory_of(task)
                    self._running += 1
                    return task, pause
                self._changed.wait(TICK_SECONDS)

    def _fits(self, task: T) -> bool:
        return self._running == 0 or self._used + self._memory_of(task) <= self._memory

    def _candidate(self) -> tuple[T, float] | None:
        if self._ready:
            return (self._ready.popleft(), 0.0) if self._fits(self._ready[0]) else None
        now = time.monotonic()
        for i, (due, pause, task) in enumerate(self._later):
            if due <= now and self._fits(task):
                del self._later[i]
                return task, pause
        return None


def available_memory() -> int:
    """Bytes this process may reasonably use now: the least of free memory and the control group's limit, less a reserve."""
    found = [_meminfo(), _control_group()]
    known = [n for n in found if n is not None]
    return int(MEMORY_SHARE * min(known)) if known else 1 << 62


def _meminfo() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _control_group() -> int | None:
    try:
        with (
            open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit,
            open("/sys/fs/cgroup/memory.current", encoding="ascii") as used,
        ):
            text = limit.read().strip()
            return None if text == "max" else max(0, int(text) - int(used.read()))
    except (OSError, ValueError):
        return None
