"""An OCI image layout in a folder as a remote: what `oras`, `skopeo` and `crane` copy to and from registries."""

from __future__ import annotations

from pathlib import Path

from lqcd_aot.ship.remotes import oci
from lqcd_aot.ship.remotes.base import Shelf
from lqcd_aot.ship.remotes.folder import FolderRemote
from lqcd_runtime.digest import sha256_hex

MARKER = b'{"imageLayoutVersion": "1.0.0"}'


class LayoutRemote(FolderRemote):
    """A remote at oci-layout:///path: the folder remote with OCI's places and manifests. Not for several writers at once: its
    index.json is one file for all names.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.url = "oci-layout://" + str(self.root)

    def blob(self, digest: str) -> Path:
        return self.root / "blobs" / "sha256" / digest

    def read_ref(self, name: str) -> bytes | None:
        digest = self._entries().get(name)
        if digest is None:
            return None
        return oci.reference_in(b"".join(self.read(digest, 0)), f"remote {self.url}: {name}")

    def write_ref(self, name: str, shelf: Shelf, before: bytes | None) -> bool:
        if self.read_ref(name) != before:
            return False
        made = oci.manifests_of(shelf)
        for data in (oci.EMPTY, *made.images, made.top):
            self.write(sha256_hex(data), data)
        kept = {ref: b"".join(self.read(digest, 0)) for ref, digest in self._entries().items()}
        self._put(self.root / "oci-layout", MARKER, replace=True)
        self._put(self.root / "index.json", oci.layout_index({**kept, name: made.top}), replace=True)
        return True

    def names(self) -> list[str]:
        return sorted(self._entries())

    def _entries(self) -> dict[str, str]:
        path = self.root / "index.json"
        return oci.layout_entries(path.read_bytes(), f"remote {self.url}") if path.is_file() else {}
