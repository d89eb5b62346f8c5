"""Fermion boundary signs in configuration files: found by determinants, taken out on request, never counted twice."""

from __future__ import annotations

import numpy as np
import pytest

from lqcd_runtime.errors import GaugeFileError, UsageError
from lqcd_runtime.fields import Gauge, link_trace, plaquette_planes, random_links
from lqcd_runtime.gauge_io import load_gauge, write_gauge
from lqcd_runtime.gauge_io.checksums import milc_sums, nersc_sum, scidac_sums
from tests.abuse.test_gauge_files import lime_record, milc

LATTICE = (3, 2, 4, 2)
LINKS = random_links(LATTICE, 8)


def signed(mu: int) -> np.ndarray:
    """The links with -1 on those that leave the last slice of direction mu, one by one."""
    out = LINKS.copy()
    for t, z, y, x in np.ndindex(*LATTICE):
        if (t, z, y, x)[mu] == LATTICE[mu] - 1:
            out[t, z, y, x, mu] = -LINKS[t, z, y, x, mu]
    return out


def nersc(tmp_path, links=LINKS, rows=3, words=None, drop=()):
    """A NERSC file of any links, written by hand; words: number of the direction (1: X ... 4: T) -> boundary."""
    write_gauge(tmp_path / "plain", LINKS, "nersc" if rows == 3 else "nersc-2row")
    head, _ = (tmp_path / "plain").read_bytes().split(b"END_HEADER\n")
    payload = links[..., ::-1, :rows, :].astype(">c16").tobytes()
    lines = []
    for line in head.decode().splitlines():
        key = line.split("=")[0].strip()
        facts = {
            "CHECKSUM": f"{nersc_sum(payload, '>'):x}",
            "LINK_TRACE": f"{link_trace(links):.15f}",
            **{f"BOUNDARY_{i}": word for i, word in (words or {}).items()},
        }
        if key not in drop:
            lines.append(f"{key} = {facts[key]}" if key in facts else line)
    path = tmp_path / "cfg"
    path.write_bytes("\n".join(lines).encode() + b"\nEND_HEADER\n" + payload)
    return path


@pytest.mark.parametrize(("number", "mu", "keyword"), [(4, 0, "t_boundary=-1"), (1, 3, "phases=")])
def test_a_stated_antiperiodic_boundary_without_sign_is_said_and_left_to_the_operator(tmp_path, number, mu, keyword):
    gauge = load_gauge(nersc(tmp_path, words={number: "ANTIPERIODIC"}))
    (warning,) = gauge.warnings
    assert f"direction {'TZYX'[mu]} stated as ANTIPERIODIC" in warning and keyword in warning
    assert np.array_equal(gauge.links, LINKS)


@pytest.mark.parametrize("mu", range(4))
@pytest.mark.parametrize("stated", [True, False])
def test_a_sign_in_the_links_is_refused_and_taken_out_on_request(tmp_path, mu, stated):
    links = signed(mu)
    # It is a fermion boundary: no closed gauge loop within a plane sees it.
    assert np.allclose(plaquette_planes(links), plaquette_planes(LINKS), atol=1e-14)
    path = nersc(tmp_path, links, words={4 - mu: "ANTIPERIODIC"} if stated else None)
    for boundary in (None, "periodic"):
        with pytest.raises(GaugeFileError, match="a fermion boundary sign is in them") as caught:
            load_gauge(path, boundary=boundary)
        assert f"links of direction {'TZYX'[mu]} have" in str(caught.value) and 'boundary="remove_sign"' in str(caught.value)
    gauge = load_gauge(path, boundary="remove_sign")
    assert np.array_equal(gauge.links, LINKS) and gauge.warnings == []


def test_every_format_knows_the_sign(tmp_path):
    links = signed(0)
    t, z, y, x = LATTICE
    payload = links[..., ::-1, :, :].astype(">c16").tobytes()
    a, b = scidac_sums(payload, 576)
    facts = f"<field>su3gauge</field><precision>64</precision><lx>{x}</lx><ly>{y}</ly><lz>{z}</lz><lt>{t}</lt>"
    ildg = lime_record(b"ildg-format", facts.encode()) + lime_record(b"ildg-binary-data", payload)
    ildg += lime_record(b"scidac-checksum", f"<suma>{a:x}</suma><sumb>{b:x}</sumb>".encode())
    single = links[..., ::-1, :, :].astype("<c8").tobytes()
    for content, exact in (
        (ildg, LINKS),
        (milc(links, x=x, y=y, z=z, t=t, sums=milc_sums(single, "<")), LINKS.astype(np.complex64).astype(complex)),
    ):
        (tmp_path / "c").write_bytes(content)
        with pytest.raises(GaugeFileError, match="fermion boundary sign"):
            load_gauge(tmp_path / "c")
        assert np.array_equal(load_gauge(tmp_path / "c", boundary="remove_sign").links, exact)


def test_two_rows_show_the_sign_by_their_plaquette_alone(tmp_path):
    """det is 1 by construction there; the third row of -U is that of U, so the plaquette comes out wrong."""
    words = {4: "ANTIPERIODIC"}
    assert "no sign is in the links" in load_gauge(nersc(tmp_path, rows=2, words=words)).warnings[0]
    with pytest.raises(GaugeFileError, match="stated plaquette"):
        load_gauge(nersc(tmp_path, signed(0), rows=2, words=words, drop=("LINK_TRACE",)))
    unsaid = nersc(tmp_path, rows=2, words=words, drop=("PLAQUETTE", "LINK_TRACE"))
    with pytest.raises(GaugeFileError, match="two rows and no plaquette do not tell") as caught:
        load_gauge(unsaid)
    assert 'boundary="periodic"' in str(caught.value)
    assert np.abs(load_gauge(unsaid, boundary="periodic").links - LINKS).max() < 1e-14


@pytest.mark.parametrize("word", ["OPEN", "DIRICHLET", "GPARITY", ""])
def test_other_boundaries_are_refused_by_name(tmp_path, word):
    path = nersc(tmp_path, words={4: word})
    with pytest.raises(GaugeFileError, match="read as periodic ones only"):
        load_gauge(path)
    assert np.array_equal(load_gauge(path, boundary="periodic").links, LINKS)


def test_what_cannot_be_removed_and_what_is_no_word(tmp_path):
    path = nersc(tmp_path)
    with pytest.raises(GaugeFileError, match="no fermion boundary sign to remove"):
        load_gauge(path, boundary="remove_sign")
    with pytest.raises(UsageError, match="did you mean 'periodic'"):
        load_gauge(path, boundary="peridic")
    # A sign on a part of the slice is no boundary: the links are simply not in SU(3).
    links = LINKS.copy()
    links[-1, 0, 0, 0, 0] *= -1
    with pytest.raises(GaugeFileError, match="1 of 192 links do not have determinant 1"):
        load_gauge(nersc(tmp_path, links), boundary=None)
    assert Gauge(LINKS).check() == []
