"""A folder as a remote. Owns the tree blobs/, refs/; any web server over it makes a plain HTTP remote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lqcd_aot.ship.remotes.base import LARGEST_REF, BrokenRead, Object, RemoteError, Shelf
from lqcd_aot.store.outfile import write_bytes
from lqcd_runtime.errors import UsageError

PIECE = 1 << 20


class FolderRemote:
    """A remote in a folder, made on the first write."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.url = self.root.as_uri()

    def blob(self, digest: str) -> Path:
        """Where the bytes of a digest are."""
        return self.root / "blobs" / "sha256" / digest[:2] / digest

    def ref(self, name: str) -> Path:
        """Where a reference is."""
        return self.root / "refs" / f"{name}.json"

    def has(self, wanted: Object) -> bool:
        try:
            return self.blob(wanted.sha256).stat().st_size == wanted.size
        except OSError:
            return False

    def read(self, digest: str, start: int) -> Iterator[bytes]:
        try:
            with self.blob(digest).open("rb") as file:
                file.seek(start)
                while piece := file.read(PIECE):
                    yield piece
        except FileNotFoundError as error:
            raise RemoteError(f"remote {self.url}: has no object {digest[:16]}") from error
        except OSError as error:
            raise BrokenRead(str(error)) from error

    def write(self, digest: str, data: bytes) -> None:
        self._put(self.blob(digest), data, replace=True)

    def read_ref(self, name: str) -> bytes | None:
        try:
            with self.ref(name).open("rb") as file:
                return file.read(LARGEST_REF + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RemoteError(f"remote {self.url}: cannot be read", found=error.strerror) from error

    def write_ref(self, name: str, shelf: Shelf, before: bytes | None) -> bool:
        if self.read_ref(name) != before:
            return False
        try:
            self._put(self.ref(name), shelf.ref, replace=before is not None)
        except UsageError:  # somebody was first
            return False
        return True

    def names(self) -> list[str]:
        return sorted(file.stem for file in (self.root / "refs").glob("*.json") if not file.name.startswith("."))

    def _put(self, path: Path, data: bytes, *, replace: bool) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RemoteError(f"remote {self.url}: cannot be written", found=error.strerror) from error
        write_bytes(path, data, what="remote", replace=replace)
