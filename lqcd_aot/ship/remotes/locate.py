"""From a URL to a remote. Owns the list of schemes."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from lqcd_aot.ship.remotes.base import Remote
from lqcd_runtime.errors import UsageError

SCHEMES = ("file", "http", "https", "s3", "oci", "oci-layout")


def locate(url: str) -> Remote:
    """The remote at a URL, or in a folder where it has no scheme. Errors: UsageError for what is no place of ours."""
    parts = urlsplit(url)
    scheme = parts.scheme if "://" in url else "file"
    if scheme == "file":
        from lqcd_aot.ship.remotes.folder import FolderRemote

        return FolderRemote(Path(unquote(parts.path) if "://" in url else url))
    if scheme == "oci-layout":
        from lqcd_aot.ship.remotes.layout import LayoutRemote

        return LayoutRemote(Path(unquote(parts.path)))
    if scheme in ("http", "https"):
        from lqcd_aot.ship.remotes.http import HttpRemote

        return HttpRemote(url)
    if scheme == "s3":
        from lqcd_aot.ship.remotes.s3 import S3Remote

        return S3Remote(url)
    if scheme == "oci":
        from lqcd_aot.ship.remotes.registry import RegistryRemote

        return RegistryRemote(url)
    raise UsageError(f"remote {url}: has an unknown scheme", expected=", ".join(SCHEMES), found=scheme)
