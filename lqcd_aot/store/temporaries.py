"""tmp/: removing what dead writers left.

Owns the judgement of who is dead: on this host the process table, of other hosts only age. A live writer that is taken for dead
all the same finds its file gone and writes again.
"""

from __future__ import annotations

import time

from lqcd_aot.store.blobs import listed
from lqcd_aot.store.fs import FileSystem
from lqcd_aot.store.layout import Layout
from lqcd_aot.store.owner import of_temp_name, this_host

# No single write takes as long as this on any host.
OLD_SECONDS = 24 * 3600.0


def stale(fs: FileSystem, layout: Layout, now: float | None = None) -> list[str]:
    """Names in tmp/ that no live writer can need."""
    now = time.time() if now is None else now
    found = []
    for name in listed(fs, layout.tmp):
        owner = of_temp_name(name)
        if owner is not None and owner.host == this_host():
            if owner.is_dead():
                found.append(name)
            continue
        try:
            old = now - fs.stat(f"{layout.tmp}/{name}").mtime > OLD_SECONDS
        except OSError:
            continue
        if old:
            found.append(name)
    return found


def sweep(fs: FileSystem, layout: Layout) -> int:
    """Remove them; returns how many went. Never fails: cleaning is not what the caller came for."""
    gone = 0
    for name in stale(fs, layout):
        try:
            fs.unlink(f"{layout.tmp}/{name}")
        except OSError:
            continue
        gone += 1
    return gone
