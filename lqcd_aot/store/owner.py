"""Who wrote a temporary file or holds a lease: host, process, start time; and whether that process is provably dead.

Owns the spelling of an owner inside file names and leases. A host is named by host name, boot and process-id namespace, so that
two containers which both call themselves pid 1 on one network folder are two hosts, and a machine is another host after a
reboot. "Dead" is said only of processes of this very host; of all others nothing is known.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from typing import NamedTuple

_NAME = re.compile(r"^([A-Za-z0-9_.]+)-(\d+)-(\d+)-[0-9a-f]{32}$")


class Owner(NamedTuple):
    """A process: host token (name plus 8 hex digits of boot and namespace), pid, start time in clock ticks since boot."""

    host: str
    pid: int
    start: int

    def is_dead(self) -> bool:
        """True only where this host's process table proves it."""
        if self.host != this_host():
            return False
        start = start_time(self.pid)
        return start is None or start != self.start

    def temp_name(self) -> str:
        """A file name no other process, host or container makes: host-pid-start-128 random bits."""
        return f"{self.host}-{self.pid}-{self.start}-{secrets.token_hex(16)}"


def host_name() -> str:
    """The name of this machine, the same after a reboot."""
    return os.uname().nodename


def of_temp_name(name: str) -> Owner | None:
    """The owner spelled in a temporary file's name; None for a name that is not ours."""
    match = _NAME.match(name)
    return Owner(match[1], int(match[2]), int(match[3])) if match else None


def this_process() -> Owner:
    """The owner that is calling. Asked anew each time: a fork is another owner."""
    pid = os.getpid()
    return Owner(this_host(), pid, start_time(pid) or 0)


def start_time(pid: int) -> int | None:
    """Start of a process in clock ticks since boot, None where there is no such process, 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            # The command name, in parentheses, may hold spaces; the fields after it do not. Zombies are dead for our purpose.
            fields = f.read().rpartition(b")")[2].split()
    except FileNotFoundError:
        return None if os.path.isdir("/proc/self") else _signalled(pid)
    except ProcessLookupError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _signalled(pid: int) -> int | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return 0


_host: str | None = None


def this_host() -> str:
    """Token of this host, boot and pid namespace, without '-': 'node17.3f09c1aa'."""
    global _host
    if _host is None:
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
                boot = f.read().strip()
            namespace = os.readlink("/proc/self/ns/pid")
        except OSError:
            boot = namespace = ""
        digest = hashlib.sha256(f"{boot}\0{namespace}".encode()).hexdigest()[:8]
        _host = re.sub(r"[^A-Za-z0-9_.]", "_", os.uname().nodename or "host") + "." + digest
    return _host
