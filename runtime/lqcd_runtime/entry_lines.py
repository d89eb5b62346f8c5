"""Judges the lines of entries.jsonl: as text where they are spelled as writers spell them, as JSON where not.

    {"build_key":K,"conventions":C,"outputs":O,"schema":S,"spec":P,"spec_key":Q,"target":T,"witness":W,"witness_status":V}

C and S are the same in all lines; P hashes to Q and is the same in the lines of one spec, which follow each other. So a line is
JSON, and the entry that it seems, when these stand where canonical JSON has them and O and W are JSON. Parsing all of it would
cost as much as hashing the artifact. What is not recognised is read by `Entry.from_dict`, which says what is wrong.
"""

from __future__ import annotations

import json

from lqcd_runtime.conventions import CONVENTIONS
from lqcd_runtime.digest import canonical_json, tagged_sha256_of_text
from lqcd_runtime.errors import CorruptError, UsageError
from lqcd_runtime.manifest import CODE, RECORD_SCHEMA, Entry, entry_dict, parse_object
from lqcd_runtime.signature import SPEC_TAG, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_value_at: Callable[[str, int], tuple[Any, int]] = json.scanner.make_scanner(json.JSONDecoder())  # type: ignore[attr-defined]
_KEY = '{"build_key":"'
_AFTER_KEY = len(_KEY) + 64
_OUTPUTS = f'","conventions":{canonical_json(CONVENTIONS).decode("ascii")},"outputs":'
_SPEC = f',"schema":"{RECORD_SCHEMA}","spec":'
_WITNESS = '","witness":'
_STATUS, _PASSED = ',"witness_status":"', ',"witness_status":"passed"}'
# What a record has besides, at the two places (artifacts/README.md, "Record").
_COMPONENTS, _PROVENANCE = b',"components":', b',"provenance":'


class Line:
    """What a line says; `name` for messages. A record has components before the first of `cuts`, provenance before the other."""

    __slots__ = ("_spec", "_target", "build_key", "cuts", "outputs", "text")

    def __init__(
        self, text: bytes, build_key: str, outputs: dict[str, Any], spec: Spec, target: str, cuts: tuple[int, int] | None
    ) -> None:
        self.text, self.build_key, self.outputs, self.cuts = text, build_key, outputs, cuts
        self._spec, self._target = spec, target

    @property
    def name(self) -> str:
        return f"{self._spec.name}@{self._target}"

    def is_cut_from(self, record: bytes, where: str) -> bool:
        """Whether the line is a record without components and provenance, which must be one JSON object each.

        Errors: CorruptError where the record is not JSON, `where` naming its place.
        """
        if not record.isascii():
            raise CorruptError(f"{where}: is not ASCII")
        if self.cuts is not None and self._is_spelled(record):
            return True
        return entry_dict(parse_object(record, where)) == parse_object(self.text, where)

    def _is_spelled(self, record: bytes) -> bool:
        """Whether the record is spelled as writers spell it: what the line has, and two objects at the two places."""
        line, (first, last) = memoryview(self.text), self.cuts or (0, 0)
        back = len(record) - len(line) + last  # where the line's last part must begin
        if not (record.startswith(line[:first]) and record.startswith(_COMPONENTS, first) and record.endswith(line[last:])):
            return False
        text = record[:back].decode("ascii")
        try:
            components, at = _value_at(text, first + len(_COMPONENTS))
            if not (record.startswith(line[first:last], at) and record.startswith(_PROVENANCE, at + last - first)):
                return False
            provenance, at = _value_at(text, at + last - first + len(_PROVENANCE))
        except (ValueError, StopIteration, RecursionError):
            return False
        return type(components) is dict and type(provenance) is dict and at == back


class LineReader:
    """Reads lines in the order of a bundle.

    Remembers the last spec, the text from outputs to target that goes with it, and the last witness: targets of a spec share it.
    """

    def __init__(self) -> None:
        self._spec_key = ""
        self._spec: Spec
        self._middle: str
        self._witness = "null"

    def read(self, text: bytes, spec_key: str, target: str, where: str) -> Line:
        """A line that must be of this spec and target. Errors: CorruptError, TooNewError, `where` naming its place."""
        if not text.isascii():
            raise CorruptError(f"{where}: is not ASCII")
        word = text.decode("ascii")
        if spec_key == self._spec_key or self._learns(word, spec_key):
            line = self._recognised(word, text, target)
            if line is not None:
                return line
        entry = Entry.from_dict(parse_object(word, where), where)
        if entry.spec_key != spec_key or entry.target != target:
            raise CorruptError(f"{where}: is of {entry.name}", expected=f"{spec_key}, target {target}", found=entry.spec_key)
        return Line(text, entry.build_key, entry.outputs, entry.spec, target, None)

    def _learns(self, text: str, spec_key: str) -> bool:
        """Whether the line has the canonical text of a spec that this release knows, hashing to this key."""
        behind = f',"spec_key":"{spec_key}","target":"'
        first = text.find(_SPEC, _AFTER_KEY) + len(_SPEC)
        last = text.find(behind, first)
        if first < len(_SPEC) or last < 0 or tagged_sha256_of_text(SPEC_TAG, text[first:last].encode("ascii")) != spec_key:
            return False
        try:
            self._spec = Spec.from_dict(json.loads(text[first:last]))
        except (KeyError, TypeError, ValueError, RecursionError, UsageError):
            return False
        self._spec_key, self._middle = spec_key, _SPEC + text[first:last] + behind
        return True

    def _recognised(self, text: str, line: bytes, target: str) -> Line | None:
        """The line if it is spelled as writers spell a line of this spec."""
        build_key = text[len(_KEY) : _AFTER_KEY]
        if not (build_key.isalnum() and text.startswith(_KEY) and text.startswith(_OUTPUTS, _AFTER_KEY)):
            return None
        behind = self._middle + target + _WITNESS
        try:
            outputs, last = _value_at(text, _AFTER_KEY + len(_OUTPUTS))
            if not text.startswith(behind, last):
                return None
            code = outputs[CODE]
            sound = type(code["sha256"]) is str and type(code["size"]) is int
            start = last + len(behind)
            if text.startswith(self._witness, start):
                at = start + len(self._witness)
            else:
                _, at = _value_at(text, start)
                self._witness = text[start:at]
        except (ValueError, StopIteration, RecursionError, KeyError, TypeError):
            return None
        if sound and not (text.endswith(_PASSED) and at == len(text) - len(_PASSED)):
            status = text[at + len(_STATUS) : -2]
            sound = (
                text.startswith(_STATUS, at) and text.endswith('"}') and status.isprintable() and not {'"', "\\"} & set(status)
            )
        return Line(line, build_key, outputs, self._spec, target, (_AFTER_KEY + 1, last)) if sound else None
