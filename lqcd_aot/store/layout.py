"""Where things are in a store folder, and its VERSION.

Owns names and paths only (artifacts/README.md, "Tree"). Reads and writes nothing.
"""

from __future__ import annotations

import os
import re

VERSION = 1
VERSION_TEXT = f"lqcd-aot store {VERSION}\n".encode()
FOLDERS = ("blobs", "blobs/sha256", "records", "specs", "failures", "divergences", "leases", "roots", "gc", "tmp", "corrupt")

_KEY = re.compile(r"[0-9a-f]{64}")


def is_key(text: object) -> bool:
    """Whether this is a full SHA-256 in lower-case hex."""
    return isinstance(text, str) and _KEY.fullmatch(text) is not None


class Layout:
    """Paths of one store. `root` is absolute."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.path.abspath(os.fspath(root))

    def __repr__(self) -> str:
        return f"Layout({self.root!r})"

    def folder(self, name: str) -> str:
        """One of FOLDERS."""
        return f"{self.root}/{name}"

    @property
    def version(self) -> str:
        return f"{self.root}/VERSION"

    @property
    def tmp(self) -> str:
        return f"{self.root}/tmp"

    @property
    def condemned(self) -> str:
        """What garbage collection found unreferenced, and since when."""
        return f"{self.root}/gc/condemned.json"

    @property
    def listing(self) -> str:
        """The disposable list of usable records."""
        return f"{self.root}/listing"

    @property
    def verified(self) -> str:
        """The disposable list of bytes that were verified."""
        return f"{self.root}/verified"

    @property
    def layers(self) -> str:
        """The stores that are looked in after this one."""
        return f"{self.root}/layers"

    def blob(self, digest: str) -> str:
        """blobs/sha256/ab/abcd..."""
        return f"{self.root}/blobs/sha256/{_checked(digest)[:2]}/{digest}"

    def entry(self, kind: str, key: str) -> str:
        """records|specs|failures|leases|roots/ab/<key>.json"""
        return f"{self.root}/{kind}/{_checked(key)[:2]}/{key}.json"

    def divergence(self, build_key: str, digest: str) -> str:
        """divergences/ab/<build_key>-<digest of the second outputs>.json"""
        return f"{self.root}/divergences/{_checked(build_key)[:2]}/{build_key}-{_checked(digest)}.json"


def _checked(key: str) -> str:
    # A path is built from this: nothing but a digest may reach it.
    if not is_key(key):
        raise ValueError(f"{key!r} is not a SHA-256 in hex")
    return key
