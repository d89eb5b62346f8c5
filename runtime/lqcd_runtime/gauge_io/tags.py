"""The few XML tags that matter, found by plain search: no parser, no entities, no recursion, nothing to expand.

Published files hold XML that no parser accepts (an attribute without its closing quote), so this is also the tolerant
way.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lqcd_runtime.gauge_io.inputs import GaugeInput

_LONGEST = 256


def tag(file: GaugeInput, record: str, text: str, name: str) -> str | None:
    """The text between <name> and </name>, stripped; None where the tag is absent.

    Errors: GaugeFileError where the record declares entities, or the tag is doubled, unclosed or holds more than a
    short text.
    """
    if "<!doctype" in text.lower() or "<!entity" in text.lower():
        raise file.refuse(f"{record} declares a document type or entities, which no gauge file needs")
    opening, closing = f"<{name}>", f"</{name}>"
    start = text.find(opening)
    if start < 0:
        return None
    end = text.find(closing, start)
    if end < 0 or end - start > _LONGEST:
        raise file.refuse(f"{record} has a tag <{name}> that is not closed or too long")
    if text.find(opening, start + 1) >= 0:
        raise file.refuse(f"{record} has the tag <{name}> twice")
    return text[start + len(opening) : end].strip()


def required(file: GaugeInput, record: str, text: str, name: str) -> str:
    """As `tag`, refusing where it is absent."""
    value = tag(file, record, text, name)
    if value is None:
        raise file.refuse(f"{record} has no <{name}>")
    return value


def integer(file: GaugeInput, what: str, text: str) -> int:
    """A plain non-negative integer of at most nine digits. Errors: GaugeFileError."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise file.refuse(f"{what} is not a number", expected="at most nine digits", found=repr(text[:40]))
    return int(text)


def hexadecimal(file: GaugeInput, what: str, text: str) -> int:
    """A 32-bit checksum in hexadecimal, with or without 0x. Errors: GaugeFileError."""
    digits = text.lower().removeprefix("0x")
    if not (1 <= len(digits) <= 8 and all(c in "0123456789abcdef" for c in digits)):
        raise file.refuse(f"{what} is not a 32-bit hexadecimal number", found=repr(text[:40]))
    return int(digits, 16)
