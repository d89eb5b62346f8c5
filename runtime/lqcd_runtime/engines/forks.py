"""What must be forgotten in a forked child: thread pools, whose threads are gone, and locks that a gone thread may hold.

Owns one os.register_at_fork hook, set when the first object asks to be watched, and weak references to those objects.
"""

from __future__ import annotations

import os
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class ForkAware(Protocol):
        """Has something to forget."""

        def after_fork(self) -> None:
            """Called in the child, where only the forking thread lives."""


_watched: weakref.WeakSet[ForkAware] = weakref.WeakSet()
_hooked = False


def watch(thing: ForkAware) -> None:
    """Call `thing.after_fork()` in every forked child for as long as it lives."""
    global _hooked
    if not _hooked:
        os.register_at_fork(after_in_child=_after_fork)
        _hooked = True
    _watched.add(thing)


def _after_fork() -> None:
    for thing in list(_watched):
        thing.after_fork()
