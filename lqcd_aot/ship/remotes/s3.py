"""An S3 bucket as a remote, through obstore (extra [remote]). Objects and new references are put with If-None-Match.

Where the bucket is and who asks are obstore's business: it reads the usual AWS_* variables and profiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lqcd_aot.ship.remotes.base import LARGEST_REF, BrokenRead, Object, RemoteError, Shelf
from lqcd_runtime.errors import UsageError


class S3Remote:
    """A remote at s3://bucket/prefix. options: passed to obstore, e.g. `client_options`."""

    def __init__(self, url: str, **options: Any) -> None:
        try:
            import obstore
            from obstore import exceptions, store
        except ImportError as error:
            hint = "pip install 'lqcd-aot[remote]'"
            raise UsageError(f"remote {url}: needs the package obstore", found=error, hint=hint) from error
        self.url = url.rstrip("/")
        self._api: Any = obstore
        self._errors: Any = exceptions
        try:
            self._store = store.from_url(self.url, **options)
        except (exceptions.BaseError, ValueError) as error:
            raise UsageError(f"remote {url}: cannot be used", found=_first_line(error)) from error

    def has(self, wanted: Object) -> bool:
        try:
            return int(self._api.head(self._store, _blob(wanted.sha256))["size"]) == wanted.size
        except FileNotFoundError:
            return False
        except self._errors.BaseError as error:
            raise self._failed(error) from error

    def read(self, digest: str, start: int) -> Iterator[bytes]:
        options = {"range": {"offset": start}} if start else None
        try:
            for piece in self._api.get(self._store, _blob(digest), options=options).stream():
                yield bytes(piece)
        except FileNotFoundError as error:
            raise RemoteError(f"remote {self.url}: has no object {digest[:16]}") from error
        except self._errors.BaseError as error:
            raise BrokenRead(_first_line(error)) from error

    def write(self, digest: str, data: bytes) -> None:
        self._create(_blob(digest), data)

    def read_ref(self, name: str) -> bytes | None:
        try:
            answer = self._api.get(self._store, _ref(name))
            if answer.meta["size"] > LARGEST_REF:
                raise RemoteError(f"remote {self.url}: reference {name} is too large", found=answer.meta["size"])
            return bytes(answer.bytes())
        except FileNotFoundError:
            return None
        except self._errors.BaseError as error:
            raise self._failed(error) from error

    def write_ref(self, name: str, shelf: Shelf, before: bytes | None) -> bool:
        if before is None:
            return self._create(_ref(name), shelf.ref)
        try:
            now = self._api.get(self._store, _ref(name))
            version = {name: now.meta[name] for name in ("e_tag", "version") if now.meta[name] is not None}
            if bytes(now.bytes()) != before:
                return False
            # If-Match: replaced only if nobody else did in between.
            self._api.put(self._store, _ref(name), shelf.ref, mode=version, use_multipart=False)
        except (FileNotFoundError, self._errors.PreconditionError):
            return False
        except self._errors.BaseError as error:
            raise self._failed(error) from error
        return True

    def names(self) -> list[str]:
        try:
            found = [str(entry["path"]) for page in self._api.list(self._store, "refs/") for entry in page]
        except self._errors.BaseError as error:
            raise self._failed(error) from error
        return sorted(path.rpartition("/")[2].removesuffix(".json") for path in found)

    def _create(self, path: str, data: bytes) -> bool:
        """If-None-Match: *. False where it is there: the first writer wins, and 409 is a race that another one won."""
        try:
            self._api.put(self._store, path, data, mode="create", use_multipart=False)
        except (FileExistsError, self._errors.AlreadyExistsError, self._errors.PreconditionError):
            return False
        except self._errors.BaseError as error:
            raise self._failed(error) from error
        return True

    def _failed(self, error: Exception) -> RemoteError:
        return RemoteError(f"remote {self.url}: refuses or does not answer", found=_first_line(error))


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest[:2]}/{digest}"


def _ref(name: str) -> str:
    return f"refs/{name}.json"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]
