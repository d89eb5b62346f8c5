"""The process in which freshly compiled machine code runs for the first time.

Owns both ends: `ReplayProcess` on the side of the build, and `main` in the child. A miscompiled artifact may crash, hang or
scribble over memory; here that is one failed variant and not a dead build. The child lives as long as the build, and is started
anew after a crash. It imports the runtime only.

Every component is compared with the whole judged answer, which the child reads from a file (build/answers.py), and the artifact
runs with several numbers of threads.

    request   u32 length, JSON {"entry", "builder", "judged"}; then for entry, and builder if not null, u64 length, machine code
    answer    one line of JSON: {"passed", "worst", "bound", "text"} or {"error"}
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from typing import IO, Any, NamedTuple

from lqcd_runtime.errors import CompileError
from lqcd_runtime.signature import Spec

ANSWER_BYTES = 1 << 16


class Replayed(NamedTuple):
    """passed, and one sentence: the errors and the bound, or why there are none."""

    passed: bool
    text: str


class ReplayProcess:
    """One child process, started on first use. Not for several threads at once. Close it, or use it as a context manager."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._interrupted = False

    def __enter__(self) -> ReplayProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def replay(
        self, entry: dict[str, Any], code: bytes, builder: tuple[dict[str, Any], bytes] | None,
        judged: dict[str, Any] | None = None, *, timeout: float,
    ) -> Replayed:  # fmt: skip
        """Run the witness of an entry (a record without its components) through `code`.

        builder: entry and code of the artifact that makes the blocks of a fused operator. judged: arguments of `answers.opened`,
        the whole answer. timeout: seconds. A crash, a hang and a refusal to load are answers like a wrong number: not passed.
        Errors: CompileError of class "interrupted" once `interrupt` was called: it says nothing of the artifact.
        """
        if self._interrupted:
            raise _stopped(entry)
        child = self._running()
        try:
            _send(child.stdin, entry, code, builder, judged)
            line = _receive(child.stdout, time.monotonic() + timeout)
        except BrokenPipeError:
            line = b""
        except TimeoutError:
            self.close()
            return Replayed(False, f"did not answer within {timeout:g} s")
        except BaseException:
            self.close()  # the two ends no longer agree on where a request begins
            raise
        if not line and self._interrupted:
            raise _stopped(entry)
        if not line:
            status = child.wait()
            self.close()
            return Replayed(False, f"crashed with {_how(status)}")
        answer = json.loads(line)
        return Replayed(bool(answer.get("passed")), str(answer.get("text") or answer.get("error")))

    def interrupt(self) -> None:
        """From another thread: end the child, so that a replay under way ends; it and later ones raise."""
        self._interrupted = True
        self._kill()

    def _kill(self) -> None:
        child = self._child
        if child is not None and child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the child, whatever it is doing."""
        self._kill()
        child, self._child = self._child, None
        if child is not None:
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            # A session of its own: Ctrl-C at the terminal is the build's to handle, and killing its group leaves nothing behind.
            self._child = subprocess.Popen(
                [sys.executable, "-m", "lqcd_aot.build.replay_child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
            )
        return self._child


def _stopped(entry: dict[str, Any]) -> CompileError:
    name = f"{Spec.from_dict(entry['spec']).name}@{entry['target']}"
    return CompileError(f"artifact {name}: its check was interrupted", failure_class="interrupted", hint="build again")


def _send(
    pipe: IO[bytes] | None, entry: dict[str, Any], code: bytes, builder: tuple[dict[str, Any], bytes] | None,
    judged: dict[str, Any] | None,
) -> None:  # fmt: skip
    assert pipe is not None
    header = json.dumps({"entry": entry, "builder": builder[0] if builder else None, "judged": judged}).encode()
    parts = [struct.pack("<I", len(header)), header, struct.pack("<Q", len(code)), code]
    if builder is not None:
        parts += [struct.pack("<Q", len(builder[1])), builder[1]]
    rest = memoryview(b"".join(parts))
    while rest:
        rest = rest[pipe.write(rest) :]


def _receive(pipe: IO[bytes] | None, deadline: float) -> bytes:
    """One line; b"" where the child ended first. Errors: TimeoutError."""
    assert pipe is not None
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        piece = os.read(pipe.fileno(), ANSWER_BYTES)
        if not piece:
            return b""
        line += piece
    return line


def _how(status: int) -> str:
    return f"signal {-status} ({signal.Signals(-status).name})" if status < 0 else f"exit code {status}"


def main() -> None:
    """The child: answer requests until the other end is gone."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # an artifact that prints must not speak in our name
    while header := requests.read(4):
        names = json.loads(_exactly(requests, struct.unpack("<I", header)[0]))
        code = _exactly(requests, struct.unpack("<Q", requests.read(8))[0])
        builder = None
        if names["builder"] is not None:
            builder = (names["builder"], _exactly(requests, struct.unpack("<Q", requests.read(8))[0]))
        answers.write(json.dumps(_answer(names["entry"], code, builder, names["judged"])).encode() + b"\n")
        answers.flush()


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) != count:
        raise SystemExit("the build ended in the middle of a request")
    return data


def _answer(
    raw: dict[str, Any], code: bytes, builder: tuple[dict[str, Any], bytes] | None, judged: dict[str, Any] | None
) -> dict[str, Any]:
    from lqcd_aot.build.answers import opened
    from lqcd_runtime.errors import LqcdError
    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.witness import replay

    try:
        entry = Entry.from_dict(raw, "fresh artifact")
        helper = _load(builder[1], Entry.from_dict(builder[0], "builder")) if builder is not None else None
        artifact = _load(code, entry)
        if entry.spec.kind == "builder":
            return {"passed": True, "text": "loads; its blocks are judged by the fused operators that use them"}
        right = opened(judged["path"], tuple(judged["shape"]), judged["columns"]) if judged is not None else None
        outcome = replay(entry, artifact, helper, judged=right)
    except LqcdError as error:
        return {"error": error.fact if error.found is None else f"{error.fact} ({error.found})"}
    except Exception as error:  # a mistake of ours must be told apart from machine code that crashes
        return {"error": f"{type(error).__name__}: {error}"}
    return {"passed": outcome.passed, "text": str(outcome)}


def _load(code: bytes, entry: Any) -> Any:
    """The artifact on the engine of its target. One that cannot be loaded fails here, also where it is not run.

    Errors: those of the engine.
    """
    from lqcd_runtime.engines import load
    from lqcd_runtime.target import CPU_TARGETS

    artifact: Any = load(code, entry)
    if entry.target not in CPU_TARGETS:
        artifact.load()
    return artifact


if __name__ == "__main__":
    main()
