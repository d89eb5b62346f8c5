"""Damaged, hostile and foreign configuration files: one clear GaugeFileError each, no huge allocation, no hang."""

from __future__ import annotations

import os
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lqcd_runtime.errors import GaugeFileError
from lqcd_runtime.fields import random_links
from lqcd_runtime.gauge_io import load_gauge, write_gauge
from lqcd_runtime.gauge_io.checksums import milc_sums, nersc_sum, scidac_sums

LATTICE = (3, 2, 2, 2)
LINKS = random_links(LATTICE, 8)


def milc(links=LINKS, order="<", payload_order=None, **changes):
    payload = links[..., ::-1, :, :].astype((payload_order or order) + "c8").tobytes()
    sums = milc_sums(payload, payload_order or order)
    fields = {"x": 2, "y": 2, "z": 2, "t": 3, "site_order": 0, "sums": sums, **changes}
    extents = [fields[k] for k in "xyzt"]
    return struct.pack(order + "5i64siII", 20103, *extents, b"now", fields["site_order"], *fields["sums"]) + payload


def written(tmp_path, format, links=LINKS, precision="float64"):
    path = tmp_path / f"{format}.{precision}"
    write_gauge(path, links, format, precision=precision)
    return path.read_bytes()


def lime_record(name, data, flags=0):
    return struct.pack(">IHHQ128s", 0x456789AB, 1, flags, len(data), name) + data + bytes(-len(data) % 8)


def lime(ildg=None, payload=None, *more, links=LINKS, checksum=True):
    payload = links[..., ::-1, :, :].astype(">c16").tobytes() if payload is None else payload
    ildg = ILDG if ildg is None else ildg
    a, b = scidac_sums(payload, 576) if len(payload) % 576 == 0 else (0, 0)
    records = [lime_record(b"ildg-format", ildg), lime_record(b"ildg-binary-data", payload)]
    if checksum:
        records.append(lime_record(b"scidac-checksum", f"<suma>{a:x}</suma><sumb>{b:x}</sumb>".encode()))
    return b"".join([*records, *more])


ILDG = b"<ildgFormat><field>su3gauge</field><precision>64</precision><lx>2</lx><ly>2</ly><lz>2</lz><lt>3</lt></ildgFormat>"


def refusal(tmp_path, content):
    path = tmp_path / "under.test"
    path.write_bytes(content)
    with pytest.raises(GaugeFileError) as caught:
        load_gauge(path)
    text = str(caught.value)
    assert text.startswith(f"configuration file {str(path)!r}: ") and len(text) < 1500
    return text


def test_the_builders_of_this_file_make_good_files(tmp_path):
    for content in (milc(), milc(order=">"), lime(), lime(checksum=False)):
        (tmp_path / "good").write_bytes(content)
        assert np.abs(load_gauge(tmp_path / "good").links - LINKS).max() < 1e-7


def test_paths_that_are_no_files(tmp_path):
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    facts = {"absent": "does not exist", "empty": "is empty", ".": "is a directory", "pipe": "not a regular file"}
    for name, fact in facts.items():
        with pytest.raises(GaugeFileError, match=fact):
            load_gauge(tmp_path / name)
    with pytest.raises(GaugeFileError, match="not a usable path"):
        load_gauge("a\0b")


@pytest.mark.parametrize(
    "content", [b"hello", b"\x89HDF\r\n\x1a\n" + bytes(99), b"\x93NUMPY", b"PK\x03\x04..", b"\x1f\x8b", bytes(4096), b"B"]
)
def test_an_unknown_format_says_what_was_looked_for(tmp_path, content):
    text = refusal(tmp_path, content)
    assert "no known format" in text and "BEGIN_HEADER" in text and "LIME" in text and "20103" in text
    assert ("HDF5" in text) == content.startswith(b"\x89HDF")


