"""leases/: who is building what, so that two processes do not do the same work twice.

Owns the lease files. A lease only saves work: losing one, or a file system on which everybody gets one, costs time and never
wrong bytes. It is a file made by link(), which every file system we know keeps exclusive, unlike flock(); it names its holder, so
a dead one on this host is passed over at once, and any other when its time is up.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from lqcd_aot.store.blobs import listed
from lqcd_aot.store.fs import FileSystem
from lqcd_aot.store.layout import Layout, is_key
from lqcd_aot.store.owner import Owner, this_process
from lqcd_aot.store.writer import Writer

LEASE_SCHEMA = "lqcd-aot/lease/v1"
CLOCK_SKEW_SECONDS = 60  # hosts of one cluster agree this well, or the work is done twice
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.002, 0.1

# Tokens this process holds: a lease of ours that is not here was left because its file could not be removed.
_held: set[str] = set()


class Holder(NamedTuple):
    """Who holds a lease, and until when (seconds since the epoch). token: tells one acquisition from all others."""

    owner: Owner
    expires: int
    token: str

    def __str__(self) -> str:
        return f"process {self.owner.pid} on {self.owner.host}"


class Lease:
    """A right to build one key. `is_held` is False where the store takes no lease files (read-only, full): go on without."""

    def __init__(self, leases: Leases, name: str, holder: Holder | None) -> None:
        self._leases, self._name, self._holder = leases, name, holder

    @property
    def is_held(self) -> bool:
        return self._holder is not None

    def release(self) -> None:
        """Give it back. Never fails: a lease left behind expires."""
        if self._holder is None:
            return
        if self._leases.holder(self._name) == self._holder:
            self._leases.drop(self._name)
        _held.discard(self._holder.token)
        self._holder = None


class Leases:
    """The leases of one store."""

    def __init__(
        self,
        fs: FileSystem,
        layout: Layout,
        writer: Writer,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._fs, self._layout, self._writer = fs, layout, writer
        self._clock, self._sleep = clock, sleep

    def acquire(self, name: str, *, seconds: float) -> Lease | None:
        """A lease for at most `seconds`, or None while another live process holds it."""
        holder = Holder(this_process(), int(self._clock() + seconds) + 1, secrets.token_hex(16))
        path, data = self._layout.entry("leases", name), _spell(holder)
        _held.add(holder.token)
        try:
            for _ in range(2):
                if self._writer.create_lease(path, data):
                    return Lease(self, name, holder)
                current = self.holder(name)
                if current == holder:  # the call that made it was reported as failed
                    return Lease(self, name, holder)
                if current is not None and not self._is_over(current):
                    break
                self._pass_over(name, current)
        except OSError:
            _held.discard(holder.token)
            return Lease(self, name, None)
        _held.discard(holder.token)
        return None

    def wait(self, name: str, *, seconds: float) -> Lease:
        """As `acquire`, waiting for another holder; after `seconds` without one, a lease that is not held."""
        pause, waited = FIRST_PAUSE_SECONDS, 0.0
        while (lease := self.acquire(name, seconds=seconds)) is None:
            if waited > seconds:
                return Lease(self, name, None)
            self._sleep(pause)
            waited, pause = waited + pause, min(2 * pause, LONGEST_PAUSE_SECONDS)
        return lease

    def holder(self, name: str) -> Holder | None:
        """Who holds a lease now, by the file; None where there is none or it cannot be read."""
        try:
            value = json.loads(self._fs.read(self._layout.entry("leases", name)))
            owner = Owner(str(value["host"]), int(value["pid"]), int(value["start"]))
            return Holder(owner, int(value["expires"]), str(value["token"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def drop(self, name: str) -> None:
        """Remove a lease file; never fails."""
        with contextlib.suppress(OSError):
            self._fs.unlink(self._layout.entry("leases", name))

    def all_names(self) -> list[str]:
        """Every key that has a lease file, over or not."""
        base = self._layout.folder("leases")
        names = [name for fan in listed(self._fs, base) for name in listed(self._fs, f"{base}/{fan}")]
        return [name[:-5] for name in names if name.endswith(".json") and is_key(name[:-5])]

    def live(self) -> frozenset[str]:
        """Keys that somebody may be building now: a lease that cannot be read counts."""
        now = {name: self.holder(name) for name in self.all_names()}
        return frozenset(name for name, holder in now.items() if holder is None or not self._is_over(holder))

    def drop_over(self) -> int:
        """Remove the leases that are over; returns how many."""
        over = {name: holder for name in self.all_names() if (holder := self.holder(name)) is not None and self._is_over(holder)}
        for name, holder in over.items():
            self._pass_over(name, holder)
        return len(over)

    def _is_over(self, holder: Holder) -> bool:
        if holder.owner == this_process() and holder.token not in _held:
            return True
        return holder.owner.is_dead() or self._clock() > holder.expires + CLOCK_SKEW_SECONDS

    def _pass_over(self, name: str, judged: Holder | None) -> None:
        """Remove a lease that is over; only the very one that was judged, as far as that can be had without a lock."""
        if self.holder(name) == judged:
            self.drop(name)


def _spell(holder: Holder) -> bytes:
    value = {"schema": LEASE_SCHEMA, **holder.owner._asdict(), "expires": holder.expires, "token": holder.token}
    return json.dumps(value, sort_keys=True).encode()
