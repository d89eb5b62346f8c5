"""Real servers on the loopback address, started and stopped by the tests: a web server, S3 (moto), an OCI registry (Debian's).

Each is bounded: it dies with the fixture, listens on a port of the system's choice and holds only what the tests put there.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

START_SECONDS = 60
REGISTRY = ("docker-registry", "registry")


class _Handler(SimpleHTTPRequestHandler):
    """A static web server that knows ranges, counts what it sends, and can break connections on request."""

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, WebServer)
        path = Path(self.translate_path(self.path))
        server.requests.append(self.path)
        if not path.is_file():
            self.send_error(404)
            return
        data, start = path.read_bytes(), 0
        wanted = self.headers.get("Range")
        if wanted and server.knows_ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            self.send_response(206)
        else:
            self.send_response(200)
        rest = data[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if server.breaks > 0 and len(rest) > 100:
            server.breaks -= 1
            rest = rest[: len(rest) // 2]
            self.close_connection = True
        self.wfile.write(rest)
        server.sent += len(rest)

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


class WebServer(ThreadingHTTPServer):
    """breaks: how many answers to cut in the middle; requests, sent: what was asked and how many bytes went out."""

    def __init__(self, root: Path, *, knows_ranges: bool = True) -> None:
        self.knows_ranges, self.breaks, self.sent = knows_ranges, 0, 0
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(root)))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def web_server(root: Path, *, knows_ranges: bool = True) -> Iterator[WebServer]:
    with WebServer(root, knows_ranges=knows_ranges) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def process(command: list[str], url: str, log: Path) -> Iterator[str]:
    """A server process that answers at `url` before the time is up; killed at the end."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as child:
        try:
            deadline = time.monotonic() + START_SECONDS
            while not _answers(url):
                assert child.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
                time.sleep(0.05)
            yield url
        finally:
            child.kill()


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """An S3 server process with an empty bucket `shelf`; its URL."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with process(command, f"http://127.0.0.1:{port}", folder / "s3.log") as url:
        urllib.request.urlopen(urllib.request.Request(f"{url}/shelf", method="PUT"), timeout=30).close()
        yield url


def registry_binary() -> str | None:
    """Where the registry program is, if it is installed."""
    return next((path for name in REGISTRY if (path := shutil.which(name))), None)


@contextmanager
def oci_registry(folder: Path) -> Iterator[str]:
    """A registry process with an empty folder; host:port."""
    port, binary = free_port(), registry_binary()
    assert binary is not None
    config = folder / "registry.yml"
    config.write_text(
        f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {folder}/registry}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n",
        encoding="ascii",
    )
    with process([binary, "serve", str(config)], f"http://127.0.0.1:{port}/v2/", folder / "registry.log") as url:
        yield url.removeprefix("http://").removesuffix("/v2/")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True
