"""Deterministic mutations: the same seed gives the same inputs on every machine, so a failure in the suite can be had again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

INTERESTING = (
    *(b"\x00", b"\xff", b"\x7f\xff\xff\xff", b"\xff" * 8, b"-1", b"9" * 400, b"1e999", b"NaN", b"null", b"true", b'"', b"\n"),
    *(b"[" * 2000, b'{"":' * 2000, b"../../etc/passwd", b"\xc3\x28", b"\\ud800"),
)


def mutations(seeds: Sequence[bytes], count: int, *, salt: str) -> Iterator[bytes]:
    """`count` inputs: truncations, changed bits, lost, repeated, swapped and foreign pieces, one to four changes each."""
    source = random.Random(salt)
    yield b""
    for _ in range(count - 1):
        data = bytearray(source.choice(seeds))
        for _ in range(source.choice((1, 1, 1, 2, 4))):
            _change(data, seeds, source)
        yield bytes(data)


def _change(data: bytearray, seeds: Sequence[bytes], source: random.Random) -> None:
    at = source.randrange(len(data) + 1)
    length = min(len(data) - at, source.choice((1, 2, 4, 8, 32, 200)))
    kind = source.randrange(7)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << source.randrange(8)
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        del data[at : at + length]
    elif kind == 3:
        data[at:at] = data[at : at + length] * source.choice((1, 2, 50))
    elif kind == 4:
        data[at : at + length] = source.choice(INTERESTING)
    elif kind == 5:
        other = source.choice(seeds)
        start = source.randrange(len(other) + 1)
        data[at : at + length] = other[start : start + source.choice((4, 40, 400))]
    else:
        data[at : at + length] = source.randbytes(length)
