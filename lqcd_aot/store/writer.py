"""The one way bytes get into a store: private temporary file -> fsync -> rename or link -> fsync of the folder.

Owns that order, the permission policy and the translation of operating-system errors. Knows nothing of what it writes. At any
moment a name in the store is absent or complete; the worst a killed writer leaves is a file in tmp/ that names its dead owner.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from lqcd_aot.store.fs import PASSING, FileSystem
from lqcd_aot.store.layout import Layout
from lqcd_aot.store.owner import this_process
from lqcd_runtime.errors import StoreError

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})
ATTEMPTS = 3


class Writer:
    """Atomic, durable writes into one store.

    Permissions come from the store's own folder, never from a user's umask: new folders get its bits (setgid too), files the
    read bits of it, so a store made with mode 2775 stays shared and one made with 0700 stays private.
    """

    def __init__(self, fs: FileSystem, layout: Layout) -> None:
        self._fs = fs
        self._layout = layout
        self._mode: int | None = None
        self._anchored: set[str] = set()

    @property
    def folder_mode(self) -> int:
        """Permission bits of new folders: those of the store's own folder."""
        if self._mode is None:
            self._mode = self._fs.stat(self._layout.root).mode
        return self._mode

    @property
    def file_mode(self) -> int:
        """Permission bits of new files: read-only, for whom the folder may be read."""
        return 0o400 | (self.folder_mode & 0o444)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file that did not exist; False, and nothing written, where the name is taken: the first writer wins."""
        with translated(self._layout.root):
            return self._write(path, data, replace=False)

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write a file, whatever was there before; readers see the old bytes or the new ones. durable: survives a power loss."""
        with translated(self._layout.root):
            self._write(path, data, replace=True, durable=durable)

    def create_lease(self, path: str, data: bytes) -> bool:
        """As `create`, but not durable (a lease means nothing after a power loss), and with errors as the system gives them."""
        return self._write(path, data, replace=False, durable=False)

    def move(self, source: str, target: str) -> None:
        """Give a file another name inside the store, e.g. to put it aside in corrupt/. FileNotFoundError passes through."""
        with translated(self._layout.root):
            self._fs.rename(source, target)
            self._fs.fsync_dir(os.path.dirname(source))

    def place(self, source: str, path: str) -> bool:
        """Give a complete file of the store the name `path`, unless that is taken; `source` is gone after either.

        Errors: as the system gives them.
        """
        return self._place(source, path, replace=False)

    def settle(self, path: str) -> None:
        """Make durable the entry that another writer, perhaps killed since, gave this name. Errors: StoreError."""
        with translated(self._layout.root), contextlib.suppress(FileNotFoundError):
            self._fs.fsync_dir(os.path.dirname(path))

    def remove(self, path: str) -> None:
        """Remove a name; one that is absent is as good."""
        with translated(self._layout.root), contextlib.suppress(FileNotFoundError):
            self._fs.unlink(path)

    def folder(self, path: str) -> None:
        """Make sure a folder of the store exists and survives a power loss. Errors: StoreError."""
        with translated(self._layout.root):
            self._folder(path)

    def _folder(self, path: str) -> None:
        # Its entry in its parent is synchronised even where it exists already: whoever made it may have been killed before doing
        # so. Once per process.
        if path in self._anchored:
            return
        if path == self._layout.root:
            self._anchor_root()
        else:
            parent = os.path.dirname(path)
            self._folder(parent)
            with contextlib.suppress(FileExistsError):
                self._fs.mkdir(path, self.folder_mode)
            self._fs.fsync_dir(parent)
        self._anchored.add(path)

    def _anchor_root(self) -> None:
        """Make the store's own folder and all above it, as the umask says, and synchronise the whole chain."""
        chain = [self._layout.root]
        while (parent := os.path.dirname(chain[-1])) != chain[-1]:
            chain.append(parent)
        for path in reversed(chain[:-1]):
            try:
                self._fs.stat(path)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    self._fs.mkdir(path, None)
            # A folder above that we may pass but not read cannot be synchronised by us, and is not ours to make durable.
            with contextlib.suppress(PermissionError):
                self._fs.fsync_dir(os.path.dirname(path))

    def _write(self, path: str, data: bytes, *, replace: bool, durable: bool = True) -> bool:
        for attempt in range(ATTEMPTS):
            try:
                return self._write_once(path, data, replace=replace, durable=durable)
            except OSError as error:
                # The temporary file or the folder went away (a cleaner took us for dead), or a call that a network file system
                # reported as failed had taken effect. Writing a new temporary file settles all of these.
                if attempt == ATTEMPTS - 1 or error.errno not in {errno.ENOENT, errno.EEXIST, *PASSING}:
                    raise
                self._anchored.clear()
        raise AssertionError("unreachable")

    def _write_once(self, path: str, data: bytes, *, replace: bool, durable: bool) -> bool:
        fs, folder = self._fs, os.path.dirname(path)
        temporary = f"{self._layout.tmp}/{this_process().temp_name()}"
        self._folder(folder)
        try:
            handle = fs.open_new(temporary, self.file_mode)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[fs.write(handle, rest) :]
                if durable:
                    fs.fsync(handle)
            finally:
                fs.close(handle)
            placed = self._place(temporary, path, replace=replace)
        except BaseException:
            with contextlib.suppress(OSError):
                fs.unlink(temporary)
            raise
        if durable:
            # Also where another writer won: its entry must not be lost after we have said that it is there.
            fs.fsync_dir(folder)
        return placed

    def _place(self, temporary: str, path: str, *, replace: bool) -> bool:
        if replace:
            self._fs.rename(temporary, path)
            return True
        placed = True
        try:
            self._fs.link(temporary, path)
        except FileExistsError:
            placed = False
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            return self._place_without_links(temporary, path)
        with contextlib.suppress(OSError):
            self._fs.unlink(temporary)  # a failure leaves one more name of complete bytes in tmp/, nothing worse
        return placed

    def _place_without_links(self, temporary: str, path: str) -> bool:
        # Two writers may both pass the test; then the last one wins, and both wrote complete files for the same key.
        try:
            self._fs.stat(path)
        except FileNotFoundError:
            self._fs.rename(temporary, path)
            return True
        self._fs.unlink(temporary)
        return False


@contextlib.contextmanager
def translated(root: str) -> Iterator[None]:
    """Turn an operating-system error into one StoreError; FileNotFoundError and FileExistsError pass through."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError as error:
        raise store_error(root, error) from error


def store_error(root: str, error: OSError) -> StoreError:
    """One clear error for a store folder that the operating system refuses. Nothing half-written stays behind."""
    found = f"{error.strerror or error} (errno {error.errno})"
    if error.errno in NO_ROOM:
        return StoreError(f"store {root}: has no room left", found=found, hint="free some space, then run the same command again")
    if error.errno in READ_ONLY:
        return StoreError(f"store {root}: cannot be written", found=found, hint="--store FOLDER names one that can")
    return StoreError(f"store {root}: its file system failed", found=found, hint="check it, then run the same command again")
