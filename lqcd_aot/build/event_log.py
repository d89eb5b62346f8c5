"""What builds did, kept in the store: events/<when>-<random>.jsonl, one file for each build.

    {"schema": "lqcd-aot/events/v1", "recipe": .., "started": "2026-11-30T21:48:17Z", "variants": n}
    {"at": seconds since the start, "kind": .., "name": .., "detail": ..}      one for each event but "reused"
    {"outcomes": {"reused": n, "published": n, "failed": n, ..}, "seconds": ..}

Owns the format, both ways: `report` shows hit rates from it. No key, record or artifact depends on it; a store that cannot be
written loses its log and nothing else. The newest KEPT files stay; one of a build that only reused is not worth a wait for the
disk, and may be lost with the power.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.build.events import FINAL, Event
from lqcd_runtime.errors import StoreError

if TYPE_CHECKING:
    from lqcd_aot.store import Store

SCHEMA = "lqcd-aot/events/v1"
KEPT = 200


class EventLog:
    """Collects the events of one build. `observe` is an observer; `write` puts the log into the store."""

    def __init__(self, recipe: str, variants: int) -> None:
        self._began, self._since = time.time(), time.monotonic()
        head = {"schema": SCHEMA, "recipe": recipe, "started": _spelled(self._began), "variants": variants}
        self._lines: list[dict[str, Any]] = [head]
        self._outcomes: Counter[str] = Counter()

    def observe(self, event: Event) -> None:
        """Take note of an event."""
        if event.kind in FINAL:
            self._outcomes[event.kind] += 1
        if event.kind != "reused":
            at = round(time.monotonic() - self._since, 3)
            self._lines.append({"at": at, "kind": event.kind, "name": event.name, "detail": event.detail})

    def write(self, store: Store) -> bool:
        """Put the log into the store; False where nothing was seen or the store cannot be written."""
        only_reused = len(self._lines) == 1
        if only_reused and not self._outcomes:
            return False
        end = {"outcomes": dict(sorted(self._outcomes.items())), "seconds": round(time.monotonic() - self._since, 3)}
        data = "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in [*self._lines, end]).encode("ascii")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._began))
        folder = f"{store.root}/events"
        try:
            store.writer.replace(f"{folder}/{stamp}-{secrets.token_hex(8)}.jsonl", data, durable=not only_reused)
            for name in store.fs.listdir(folder)[:-KEPT]:
                store.writer.remove(f"{folder}/{name}")
        except (StoreError, OSError):
            return False
        return True


class Build(NamedTuple):
    """One build as its log tells it. seconds: None where its end is not in the log."""

    recipe: str
    started: str
    variants: int
    outcomes: dict[str, int]
    seconds: float | None
    failures: tuple[tuple[str, str], ...]


def read_logs(store: Store) -> Iterator[Build]:
    """The builds that are in the store's logs, oldest first; a file that is no log is passed over."""
    folder = f"{store.root}/events"
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = store.fs.listdir(folder)
    for name in names:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            yield parse_log(store.fs.read(f"{folder}/{name}"))


def parse_log(data: bytes) -> Build:
    """A build from the bytes of its log; of one without its last line the outcomes are counted. Errors: ValueError, KeyError."""
    lines = [json.loads(line) for line in data.splitlines()]
    head, events = lines[0], [line for line in lines[1:] if "kind" in line]
    if head["schema"] != SCHEMA:
        raise ValueError(f"schema {head['schema']!r}")
    end = next((line for line in lines if "outcomes" in line), None)
    outcomes = end["outcomes"] if end else Counter(e["kind"] for e in events if e["kind"] in FINAL)
    failures = tuple((str(e["name"]), str(e["detail"])) for e in events if e["kind"] == "failed")
    counted = {str(k): int(v) for k, v in outcomes.items()}
    return Build(
        str(head["recipe"]), str(head["started"]), int(head["variants"]), counted, end and float(end["seconds"]), failures
    )


def _spelled(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
