"""corrupt/: where entries go that are not what their name says, so that a person can look and the next build can heal.

Owns the folder. Never deletes; never used on a read path.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from lqcd_aot.store.layout import Layout
from lqcd_aot.store.owner import this_process
from lqcd_aot.store.problems import Problems
from lqcd_aot.store.writer import Writer


class Quarantine:
    """Puts entries aside."""

    def __init__(self, layout: Layout, writer: Writer, problems: Problems) -> None:
        self._layout, self._writer, self._problems = layout, writer, problems

    def put_aside(self, kind: str, name: str, path: str, fact: str, is_sound: Callable[[str], bool]) -> None:
        """Move `path` to corrupt/<kind>-<name>-<random> and note the problem. Whoever was faster is right.

        is_sound(name) is asked again first: between the reading and this call another process may have healed the entry.
        Errors: StoreError where the store cannot be written.
        """
        if is_sound(name):
            return
        self._problems.add(kind, name, fact)
        self._writer.folder(self._layout.folder("corrupt"))
        target = f"{self._layout.folder('corrupt')}/{kind}-{os.path.basename(path)}-{this_process().temp_name()[-32:]}"
        with contextlib.suppress(FileNotFoundError):
            self._writer.move(path, target)
