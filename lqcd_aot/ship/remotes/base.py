"""The interface of a remote, and reading from one: bounded, resumed where a connection broke, verified.

Owns `Remote` and `fetch`. Knows nothing of bundles, signatures or where a remote is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CorruptError, LqcdError, UsageError

ATTEMPTS = 4
# Also a tag of an OCI registry and a file name everywhere.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
LARGEST_REF = 1 << 20


class RemoteError(LqcdError):
    """A remote that does not answer, refuses, or lost something."""


class BrokenRead(Exception):
    """A connection that ended in the middle; reading goes on from where it broke. The reason is its only argument."""


class Object(NamedTuple):
    """Bytes of a remote: digest, size, media type."""

    sha256: str
    size: int
    media_type: str


class Shelf(NamedTuple):
    """A bundle as a remote keeps it. ref: the reference's bytes; head: {label: object} that every reader needs; targets: what
    only users of that target need.
    """

    ref: bytes
    head: Mapping[str, Object]
    targets: Mapping[str, Sequence[Object]]


class Remote(Protocol):
    """A place that keeps objects by digest and references by name. Every failure is a RemoteError."""

    url: str

    def has(self, wanted: Object) -> bool:
        """Whether the object is there."""

    def read(self, digest: str, start: int) -> Iterator[bytes]:
        """The object's bytes from `start`. Errors: BrokenRead where it may be had by asking again."""

    def write(self, digest: str, data: bytes) -> None:
        """Keep bytes under their digest; again is as good."""

    def read_ref(self, name: str) -> bytes | None:
        """The reference of that name, None where there is none; at most LARGEST_REF bytes."""

    def write_ref(self, name: str, shelf: Shelf, before: bytes | None) -> bool:
        """Let the name stand for a shelf, if it still stands for `before` (None: nothing). False where it does not."""

    def names(self) -> list[str]:
        """All names, sorted. Errors: UsageError where this kind of remote cannot list."""


def fetch(remote: Remote, digest: str, size: int) -> bytes:
    """Bytes with this digest and size. Errors: RemoteError after ATTEMPTS broken reads, CorruptError for other bytes."""
    pieces: list[bytes] = []
    have, why = 0, ""
    for _ in range(ATTEMPTS):
        try:
            for piece in remote.read(digest, have):
                pieces.append(piece)
                have += len(piece)
                if have > size:
                    raise CorruptError(f"remote {remote.url}: object {digest[:16]} is larger than it may be", expected=size)
        except BrokenRead as broken:
            why = str(broken)
            continue
        if have == size:
            break
        why = f"{have} of {size} bytes"
    else:
        raise RemoteError(
            f"remote {remote.url}: object {digest[:16]} could not be read",
            found=why,
            hint="run the same command again: what is here already is not fetched twice",
        )
    data = b"".join(pieces)
    found = sha256_hex(data)
    if found != digest:
        raise CorruptError(
            f"remote {remote.url}: object {digest[:16]} has other bytes than its name", expected=digest, found=found
        )
    return data


def checked_name(name: str) -> str:
    """The name itself. Errors: UsageError where it could not name a bundle everywhere."""
    if not NAME.fullmatch(name):
        raise UsageError(f"bundle name {name!r}: cannot be used", expected="letters, digits and . _ -, at most 128")
    return name
