"""From a bundle file to a remote: objects that are not there yet, then the reference.

Owns the order. Pushing again after an interruption sends only what is still absent. A name that stands for another bundle is
never replaced unasked.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from lqcd_aot.ship.content import opened
from lqcd_aot.ship.remotes.base import Object, Remote, checked_name
from lqcd_aot.ship.remotes.shelf import parse_reference, shelve
from lqcd_runtime.errors import UsageError

AT_ONCE = 8
# progress(bytes done, bytes in all, what)
Progress = Callable[[int, int, str], None]


class Pushed(NamedTuple):
    """name; manifest_sha256; sent, skipped: objects sent and objects that were there; bytes: of those sent."""

    name: str
    manifest_sha256: str
    sent: int
    skipped: int
    bytes: int


def push(
    path: str | os.PathLike[str],
    remote: Remote,
    *,
    name: str | None = None,
    replace: bool = False,
    progress: Progress | None = None,
) -> Pushed:
    """Send a bundle, verified first, to a remote under a name (its own by default).

    Errors: CorruptError, RemoteError, UsageError where the name stands for another bundle and `replace` is not set.
    """
    with opened(path) as bundle:
        called = checked_name(name or str(bundle.manifest["name"]))
        shelf, small, blobs = shelve(bundle, called)
        before = remote.read_ref(called)
        if before is not None and not replace:
            there = parse_reference(before, f"remote {remote.url}: {called}").manifest_sha256
            if there != bundle.manifest_sha256:
                raise _taken(remote, called, there, bundle.manifest_sha256)
        objects = {o.sha256: o for group in (shelf.head.values(), *shelf.targets.values()) for o in group}
        total, done, sent, sent_bytes = sum(o.size for o in objects.values()), 0, 0, 0

        def send(wanted: Object) -> tuple[Object, bool]:
            if remote.has(wanted):
                return wanted, False
            remote.write(wanted.sha256, bundle.read_blob(wanted.sha256) if wanted.sha256 in blobs else small[wanted.sha256])
            return wanted, True

        with ThreadPoolExecutor(AT_ONCE) as pool:
            for wanted, is_new in pool.map(send, objects.values()):
                done, sent, sent_bytes = done + wanted.size, sent + is_new, sent_bytes + is_new * wanted.size
                if progress is not None:
                    progress(done, total, wanted.sha256[:16])
        if before != shelf.ref and not remote.write_ref(called, shelf, before):
            raise UsageError(f"remote {remote.url}: somebody else gave {called} another meaning meanwhile", hint="push again")
        return Pushed(called, bundle.manifest_sha256, sent, len(objects) - sent, sent_bytes)


def _taken(remote: Remote, name: str, there: str, mine: str) -> UsageError:
    return UsageError(
        f"remote {remote.url}: {name} stands for another bundle",
        expected=there,
        found=mine,
        hint="--name gives this one another name; --replace replaces what others may rely on",
    )
