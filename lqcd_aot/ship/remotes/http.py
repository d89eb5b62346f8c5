"""A folder remote behind any web server, read only. Standard library; resumes by Range where the server knows it."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator

from lqcd_aot.ship.remotes.base import ATTEMPTS, LARGEST_REF, BrokenRead, Object, RemoteError, Shelf
from lqcd_runtime.errors import UsageError

PIECE = 1 << 20
TIMEOUT_SECONDS = 60


class HttpRemote:
    """A remote at http(s)://host/path."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def has(self, wanted: Object) -> bool:
        raise self._read_only()

    def read(self, digest: str, start: int) -> Iterator[bytes]:
        try:
            with self._get(f"blobs/sha256/{digest[:2]}/{digest}", start) as answer:
                # A server without ranges answers 200 with all of it.
                skip = start if answer.status == 200 else 0
                while piece := answer.read(PIECE):
                    rest, skip = piece[skip:], max(0, skip - len(piece))
                    if rest:
                        yield rest
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise RemoteError(f"remote {self.url}: has no object {digest[:16]}", found=f"status {error.code}") from error
            raise BrokenRead(f"status {error.code}") from error
        except (OSError, http.client.HTTPException) as error:
            raise BrokenRead(str(error)) from error

    def write(self, digest: str, data: bytes) -> None:
        raise self._read_only()

    def read_ref(self, name: str) -> bytes | None:
        try:
            for _ in range(ATTEMPTS):
                with self._get(f"refs/{name}.json", 0) as answer:
                    data: bytes = answer.read(LARGEST_REF + 1)
                    # `length` is what the server promised and did not send: the connection broke.
                    if not answer.length or len(data) > LARGEST_REF:
                        return data
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise RemoteError(f"remote {self.url}: refuses", found=f"status {error.code}") from error
        except (OSError, http.client.HTTPException) as error:
            raise RemoteError(f"remote {self.url}: does not answer", found=error) from error
        raise RemoteError(f"remote {self.url}: keeps breaking off", hint="run the same command again")

    def write_ref(self, name: str, shelf: Shelf, before: bytes | None) -> bool:
        raise self._read_only()

    def names(self) -> list[str]:
        raise UsageError(f"remote {self.url}: a plain web server does not list", hint="name the bundle: lqcd-aot pull URL NAME")

    def _get(self, path: str, start: int) -> http.client.HTTPResponse:
        headers = {"Range": f"bytes={start}-"} if start else {}
        request = urllib.request.Request(f"{self.url}/{path}", headers=headers)
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
        return answer

    def _read_only(self) -> UsageError:
        return UsageError(f"remote {self.url}: can only be read", hint="push to the folder or bucket that it shows")
