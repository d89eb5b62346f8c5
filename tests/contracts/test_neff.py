"""NEFF headers against the documented offsets, and NEFF-SIM containers against every damage."""

from __future__ import annotations

import hashlib
import struct
import uuid

import pytest

from lqcd_runtime.errors import CorruptError, TooNewError
from lqcd_runtime.neff import HEADER, HEADER_SIZE, is_sim, parse_neff, parse_sim, write_neff, write_sim

UUID = uuid.UUID("12345678-9abc-def0-1234-56789abcdef0").bytes
# Offsets of the C struct as documented, written down a second time: name -> (offset, struct code).
OFFSETS = {
    "pkg_version": (0x000, "<Q"), "header_size": (0x008, "<Q"), "data_size": (0x010, "<Q"), "major": (0x018, "<Q"),
    "minor": (0x020, "<Q"), "build": (0x028, "128s"), "hash": (0x0AC, "32s"), "uuid": (0x0CC, "16s"), "name": (0x0DC, "256s"),
    "requested_tpb_count": (0x1DC, "<I"), "feature_bits": (0x220, "<Q"), "lnc": (0x228, "<I"),
}  # fmt: skip


def _neff(**changes: object) -> bytes:
    options = {
        "version": (2, 0),
        "build": "2.27.5334.0+abc",
        "name": "wilson",
        "uuid": UUID,
        "lnc": 2,
        "feature_bits": 1 << 63 | 5,
    }
    return write_neff(b"payload", **{**options, **changes})  # type: ignore[arg-type]


def test_the_header_is_where_the_documented_struct_has_it() -> None:
    data = _neff()
    at = {name: struct.unpack_from(code, data, offset)[0] for name, (offset, code) in OFFSETS.items()}
    assert HEADER.size == HEADER_SIZE == at["header_size"] == 0x400
    assert (at["pkg_version"], at["data_size"], at["major"], at["minor"], at["lnc"]) == (2, 7, 2, 0, 2)
    assert at["build"].rstrip(b"\0") == b"2.27.5334.0+abc"
    assert at["name"].rstrip(b"\0") == b"wilson"
    assert at["hash"] == hashlib.md5(b"payload").digest() + bytes(16)
    assert (at["uuid"], at["feature_bits"], at["requested_tpb_count"]) == (UUID, 1 << 63 | 5, 1)


def test_what_was_written_is_read() -> None:
    header = parse_neff(_neff())
    assert (header.version, header.build, header.name, header.lnc, header.cores) == ((2, 0), "2.27.5334.0+abc", "wilson", 2, 1)
    assert header.uuid == UUID.hex()
    assert header.as_dict()["feature_bits"] == "0x8000000000000005"
    assert parse_neff(_neff(package=1)).hash == hashlib.sha256(b"payload").hexdigest()
    assert len(header.hash) == 32


@pytest.mark.parametrize(
    ("data", "error", "fact"),
    [
        (b"", CorruptError, "is truncated"),
        (_neff()[:1023], CorruptError, "is truncated"),
        (_neff()[:-1], CorruptError, "is truncated"),
        (_neff() + b"x", CorruptError, "has bytes after its end"),
        (b"\x7fELF" + bytes(2000), CorruptError, "is no NEFF"),
        (bytes(1024), CorruptError, "is no NEFF"),
        (_neff(package=0), CorruptError, "is no NEFF"),
        (_neff(package=3), TooNewError, "is of a later format"),
        (_neff(version=(3, 0)), TooNewError, "is of a later format"),
        (_neff(lnc=3), CorruptError, "impossible logical-core size"),
        (write_sim(b"hlo", {}), CorruptError, "is a NEFF-SIM"),
    ],
)
def test_what_is_no_neff_of_ours_is_refused_with_the_reason(data: bytes, error: type[Exception], fact: str) -> None:
    with pytest.raises(error, match=fact):
        parse_neff(data)


def test_dirty_padding_of_text_is_not_held_against_a_neff() -> None:
    data = bytearray(_neff())
    data[0x028 + 40] = 0xFF
    assert parse_neff(bytes(data)).build == "2.27.5334.0+abc"


def test_a_container_round_trips_and_is_reproducible() -> None:
    data = write_sim(b"program" * 9, {"compiler": "double", "options": ["-O2"]})
    assert data == write_sim(b"program" * 9, {"options": ["-O2"], "compiler": "double"})
    assert is_sim(data)
    assert not is_sim(_neff())
    read = parse_sim(data)
    assert (read.hlo, read.manifest) == (b"program" * 9, {"compiler": "double", "options": ["-O2"]})


def test_every_changed_byte_of_a_container_is_noticed() -> None:
    data = write_sim(b"program", {"a": 1})
    for i in range(len(data)):
        changed = bytearray(data)
        changed[i] ^= 0x41
        with pytest.raises((CorruptError, TooNewError)):
            parse_sim(bytes(changed))
    for cut in (0, 7, 8, 500, 1024, len(data) - 1):
        with pytest.raises(CorruptError):
            parse_sim(data[:cut])
    with pytest.raises(CorruptError, match="wrong size"):
        parse_sim(data + b"\0")
