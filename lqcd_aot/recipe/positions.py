"""Where each key and value of a TOML text stands: {path: (line, column)}.

tomllib gives values without positions; this scanner gives positions without values. Owns only that. It expects a text that
tomllib has accepted, so it refuses nothing and judges nothing. Lines and columns count from 1, columns in characters.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from typing import NamedTuple

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^\s,\]}#]+(?: [0-9:.+Zz-]+)?")
_STRINGS = (
    re.compile(r'"""(?:\\.|[^\\])*?"{3,5}', re.S),
    re.compile(r"'''.*?'{3,5}", re.S),
    re.compile(r'"(?:\\.|[^"\\])*"'),
    re.compile(r"'[^']*'"),
)


class Place(NamedTuple):
    """1-based line and column of a key (`key`) and of its value (`value`); elements of arrays have equal ones."""

    key: tuple[int, int]
    value: tuple[int, int]


def locate(text: str) -> dict[Path, Place]:
    """The place of every path of a valid TOML text: tables, keys, array elements (an index each), arrays of tables."""
    return _Scanner(text).run()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, Place] = {}
        self.lengths: dict[Path, int] = {}
        self.line_starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def run(self) -> dict[Path, Place]:
        table: Path = ()
        self.blank()
        while self.at < len(self.text):
            if self.text.startswith("[", self.at):
                table = self.header()
            else:
                self.pair(table)
            self.blank()
        return self.found

    def position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def blank(self) -> None:
        self.at = self._end(_BLANK)

    def _end(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        return match.end() if match else self.at

    def note(self, path: Path, key_at: int, value_at: int) -> None:
        self.found.setdefault(path, Place(self.position(key_at), self.position(value_at)))

    def keys(self, parent: Path) -> tuple[Path, int]:
        """A dotted key below `parent`: its full path through arrays of tables, and where its last part begins."""
        path = parent
        while True:
            self.blank()
            begin = self.at
            path = (*self.resolve(path), self.simple_key())
            self.blank()
            if not self.text.startswith(".", self.at):
                return path, begin
            self.note(path, begin, begin)
            self.at += 1

    def simple_key(self) -> str:
        if self.text[self.at] in "\"'":
            begin = self.at
            self.string()
            return _unquoted(self.text[begin : self.at])
        begin, self.at = self.at, self._end(_BARE_KEY)
        return self.text[begin : self.at]

    def resolve(self, path: Path) -> Path:
        """The path itself, or its latest element where it names an array of tables."""
        return (*path, self.lengths[path] - 1) if path in self.lengths else path

    def header(self) -> Path:
        begin = self.at
        many = self.text.startswith("[[", begin)
        self.at += 2 if many else 1
        path, key_at = self.keys(())
        self.at += 2 if many else 1
        self.note(path, key_at, begin)
        if not many:
            return self.resolve(path)
        self.lengths[path] = self.lengths.get(path, 0) + 1
        element = self.resolve(path)
        self.note(element, begin, begin)
        return element

    def pair(self, table: Path) -> None:
        path, key_at = self.keys(table)
        self.at += 1
        self.blank()
        self.note(path, key_at, self.at)
        self.value(path)

    def value(self, path: Path) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self.string()
        elif first == "[":
            self.array(path)
        elif first == "{":
            self.inline_table(path)
        else:
            self.at = self._end(_SCALAR)

    def string(self) -> None:
        for pattern in _STRINGS:
            if match := pattern.match(self.text, self.at):
                self.at = match.end()
                return

    def array(self, path: Path) -> None:
        self.at += 1
        self.blank()
        index = 0
        while self.text[self.at] != "]":
            self.note((*path, index), self.at, self.at)
            self.value((*path, index))
            index += 1
            self.comma()
        self.at += 1

    def inline_table(self, path: Path) -> None:
        self.at += 1
        self.blank()
        while self.text[self.at] != "}":
            self.pair(path)
            self.comma()
        self.at += 1

    def comma(self) -> None:
        self.blank()
        if self.text.startswith(",", self.at):
            self.at += 1
            self.blank()


def _unquoted(quoted: str) -> str:
    """The text of a quoted key; TOML's own parser knows the escapes."""
    return next(iter(tomllib.loads(f"{quoted} = 0")))
