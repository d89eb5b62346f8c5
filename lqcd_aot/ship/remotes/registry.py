"""An OCI registry as a remote, through oras (extra [remote]), which does the talking: log-ins of docker and podman serve.

Owns the requests of the OCI distribution spec 1.1 that a bundle needs. On the loopback address plain HTTP is spoken, elsewhere
HTTPS only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

from lqcd_aot.ship.remotes import oci
from lqcd_aot.ship.remotes.base import LARGEST_REF, BrokenRead, Object, RemoteError, Shelf
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import UsageError

PIECE = 1 << 20
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# The index holds the reference as a JSON string inside JSON.
LARGEST_INDEX = 4 * LARGEST_REF


class RegistryRemote:
    """A remote at oci://host[:port]/repository; the names of bundles are tags."""

    def __init__(self, url: str) -> None:
        try:
            import oras.provider
            import requests
        except ImportError as error:
            hint = "pip install 'lqcd-aot[remote]'"
            raise UsageError(f"remote {url}: needs the package oras", found=error, hint=hint) from error
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        if not parts.hostname or not parts.path.strip("/"):
            raise UsageError(f"remote {url}: names no repository", expected="oci://host[:port]/repository")
        insecure = parts.hostname in LOOPBACK
        self._failures: tuple[type[Exception], ...] = (requests.RequestException, ValueError)
        self._registry = oras.provider.Registry(parts.netloc, insecure=insecure)
        self._base = f"{'http' if insecure else 'https'}://{parts.netloc}/v2/{parts.path.strip('/')}/"
        self._registry.auth.load_configs(self._registry.get_container(f"{parts.netloc}{parts.path}"))

    def has(self, wanted: Object) -> bool:
        return bool(self._ask("HEAD", f"blobs/sha256:{wanted.sha256}", (200, 404)).status_code == 200)

    def read(self, digest: str, start: int) -> Iterator[bytes]:
        headers = {"Range": f"bytes={start}-"} if start else {}
        answer = self._ask("GET", f"blobs/sha256:{digest}", (200, 206, 404), headers=headers, stream=True)
        if answer.status_code == 404:
            raise RemoteError(f"remote {self.url}: has no object {digest[:16]}")
        skip = start if answer.status_code == 200 else 0
        try:
            for piece in answer.iter_content(PIECE):
                rest, skip = piece[skip:], max(0, skip - len(piece))
                if rest:
                    yield rest
        except self._failures as error:
            raise BrokenRead(str(error)) from error

    def write(self, digest: str, data: bytes) -> None:
        started = self._ask("POST", "blobs/uploads/", (202,))
        place = urljoin(self._base, started.headers.get("Location", ""))
        if urlsplit(place)[:2] != urlsplit(self._base)[:2]:
            raise RemoteError(f"remote {self.url}: sends uploads to another host", found=urlsplit(place).netloc)
        joint = "&" if "?" in place else "?"
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(len(data))}
        self._ask("PUT", f"{place}{joint}digest=sha256:{digest}", (201,), data=data, headers=headers)

    def read_ref(self, name: str) -> bytes | None:
        answer = self._ask("GET", f"manifests/{name}", (200, 404), headers={"Accept": oci.INDEX_TYPE}, stream=True)
        if answer.status_code == 404:
            return None
        data = b"".join(answer.iter_content(PIECE)) if int(answer.headers.get("Content-Length", 0)) <= LARGEST_INDEX else b""
        return oci.reference_in(data, f"remote {self.url}: {name}")

    def write_ref(self, name: str, shelf: Shelf, before: bytes | None) -> bool:
        # The distribution spec has no conditional put of a tag; what can be done is to look as late as possible.
        made = oci.manifests_of(shelf)
        empty = Object(sha256_hex(oci.EMPTY), len(oci.EMPTY), oci.EMPTY_TYPE)
        if not self.has(empty):
            self.write(empty.sha256, oci.EMPTY)
        for data in made.images:
            self._put_manifest(f"sha256:{sha256_hex(data)}", data, oci.MANIFEST_TYPE)
        if self.read_ref(name) != before:
            return False
        self._put_manifest(name, made.top, oci.INDEX_TYPE)
        return True

    def names(self) -> list[str]:
        answer = self._ask("GET", "tags/list", (200, 404))
        tags = answer.json().get("tags") if answer.status_code == 200 else []
        return sorted(str(tag) for tag in tags or [])

    def _put_manifest(self, reference: str, data: bytes, media_type: str) -> None:
        self._ask("PUT", f"manifests/{reference}", (201,), data=data, headers={"Content-Type": media_type})

    def _ask(self, method: str, path: str, good: tuple[int, ...], **options: Any) -> Any:
        try:
            answer = self._registry.do_request(urljoin(self._base, path), method, **options)
        except self._failures as error:
            raise RemoteError(f"remote {self.url}: does not answer", found=str(error)[:300]) from error
        if answer.status_code not in good:
            found = f"status {answer.status_code}: {answer.text[:200]}"
            raise RemoteError(f"remote {self.url}: refuses {method} {path.partition('?')[0][-80:]}", found=found)
        return answer
