"""roots/: what garbage collection must keep: pins, the artifacts of recipes, of lock files, of bundles, of an export under way.

Owns the root files, one per (kind, name); the rule for one that cannot be read: whatever looks like a key in it is kept; and the
rule for one that stands for a file: it is over when that file is gone from the host that named it. Knows no recipe, lock file or
bundle: whoever makes one passes the build keys.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from lqcd_aot.store.blobs import listed
from lqcd_aot.store.fs import FileSystem
from lqcd_aot.store.layout import Layout, is_key
from lqcd_aot.store.owner import host_name
from lqcd_aot.store.sealed import seal, unseal
from lqcd_aot.store.writer import Writer, translated
from lqcd_runtime.digest import tagged_sha256

ROOT_SCHEMA = "lqcd-aot/root/v1"
UNREADABLE = "unreadable"
_ANY_KEY = re.compile(rb"[0-9a-f]{64}")


class Root(NamedTuple):
    """A set of build keys to keep.

    kind: "pin", "recipe", "bundle", "lock" or "export"; name: readable, unique within its kind (a path, a word); created: seconds
    since the epoch; expires: the same, or None for a root that holds until it is removed. file, host: it holds while this file is
    there, as that host sees it; None where no file is asked.
    """

    kind: str
    name: str
    build_keys: tuple[str, ...]
    created: int
    expires: int | None = None
    file: str | None = None
    host: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The stored form, and what --json shows."""
        return {"schema": ROOT_SCHEMA, **self._asdict(), "build_keys": list(self.build_keys)}


class Roots:
    """The roots of one store."""

    def __init__(self, fs: FileSystem, layout: Layout, writer: Writer) -> None:
        self._fs, self._layout, self._writer = fs, layout, writer

    def get(self, kind: str, name: str) -> Root | None:
        """A root by kind and name, None where there is none that can be read."""
        try:
            root = _parse(self._fs.read(self._path(kind, name)))
        except (OSError, ValueError):
            return None
        return root if (root.kind, root.name) == (kind, name) else None

    def put(
        self, kind: str, name: str, build_keys: Iterable[str], *, seconds: float | None = None, file: str | None = None
    ) -> bool:
        """Keep these build keys, in place of what the root of that name kept; False where it kept just these already.

        seconds: for so long only; file: while this file is there. A root that held whatever became of a file goes on doing so.
        Errors: ValueError for something that is no key; StoreError where the store cannot be written.
        """
        keys = tuple(sorted(set(build_keys)))
        if not all(map(is_key, keys)):
            raise ValueError(f"root {name}: names something that is no build key")
        old = self.get(kind, name)
        if old is not None and old.file is None and old.expires is None:
            file = None
        now = int(time.time())
        expires = None if seconds is None else now + int(seconds) + 1
        root = Root(kind, name, keys, now, expires, file, None if file is None else host_name())
        if seconds is None and old is not None and old._replace(created=now) == root:
            return False
        self._writer.replace(self._path(kind, name), seal(root.as_dict()))
        return True

    def remove(self, kind: str, name: str) -> bool:
        """Keep them no longer; False where there was no such root. Errors: StoreError."""
        path = self._path(kind, name)
        try:
            with translated(self._layout.root):
                self._fs.stat(path)
        except FileNotFoundError:
            return False
        self._writer.remove(path)
        self._writer.settle(path)
        return True

    def all(self) -> list[Root]:
        """Every root, sorted by kind and name; one that cannot be read as kind "unreadable" with all that may be keys in it.

        Errors: StoreError where the file system fails: half of the roots is no answer.
        """
        found = []
        with translated(self._layout.root):
            base = self._layout.folder("roots")
            for fan in listed(self._fs, base):
                for file in listed(self._fs, f"{base}/{fan}"):
                    try:
                        data = self._fs.read(f"{base}/{fan}/{file}")
                    except FileNotFoundError:
                        continue
                    found.append(_parse_or_guess(data, f"{fan}/{file}"))
        return sorted(found)

    def is_over(self, root: Root, now: float) -> bool:
        """Whether a root keeps nothing any more: its time is up, or its file is gone."""
        if root.expires is not None and now > root.expires:
            return True
        # Twice: a network file system may show a name late.
        return root.file is not None and root.host == host_name() and self._is_gone(root.file) and self._is_gone(root.file)

    def kept(self, now: float) -> frozenset[str]:
        """Every build key that some root keeps now. Errors: StoreError."""
        return frozenset(key for root in self.all() if not self.is_over(root, now) for key in root.build_keys)

    def drop_over(self, now: float) -> int:
        """Remove the roots that keep nothing any more; returns how many."""
        over = [root for root in self.all() if self.is_over(root, now)]
        return sum(self.remove(root.kind, root.name) for root in over)

    def _is_gone(self, file: str) -> bool:
        try:
            self._fs.stat(file)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # another user's folder, a file system that fails: keeping too much is the safe mistake
            return False
        return False

    def _path(self, kind: str, name: str) -> str:
        return self._layout.entry("roots", tagged_sha256("lqcd-aot/root-name/v1", [kind, name]))


def _parse(data: bytes) -> Root:
    value = unseal(data)
    if value.pop("schema", None) != ROOT_SCHEMA:
        raise ValueError("is no root of this release")
    try:
        root = Root(**{**value, "build_keys": tuple(value["build_keys"])})
    except (TypeError, KeyError) as error:
        raise ValueError(f"is not a root: {error}") from error
    if not all(map(is_key, root.build_keys)):
        raise ValueError("names something that is no build key")
    return root


def _parse_or_guess(data: bytes, file: str) -> Root:
    try:
        return _parse(data)
    except ValueError:
        # Broken, or of a later release: keeping too much is the safe mistake.
        return Root(UNREADABLE, file, tuple(sorted({key.decode() for key in _ANY_KEY.findall(data)})), 0)