@pytest.mark.parametrize("format", ["ildg", "nersc", "nersc-2row", "milc"])
def test_every_truncation_is_refused(tmp_path, format):
    content = milc() if format == "milc" else written(tmp_path, format)
    for size in {1, 4, 20, 100, 160, len(content) // 3, len(content) // 2, len(content) - 300, len(content) - 1}:
        text = refusal(tmp_path, content[:size])
        assert "truncated" in text or "no known format" in text or "END_HEADER" in text or "binary records" in text


@pytest.mark.parametrize("format", ["ildg", "nersc", "milc"])
@pytest.mark.parametrize("extra", [b"\0", b"\0" * 8, b"x" * 200])
def test_trailing_bytes_are_refused(tmp_path, format, extra):
    content = milc() if format == "milc" else written(tmp_path, format)
    text = refusal(tmp_path, content + extra)
    after = "last record" if format == "ildg" else "links"
    assert f"has {len(extra)} bytes after its {after}, from offset {len(content)} on" in text
    assert "truncated" not in text and f"found:    {len(content + extra)} bytes" in text


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), format=st.sampled_from(["ildg", "nersc", "milc"]))
def test_any_flipped_bit_of_the_links_is_refused(tmp_path, data, format):
    content = bytearray(milc() if format == "milc" else written(tmp_path, format))
    size = (8 if format == "milc" else 16) * LINKS.size
    start = content.find(LINKS[..., ::-1, :, :].astype("<c8" if format == "milc" else ">c16").tobytes())
    assert start > 0
    content[start + data.draw(st.integers(0, size - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert "checksum" in refusal(tmp_path, bytes(content))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), format=st.sampled_from(["ildg", "nersc", "milc", "lime"]))
def test_mutated_files_load_correctly_or_are_refused(tmp_path, data, format):
    """Whatever happens to the bytes, no other exception escapes and no wrong link is handed out."""
    makers = {"milc": milc, "lime": lime}
    content = bytearray(makers[format]() if format in makers else written(tmp_path, format, precision="float32"))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["set", "cut", "insert", "repeat"]))
        if kind == "set":
            content[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del content[at : at + data.draw(st.integers(1, 64))]
        elif kind == "insert":
            content[at:at] = data.draw(st.binary(max_size=16))
        else:
            content[at:at] = content[at : at + 200]
        if not content:
            return
    path = tmp_path / "mutated"
    path.write_bytes(content)
    try:
        gauge = load_gauge(path)
    except GaugeFileError:
        return
    assert gauge.lattice == LATTICE and np.abs(gauge.links - LINKS).max() < 1e-7


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    magic=st.sampled_from([b"BEGIN_HEADER\n", b"\x45\x67\x89\xab", struct.pack("<i", 20103), b""]),
    rest=st.binary(max_size=400),
)
def test_noise_behind_a_magic_number_is_refused(tmp_path, magic, rest):
    if magic + rest:
        refusal(tmp_path, magic + rest)


def test_wrong_byte_order_is_named(tmp_path):
    assert "other byte order" in refusal(tmp_path, milc(order="<", payload_order=">"))
    swapped = np.frombuffer(LINKS[..., ::-1, :, :].astype("<c16").tobytes(), np.uint8).tobytes()
    text = refusal(tmp_path, lime(payload=swapped))
    assert "byte order is not what the header says" in text
    good = written(tmp_path, "nersc")
    assert "other byte order" in refusal(tmp_path, good.replace(b"IEEE64BIG", b"IEEE64LITTLE"))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_links_that_are_not_finite_are_counted_and_placed(tmp_path, value):
    links = LINKS.copy()
    links[2, 1, 0, 1, 3, 0, 2] = value
    for content in (milc(links), lime(links=links), lime(links=links, checksum=False)):
        text = refusal(tmp_path, content)
        assert "1 of 96 links hold NaN or infinity" in text and "(2,1,0,1) direction X" in text


def test_links_outside_su3_are_refused(tmp_path):
    links = LINKS.copy()
    links[0, 1, 0, 0, 2] *= 1.001
    assert "1 of 96 links are not unitary" in refusal(tmp_path, lime(links=links, checksum=False))
    links = LINKS.copy()
    links[0, 1, 0, 0, 2] *= np.exp(0.01j)
    assert "determinant 1" in refusal(tmp_path, lime(links=links, checksum=False))
    links[1] = 1e200
    assert "not unitary" in refusal(tmp_path, lime(links=links))


@pytest.mark.parametrize(("key", "value"), [("PLAQUETTE", "0.123456"), ("LINK_TRACE", "0.7"), ("CHECKSUM", "deadbeef")])
def test_a_header_that_states_another_number_is_refused(tmp_path, key, value):
    lines = written(tmp_path, "nersc").split(b"\n")
    changed = b"\n".join(f"{key} = {value}".encode() if line.startswith(key.encode()) else line for line in lines)
    assert f"{value} stated" in (text := refusal(tmp_path, changed)) or f"stated {key.lower()} {value}, measured" in text
    assert "1 check failed" in text


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        (b"4D_SU3_GAUGE_3x3", b"4D_SU4_GAUGE", "does not hold SU(3) links"),
        (b"4D_SU3_GAUGE_3x3", b"4D_SU2_GAUGE", "does not hold SU(3) links"),
        (b"DIMENSION_2 = 2", b"DIMENSION_2 = -2", "not a number"),
        (b"DIMENSION_2 = 2", b"DIMENSION_2 = 1", "no lattice"),
        (b"DIMENSION_2 = 2", b"DIMENSION_2 = 0", "no lattice"),
        (b"DIMENSION_2 = 2", b"DIMENSION_2 = 999999999", "truncated"),
        (b"DIMENSION_2 = 2\n", b"", "no DIMENSION_2"),
        (b"DIMENSION_2 = 2\n", b"DIMENSION_2 = 2\nDIMENSION_2 = 3\n", "twice and differently"),
        (b"DIMENSION_2 = 2", b"DIMENSION_2 = 3", "truncated"),
        (b"IEEE64BIG", b"IEEE80BIG", "unknown FLOATING_POINT"),
        (b"IEEE64BIG", b"IEEE32BIG", "after its links"),
        (b"END_HEADER", b"END_HEADRE", "no END_HEADER"),
        (b"PLAQUETTE = ", b"PLAQUETTE = x", "not a number"),
    ],
)
def test_nersc_headers_that_make_no_sense(tmp_path, old, new, fact):
    content = written(tmp_path, "nersc")
    assert old in content
    assert fact in refusal(tmp_path, content.replace(old, new, 1))


