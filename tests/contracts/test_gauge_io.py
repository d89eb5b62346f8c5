"""Gauge configuration files: the published ones give their published plaquette, what is written reads back to the last bit."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from lqcd_runtime.errors import GaugeFileError, UsageError
from lqcd_runtime.fields import Gauge, plaquette_planes, random_links, unitarity_deviation
from lqcd_runtime.gauge_io import load_gauge, write_gauge
from lqcd_runtime.gauge_io.checks import printed
from lqcd_runtime.gauge_io.checksums import milc_sums, nersc_sum, scidac_sums

# file: (format, precision, X,Y,Z,T, plaquette), from the table of the shared data's README.
PUBLISHED = {
    "pyquda/weak_field.lime": ("ildg", "float64", (4, 4, 4, 8), 0.994804132266700),
    "qlua/random-gauge.qio": ("ildg", "float64", (4, 4, 4, 8), 0.994764948925992),
    "qlua/random-gauge.nersc": ("nersc", "float32", (4, 4, 4, 8), 0.994764948814485),
    "qdpxx/t_nersc.cfg": ("nersc", "float32", (4, 4, 4, 4), 0.038242289324032),
    "qdpxx/t_dprec_ildg.lime": ("ildg", "float64", (4, 4, 4, 4), 0.038242289409576),
    "milc/lat.sample.l4444": ("milc", "float32", (4, 4, 4, 4), 0.594850158947151),
    "milc/lat.sample.l4444.ildg": ("ildg", "float32", (4, 4, 4, 4), 0.594850158947151),
    "milc/lat.sample.l4444.scidac": ("scidac", "float32", (4, 4, 4, 4), 0.594850158947151),
    "milc/lat.sample.l4448": ("milc", "float32", (4, 4, 4, 8), 0.569055724369011),
    "milc/lat.sample.l4448.scidac": ("scidac", "float32", (4, 4, 4, 8), 0.569055724369011),
    "milc/lat.sample.l4448.foreign": ("ildg", "float32", (4, 4, 4, 8), 0.569055724369011),
    "milc/lat.sample.l8888": ("milc", "float32", (8, 8, 8, 8), 0.593560240432841),
    "lyncs_io/unity.lime": ("ildg", "float64", (4, 4, 4, 4), 1.0),
}


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_configuration_gives_its_published_plaquette(data_dir, name):
    format, precision, xyzt, plaquette = PUBLISHED[name]
    gauge = load_gauge(data_dir / name)
    assert (gauge.format, gauge.precision, gauge.lattice) == (format, precision, xyzt[::-1])
    assert abs(gauge.plaquette - plaquette) < (1e-12 if precision == "float64" else 5e-9)
    assert gauge.links.dtype == np.complex128 and gauge.source == str(data_dir / name)
    expected = {"milc/lat.sample.l4448.foreign": "no scidac-checksum", "qdpxx/t_dprec_ildg.lime": "unitary to 4.9e-07 only"}
    assert [expected[name] in w for w in gauge.warnings] == [True] if name in expected else gauge.warnings == []


@pytest.mark.data
@pytest.mark.parametrize("names", [("l4444", "l4444.ildg", "l4444.scidac"), ("l4448", "l4448.scidac", "l4448.foreign")])
def test_the_same_links_come_out_of_three_formats(data_dir, names):
    fields = [load_gauge(data_dir / "milc" / f"lat.sample.{n}") for n in names]
    assert len({g.digest for g in fields}) == 1 and np.array_equal(fields[0].links, fields[2].links)


@pytest.mark.data
def test_5p7_is_refused_with_both_reasons(data_dir):
    with pytest.raises(GaugeFileError) as caught:
        load_gauge(data_dir / "milc" / "lat.sample.5p7")
    assert "2e218ab1 2d188e6b stated" in str(caught.value) and "not unitary" in str(caught.value)
    assert len(caught.value.details) == 2


@pytest.mark.data
def test_links_are_in_the_projects_order(data_dir):
    """weak_field against the independent reference, which stores U[T,Z,Y,X,mu] and the six planes."""
    reference = np.load(data_dir / "wilson_reference_weakfield_4448.npz")
    gauge = load_gauge(data_dir / "pyquda" / "weak_field.lime")
    assert np.array_equal(gauge.links, reference["U"])
    assert np.abs(plaquette_planes(gauge.links) - reference["plaq_planes"]).max() < 1e-13


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("format", ["ildg", "nersc", "nersc-2row"])
@pytest.mark.parametrize("lattice", [(3, 2, 5, 4), (2, 2, 2, 2)])
def test_what_is_written_reads_back(tmp_path, format, precision, lattice):
    links = random_links(lattice, 9)
    path = tmp_path / "any.name"
    write_gauge(path, links, format, precision=precision)
    back = load_gauge(path)
    exact = links if precision == "float64" else links.astype(np.complex64).astype(complex)
    rows = 2 if format == "nersc-2row" else 3
    assert np.array_equal(back.links[..., :rows, :], exact[..., :rows, :])
    # A rebuilt third row is a cross product of two rounded rows: six products of the stored precision.
    assert np.abs(back.links - links).max() <= 6 * (2.0**-52 if precision == "float64" else 2.0**-23)
    assert back.precision == precision and back.warnings == [] and back.lattice == lattice
    first = path.read_bytes()
    write_gauge(path, back, format)
    assert path.read_bytes()[-1000:] == first[-1000:] and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "word", ["IEEE64BIG", "IEEE64LITTLE", "IEEE64SMALL", "IEEE64", "IEEE32BIG", "IEEE32LITTLE", "IEEE32", None]
)
@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("checksum", [True, False])
def test_every_dialect_of_floating_point(tmp_path, word, order, checksum):
    """A bare IEEE32/IEEE64 means either byte order; a stated order must be the file's."""
    path, precision = tmp_path / "c", "float64" if word and "64" in word else "float32"
    links = random_links((2, 3, 2, 2), 1)
    write_gauge(path, links, "nersc", precision=precision)
    header, payload = path.read_bytes().split(b"END_HEADER\n")
    kind = "u8" if precision == "float64" else "u4"
    payload = np.frombuffer(payload, ">" + kind).astype(order + kind).tobytes()
    lines = [line for line in header.decode().split("\n") if not line.startswith(("FLOATING_POINT", "CHECKSUM"))]
    lines += [f"FLOATING_POINT = {word}"] if word else []
    # Both sums are of 32-bit words in the file's own order, as the writers of these dialects form them.
    lines += [f"CHECKSUM = {nersc_sum(payload, order):x}"] if checksum else []
    path.write_bytes("\n".join([x for x in lines if x]).encode() + b"\nEND_HEADER\n" + payload)
    allowed = {"BIG": ">", "LITTLE": "<", "SMALL": "<"}.get((word or "IEEE32BIG")[6:], "><")
    if order in allowed:
        back = load_gauge(path)
        assert np.abs(back.links - links).max() < 1e-7 and len(back.warnings) == (0 if checksum else 1)
    else:
        with pytest.raises(GaugeFileError, match="byte order") as caught:
            load_gauge(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("order", ["<", ">"])
def test_milc_files_of_either_byte_order(tmp_path, order):
    links = random_links((3, 2, 2, 2), 5)
    payload = links[..., ::-1, :, :].astype(order + "c8").tobytes()
    head = struct.pack(order + "5i64siII", 20103, 2, 2, 2, 3, b"some day", 0, *milc_sums(payload, order))
    (tmp_path / "m").write_bytes(head + payload)
    back = load_gauge(tmp_path / "m")
    assert np.array_equal(back.links, links.astype(np.complex64)) and back.header["time_stamp"] == "some day"


def test_checksums_against_their_definitions_word_by_word():
    payload = np.random.default_rng(1).bytes(72 * 4 * 35)
    words = struct.unpack(f">{len(payload) // 4}I", payload)
    rotate = lambda w, n: ((w << n) | (w >> (32 - n))) & 0xFFFFFFFF  # noqa: E731
    assert nersc_sum(payload, ">") == sum(words) % 2**32
    fold = {29: 0, 31: 0}
    sites = {29: 0, 31: 0}
    for modulus in fold:
        for k, word in enumerate(words):
            fold[modulus] ^= rotate(word, k % modulus)
        for k in range(35):
            sites[modulus] ^= rotate(zlib.crc32(payload[288 * k : 288 * (k + 1)]), k % modulus)
    assert milc_sums(payload, ">") == (fold[29], fold[31]) and scidac_sums(payload, 288) == (sites[29], sites[31])
    assert milc_sums(np.frombuffer(payload, ">u4").astype("<u4").tobytes(), "<") == (fold[29], fold[31])


def test_unitarity_of_every_link_as_by_matrix_products():
    links = random_links((6, 6, 4, 5), 3)  # 2880 links: more than are judged together
    rng = np.random.default_rng(2)
    links += 10.0 ** rng.uniform(-12, 0, links.shape[:5])[..., None, None] * rng.standard_normal(links.shape)
    links[0, 0, 0, 0, 0, 1, 1], links[5, 5, 3, 4, 3, 2, 0], links[1, 0, 0, 0, 0, 0, 0] = np.nan, np.inf, 1e200
    with np.errstate(all="ignore"):
        direct = np.abs(links @ links.conj().swapaxes(-1, -2) - np.eye(3)).max(axis=(-1, -2))
    found = unitarity_deviation(links)
    normal = np.isfinite(direct)
    assert (normal == np.isfinite(found)).all() and (~normal).sum() == 3
    # Six products an element, of links no larger than 2 rows of length 3; the square root of a square is exact to 1 part in 2^52.
    assert np.abs(found[normal] - direct[normal]).max() < 100 * 2.0**-53 * (1 + direct[normal].max())


def test_only_stated_plaquettes_are_measured_at_load(data_dir, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("lqcd_runtime.fields.plaquette_planes", lambda links: calls.append(1) or plaquette_planes(links))
    load_gauge(data_dir / "milc/lat.sample.l4444")
    assert len(calls) == 0
    write_gauge(tmp_path / "n", random_links((2, 2, 2, 2), 5), "nersc")
    calls.clear()
    load_gauge(tmp_path / "n")
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("text", "value", "half"),
    [("0.5948", 0.5948, 5e-5), ("1", 1.0, 0.5), ("-1.25e-03", -1.25e-3, 5e-6), ("+.5", 0.5, 0.05), ("5.9e1", 59.0, 0.5)],
)
def test_a_printed_number_carries_its_precision(text, value, half):
    got = printed(text)
    assert got[0] == value and got[1] == pytest.approx(half)


@pytest.mark.parametrize("text", ["", "nan", "inf", "0x1", "1e", "1e9999", "--1", "1_0", "0.5 0.6", "٣"])
def test_what_is_no_number_is_none(text):
    assert printed(text)[0] is None


def test_a_plaquette_normalised_to_three_is_recognised_and_said(tmp_path):
    gauge = Gauge(random_links((2, 2, 2, 2), 3))
    write_gauge(tmp_path / "c", gauge, "nersc")
    text = (tmp_path / "c").read_bytes()
    stated = f"PLAQUETTE = {gauge.plaquette:.15f}".encode()
    (tmp_path / "c").write_bytes(text.replace(stated, f"PLAQUETTE = {3 * gauge.plaquette:.9f}".encode()))
    assert "normalised to 3" in load_gauge(tmp_path / "c").warnings[0]


def test_bad_requests_to_write_leave_nothing_behind(tmp_path):
    links = random_links((2, 2, 2, 2), 3)
    for bad, error, text in [
        ({"format": "idlg"}, UsageError, "did you mean 'ildg'"),
        ({"precision": "float16"}, UsageError, "precision"),
        ({"lfn": "http://x"}, UsageError, "logical file name"),
    ]:
        with pytest.raises(error, match=text):
            write_gauge(tmp_path / "c", links, **bad)
    with pytest.raises(GaugeFileError, match="not unitary"):
        write_gauge(tmp_path / "c", 1.01 * links)
    with pytest.raises(UsageError, match="wrong shape"):
        write_gauge(tmp_path / "c", links[0])
    with pytest.raises(GaugeFileError, match="cannot be written"):
        write_gauge(tmp_path / "absent" / "c", links)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "c"
    write_gauge(path, random_links((2, 2, 2, 2), 3))
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(GaugeFileError, match="no space left"):
        write_gauge(path, random_links((2, 2, 2, 2), 4))
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
