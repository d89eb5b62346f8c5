"""Counter-based noise: published known answers, statistics with derived bounds, independence of how the lattice is cut."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lqcd_runtime import noise
from lqcd_runtime.errors import UsageError
from lqcd_runtime.fields import check_links, random_links, random_spinor

# kat_vectors of the Random123 distribution: philox4x32 with 10 rounds; counter, key, answer.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def philox_scalar(counter, key):
    """The definition in plain Python integers, as a second derivation."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return tuple(c)


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_published_known_answers(counter, key, answer):
    words = noise.philox4x32(np.array(counter, np.uint32).reshape(4, 1), key)
    assert answer == tuple(int(w) for w in words[:, 0]) == philox_scalar(counter, key)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**60))
def test_a_uniform_number_is_53_bits_of_its_counter(seed, stream, index):
    block = index // 2
    words = philox_scalar((block % 2**32, block >> 32, stream, 0), (seed % 2**32, seed >> 32))
    high, low = words[2 * (index % 2) : 2 * (index % 2) + 2]
    expected = ((high << 32 | low) >> 11) / 2**52 - 1
    assert expected == noise.uniform(seed, stream, 1, index)[0]


@pytest.mark.parametrize("kind", [noise.uniform, noise.gaussian, noise.z2, noise.z4])
@settings(max_examples=25, deadline=None)
@given(start=st.integers(0, 2**40), cut=st.integers(0, 50), count=st.integers(0, 50))
def test_numbers_do_not_depend_on_how_the_range_is_cut(kind, start, cut, count):
    whole = kind(7, 3, cut + count, start)
    parts = np.concatenate((kind(7, 3, cut, start), kind(7, 3, count, start + cut)))
    assert whole.size == cut + count
    assert np.array_equal(whole, parts)


def test_slabs_of_a_lattice_receive_what_the_whole_lattice_receives():
    lattice, components = (8, 3, 4, 5), 12
    site = 3 * 4 * 5 * components
    whole = noise.z4(11, 0, 8 * site).reshape(*lattice, components)
    slabs = [noise.z4(11, 0, 2 * site, t * site).reshape(2, 3, 4, 5, components) for t in (0, 2, 4, 6)]
    assert np.array_equal(whole, np.concatenate(slabs))


def test_moments_are_those_of_the_distributions():
    """Each bound is five standard errors of the estimated moment for n independent numbers."""
    n = 200_000
    five = 5 / math.sqrt(n)
    u, g = noise.uniform(1, 0, n), noise.gaussian(1, 0, n)
    assert u.min() >= -1 and u.max() < 1
    assert abs(u.mean()) < five * math.sqrt(1 / 3) and abs((u * u).mean() - 1 / 3) < five * math.sqrt(4 / 45)
    assert abs(g.mean()) < five and abs((g * g).mean() - 1) < five * math.sqrt(2)
    assert abs((g**4).mean() - 3) < five * math.sqrt(96)
    a, b = noise.z2(1, 0, n), noise.z4(1, 0, n)
    assert set(np.unique(a)) == {1, -1} and set(np.unique(b)) == {1, -1, 1j, -1j}
    assert abs(a.mean()) < five and abs(b.mean()) < five and abs((b * b).mean()) < five
    assert abs((u[:-1] * u[1:]).mean()) < five / 3 and abs((u * noise.uniform(2, 0, n)).mean()) < five / 3
    assert abs((u * noise.uniform(1, 1, n)).mean()) < five / 3


@pytest.mark.parametrize(
    ("seed", "stream", "count", "start"),
    [(-1, 0, 1, 0), (2**64, 0, 1, 0), (0, -1, 1, 0), (0, 2**32, 1, 0), (0, 0, -1, 0), (0, 0, 1, -1)],
)
def test_a_counter_out_of_range_is_refused(seed, stream, count, start):
    with pytest.raises(UsageError, match="out of range"):
        noise.uniform(seed, stream, count, start)


def test_random_links_are_special_unitary_and_pinned():
    links = random_links((3, 2, 5, 2), seed=4)
    # 12 real operations of rounding unit 1.1e-16 form an element of U U^dag.
    assert np.abs(links @ links.conj().swapaxes(-1, -2) - np.eye(3)).max() < 12 * 2.0**-52
    assert np.abs(np.linalg.det(links) - 1).max() < 24 * 2.0**-52
    assert check_links(links) == []
    a, b = noise.uniform(4, 0, 12).view(np.complex128).reshape(2, 3)
    q, r = np.linalg.qr(np.stack((a, b), axis=1))
    rows = (q * (np.diagonal(r) / np.abs(np.diagonal(r)))).T
    assert np.allclose(links[0, 0, 0, 0, 0, :2], rows, rtol=0, atol=1e-13)
    assert np.array_equal(links, random_links("3x2x5x2", 4)) and not np.allclose(links, random_links("3x2x5x2", 5))


def test_random_spinors_differ_by_column_and_repeat():
    a, b = random_spinor((2, 2, 2, 3), 1, 0), random_spinor((2, 2, 2, 3), 1, 1)
    assert a.shape == (2, 2, 2, 3, 4, 3) and not np.allclose(a, b)
    assert np.array_equal(a, random_spinor((2, 2, 2, 3), 1)) and a[0, 0, 0, 0, 0, 0].real == noise.uniform(1, 1, 1)[0]