@pytest.mark.parametrize(
    ("ildg", "fact"),
    [
        (ILDG.replace(b"su3gauge", b"su2gauge"), "does not hold an SU(3)"),
        (ILDG.replace(b"<lx>2</lx>", b""), "has no <lx>"),
        (ILDG.replace(b"<lx>2</lx>", b"<lx>2</lx><lx>4</lx>"), "the tag <lx> twice"),
        (ILDG.replace(b"<lx>2</lx>", b"<lx>2"), "not closed"),
        (ILDG.replace(b"<lx>2</lx>", b"<lx>999999999</lx>"), "wrong size"),
        (ILDG.replace(b"<lx>2</lx>", b"<lx>99999999999999999999</lx>"), "not a number"),
        (ILDG.replace(b"<lx>2</lx>", b"<lx>1</lx>"), "no lattice"),
        (ILDG.replace(b">64<", b">16<"), "precision"),
        (ILDG.replace(b">64<", b">32<"), "wrong size"),
        (b"<!DOCTYPE a [<!ENTITY b 'cccc'><!ENTITY d '&b;&b;&b;'>]>" + ILDG, "entities"),
        (b"", "has no <lx>"),
        (b"<a>" * 100_000, "has no <lx>"),
        (b"x" * ((1 << 20) + 1), "too long"),
        (b"<lx>" * 200_000, "not closed"),
    ],
)
def test_ildg_records_that_make_no_sense(tmp_path, ildg, fact):
    assert fact in refusal(tmp_path, lime(ildg))


def test_lime_containers_that_make_no_sense(tmp_path):
    data = lime_record(b"ildg-binary-data", bytes(16))
    assert "0 binary records" in refusal(tmp_path, lime_record(b"ildg-format", ILDG))
    assert "2 binary records" in refusal(tmp_path, lime(None, None, data))
    assert "states no extents" in refusal(tmp_path, data)
    assert "twice" in refusal(tmp_path, lime(None, None, lime_record(b"ildg-format", ILDG)))
    assert "more than 1000" in refusal(tmp_path, lime_record(b"a", b"") * 1001)
    assert "truncated" in refusal(tmp_path, struct.pack(">IHHQ128s", 0x456789AB, 1, 0, 2**64 - 1, b"x"))
    private = lime_record(b"scidac-private-file-xml", b"<dims>4 4 4 8</dims>")
    of_record = b"<precision>D</precision><colors>3</colors><datacount>4</datacount><typesize>144</typesize>"
    record = lime_record(b"scidac-private-record-xml", of_record)
    assert "contradicting" in refusal(tmp_path, lime(None, None, private, record))
    two = lime_record(b"scidac-private-record-xml", of_record.replace(b"<colors>3", b"<colors>2"))
    assert "SU(3)" in refusal(tmp_path, lime(None, None, private, two))
    broken = lime_record(b"scidac-checksum", b"<suma>xyz</suma><sumb>0</sumb>")
    assert "hexadecimal" in refusal(tmp_path, lime(None, None, broken, checksum=False))


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"x": 1}, "no lattice"),
        ({"x": -2}, "no lattice"),
        ({"x": 2**31 - 1, "y": 2**31 - 1, "z": 2**31 - 1, "t": 2**31 - 1}, "truncated"),
        ({"t": 2}, "after its links"),
        ({"site_order": 1}, "order that is not read"),
        ({"sums": (1, 2)}, "checksums 00000001 00000002 stated"),
    ],
)
def test_milc_headers_that_make_no_sense(tmp_path, changes, fact):
    assert fact in refusal(tmp_path, milc(**changes))


def test_absurd_extents_allocate_nothing(tmp_path):
    absurd = [milc(x=2**31 - 1, y=2**31 - 1), lime(ILDG.replace(b"<lx>2", b"<lx>999999999").replace(b"<ly>2", b"<ly>999999999"))]
    refusal(tmp_path, absurd[0])
    tracemalloc.start()
    for content in absurd:
        refusal(tmp_path, content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * max(map(len, absurd)) + 1_000_000


def test_nersc_files_written_by_hand_without_optional_lines_load_with_a_warning(tmp_path):
    payload = LINKS[..., ::-1, :2, :].astype(">c8").tobytes()
    header = "BEGIN_HEADER\nDATATYPE = 4D_SU3_GAUGE\n" + "".join(f"DIMENSION_{i} = {n}\n" for i, n in enumerate((2, 2, 2, 3), 1))
    (tmp_path / "a").write_bytes((header + "END_HEADER\n").encode() + payload)
    gauge = load_gauge(tmp_path / "a")
    assert len(gauge.warnings) == 1 and np.abs(gauge.links - LINKS).max() < 1e-6
    stated = f"{header}CHECKSUM = {nersc_sum(payload, '>'):X}\nEND_HEADER\n"
    (tmp_path / "a").write_bytes(stated.encode() + payload)
    assert load_gauge(tmp_path / "a").warnings == []
