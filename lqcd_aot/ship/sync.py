"""A folder of bundles and a remote, made to hold the same names. Owns the comparison; pushing and pulling are theirs.

A name on one side only is copied to the other; one that stands for different bundles is a conflict and left alone on both.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lqcd_aot.ship.content import opened
from lqcd_aot.ship.pull import pull
from lqcd_aot.ship.push import Progress, push
from lqcd_aot.ship.remotes.base import Remote
from lqcd_aot.ship.remotes.shelf import parse_reference

if TYPE_CHECKING:
    from lqcd_aot.store import Store
    from lqcd_aot.trust import Policy


class Synced(NamedTuple):
    """Names pushed, pulled, the same on both sides, and in conflict."""

    pushed: tuple[str, ...]
    pulled: tuple[str, ...]
    same: tuple[str, ...]
    conflicts: tuple[str, ...]


def sync(
    folder: str | os.PathLike[str], remote: Remote, store: Store, policy: Policy, *, progress: Progress | None = None
) -> Synced:
    """Push NAME.lqcd files that the remote lacks, pull bundles that the folder lacks (through the store, judged as any pull).

    Errors: RemoteError, CorruptError, TrustError, StoreError, UsageError where the remote cannot list.
    """
    place = Path(folder)
    here = {file.stem: _manifest(file) for file in sorted(place.glob("*.lqcd"))}
    there = {}
    for name in remote.names():
        raw = remote.read_ref(name)
        if raw is not None:
            there[name] = parse_reference(raw, f"remote {remote.url}: {name}").manifest_sha256
    pushed = sorted(here.keys() - there.keys())
    pulled = sorted(there.keys() - here.keys())
    for name in pushed:
        push(place / f"{name}.lqcd", remote, name=name, progress=progress)
    for name in pulled:
        pull(remote, name, store, policy, out=place / f"{name}.lqcd", progress=progress)
    both = sorted(here.keys() & there.keys())
    same = tuple(name for name in both if here[name] == there[name])
    return Synced(tuple(pushed), tuple(pulled), same, tuple(name for name in both if name not in same))


def _manifest(file: Path) -> str:
    with opened(file, verify=False) as bundle:
        return bundle.manifest_sha256
