"""The report: complete in one file, nothing of a log becomes markup, every number has a second derivation."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lqcd_aot.build.event_log import EventLog
from lqcd_aot.build.events import Event
from lqcd_aot.report import gather, page
from lqcd_aot.store import Failure, Store
from lqcd_runtime.digest import sha256_hex
from tests.contracts.test_ship import built, variants

EVIL = "<script>alert(1)</script>\"'&</pre><img src=x onerror=alert(2)>"


class Tags(HTMLParser):
    """Every tag with its attributes, the text, and whether the tags are nested properly."""

    VOID = frozenset({"meta", "rect", "br", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.open = "", []  # type: ignore[var-annotated]
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = built(tmp_path / "store", variants())
    log = store.put_blob(EVIL.encode())
    name = "clover-8x8x8x8-f64-b1@x86-64-v3"
    store.record_failure(Failure(sha256_hex(b"k"), name, "deterministic", 1, EVIL, log, {"compiler": "fake"}))
    events = EventLog(EVIL, 4)
    for kind in ("reused", "reused", "reused", "published"):
        events.observe(Event(kind, "x", 0, 4, None, ""))  # type: ignore[arg-type]
    events.write(store)
    return store


def test_the_page_is_complete_and_nothing_in_it_is_markup_but_ours(store: Store) -> None:
    text = page(gather(store))
    tags = Tags(text)
    kinds = {tag for tag, _ in tags.seen}
    assert not kinds & {"script", "img", "link", "iframe", "object", "form", "a"}
    for _, attributes in tags.seen:
        assert not {"src", "href", "onerror", "onload", "onclick", "xlink:href"} & attributes.keys()
    assert "url(" not in text and "@import" not in text
    assert EVIL in tags.text  # readable as what it is
    assert (
        "meta",
        {"http-equiv": "Content-Security-Policy", "content": "default-src 'none'; style-src 'unsafe-inline'"},
    ) in tags.seen


def test_numbers_agree_with_the_store(store: Store) -> None:
    facts = gather(store)
    records = [store.record(k) for k in store.list_build_keys()]
    assert sorted(r.build_key for r in facts.rows) == store.list_build_keys()
    assert sum(r.size for r in facts.rows) == sum(r["outputs"]["code"]["size"] for r in records if r)
    assert [r.compile_ms for r in facts.rows] == [
        record["provenance"]["compile_ms"] for r in facts.rows if (record := store.record(r.build_key))
    ]
    text = Tags(page(facts)).text
    assert "12artifacts" in text
    assert "75 %of the variants of logged builds found in the store" in text
    assert "1failures remembered" in text
    # Cells of the matrix: three variants for each target, and the failed operator as a cell of its own.
    titles = re.findall(r"<title>(wilson, 4x4x4x4: [^<]*|clover, 8x8x8x8: [^<]*)</title>", page(facts))
    assert sum("3 variants, 0 witnesses passed (3 unchecked: bytes of a test)" in t for t in titles) == 4
    assert sum("1 failed to build" in t for t in titles) == 1


def test_the_hit_rate_counts_builds_that_only_reused_and_no_blocked_variants(store: Store) -> None:
    for outcomes in (["reused"] * 5, ["reused", "blocked", "blocked"]):
        events = EventLog("r", len(outcomes))
        for kind in outcomes:
            events.observe(Event(kind, "x", 0, 1, None, ""))  # type: ignore[arg-type]
        assert events.write(store)
    # Nine reused and one published of the three builds.
    assert "90 %of the variants of logged builds found in the store" in Tags(page(gather(store))).text


def test_broken_records_are_counted_not_hidden(store: Store) -> None:
    key = store.list_build_keys()[0]
    path = Path(store.root) / "records" / key[:2] / f"{key}.json"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"wilson", b"wilsom"))
    facts = gather(store)
    assert (facts.unreadable, len(facts.rows)) == (1, 11)
    assert "1records that are not intact" in Tags(page(facts)).text


def test_an_empty_store_has_a_page_too(tmp_path: Path) -> None:
    text = Tags(page(gather(built(tmp_path / "s", [])))).text
    assert "Nothing is built here yet" in text
