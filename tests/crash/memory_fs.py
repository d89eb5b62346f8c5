"""A file system in memory that knows what a power loss would keep: the port of lqcd_aot.store.fs for tests.

Owns: files with written and synchronised bytes, folders with current and synchronised entries. `after_power_loss` gives the file
system a machine would find when it comes back.
"""

from __future__ import annotations

import errno
import posixpath
import time

from lqcd_aot.store.fs import FileStat
from lqcd_runtime.digest import sha256_hex


class Node:
    """A file (data, and what of it is on the disk) or a folder (entries, and which of them are on the disk)."""

    def __init__(self, mode: int, *, is_dir: bool) -> None:
        self.mode, self.is_dir, self.mtime = mode, is_dir, time.time()
        self.data, self.durable_data = b"", b""
        self.changes = 0  # as ctime counts them: a rename too
        self.entries: dict[str, Node] = {}
        self.durable_entries: dict[str, Node] = {}


def _file_stat(node: Node) -> FileStat:
    at = int(node.mtime * 1e9)
    return FileStat(len(node.data), node.mtime, node.mode, node.is_dir, at, at + node.changes, id(node))


def _error(number: int, path: str) -> OSError:
    return OSError(number, errno.errorcode[number], path)


class MemoryFileSystem:
    """The port. `hard_links=False`: link() is refused, as on FAT and some FUSE mounts."""

    def __init__(self, *, hard_links: bool = True) -> None:
        self.root = Node(0o755, is_dir=True)
        self.hard_links = hard_links
        self._handles: dict[int, Node] = {}

    def after_power_loss(self, *, entries_first: bool) -> MemoryFileSystem:
        """What is left when the power goes now. entries_first: every name reached the disk, but of the bytes only the
        synchronised ones (a file system that orders metadata before data); else only synchronised names and bytes."""
        survivor = MemoryFileSystem(hard_links=self.hard_links)
        copies: dict[int, Node] = {}

        def copy(node: Node) -> Node:
            if id(node) not in copies:
                new = copies[id(node)] = Node(node.mode, is_dir=node.is_dir)
                new.mtime, new.data, new.durable_data = node.mtime, node.durable_data, node.durable_data
                kept = node.entries if entries_first else node.durable_entries
                new.entries = {name: copy(child) for name, child in kept.items()}
                new.durable_entries = dict(new.entries)
            return copies[id(node)]

        survivor.root = copy(self.root)
        return survivor

    def settle(self) -> None:
        """Everything written until now is on the disk."""
        left = [self.root]
        while left:
            node = left.pop()
            node.durable_data, node.durable_entries = node.data, dict(node.entries)
            left += node.entries.values()

    def open_new(self, path: str, mode: int) -> int:
        folder, name = self._parent(path)
        if name in folder.entries:
            raise _error(errno.EEXIST, path)
        node = folder.entries[name] = Node(mode, is_dir=False)
        handle = max(self._handles, default=2) + 1
        self._handles[handle] = node
        return handle

    def write(self, handle: int, data: memoryview) -> int:
        self._handles[handle].data += bytes(data)
        return len(data)

    def fsync(self, handle: int) -> None:
        node = self._handles[handle]
        node.durable_data = node.data

    def close(self, handle: int) -> None:
        del self._handles[handle]

    def rename(self, source: str, target: str) -> None:
        (old, name), (new, other) = self._parent(source), self._parent(target)
        if name not in old.entries:
            raise _error(errno.ENOENT, source)
        new.entries[other] = old.entries.pop(name)
        new.entries[other].changes += 1

    def link(self, source: str, target: str) -> None:
        if not self.hard_links:
            raise _error(errno.EPERM, target)
        (old, name), (new, other) = self._parent(source), self._parent(target)
        if name not in old.entries:
            raise _error(errno.ENOENT, source)
        if other in new.entries:
            raise _error(errno.EEXIST, target)
        new.entries[other] = old.entries[name]
        new.entries[other].changes += 1

    def unlink(self, path: str) -> None:
        folder, name = self._parent(path)
        if name not in folder.entries:
            raise _error(errno.ENOENT, path)
        folder.entries.pop(name).changes += 1

    def mkdir(self, path: str, mode: int | None) -> None:
        folder, name = self._parent(path)
        if name in folder.entries:
            raise _error(errno.EEXIST, path)
        folder.entries[name] = Node(0o755 if mode is None else mode, is_dir=True)

    def fsync_dir(self, path: str) -> None:
        node = self._node(path)
        node.durable_entries = dict(node.entries)

    def read(self, path: str) -> bytes:
        return self._node(path).data

    def sha256(self, path: str) -> str:
        return sha256_hex(self.read(path))

    def stat(self, path: str) -> FileStat:
        return _file_stat(self._node(path))

    def listdir(self, path: str) -> list[str]:
        node = self._node(path)
        if not node.is_dir:
            raise _error(errno.ENOTDIR, path)
        return sorted(node.entries)

    def scan(self, path: str) -> list[tuple[str, FileStat]]:
        return [(name, _file_stat(self._node(path).entries[name])) for name in self.listdir(path)]

    def age(self, path: str, seconds: float) -> None:
        """Make a file older than it is."""
        self._node(path).mtime -= seconds

    def damage(self, path: str, data: bytes) -> None:
        """Change a file's bytes behind the store's back, on the disk too."""
        node = self._node(path)
        node.data = node.durable_data = data
        node.changes += 1

    def _node(self, path: str) -> Node:
        node = self.root
        for part in posixpath.normpath(path).strip("/").split("/"):
            if part:
                if part not in node.entries:
                    raise _error(errno.ENOENT, path)
                node = node.entries[part]
        return node

    def _parent(self, path: str) -> tuple[Node, str]:
        folder, name = posixpath.split(posixpath.normpath(path))
        return self._node(folder), name
