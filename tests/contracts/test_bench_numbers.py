"""Figures of a benchmark derived twice: bytes, flops, roofs, falls, ratios, places of labels. Nothing is compiled here."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lqcd_aot.bench import peer, plot, series
from lqcd_aot.bench.compare import SCHEMA, compare, read_report
from lqcd_aot.bench.machine import Level, allowed_cpus
from lqcd_aot.bench.probes import Figure
from lqcd_aot.bench.roofline import Roofline
from lqcd_aot.bench.rows import disturbance, identity, words
from lqcd_aot.bench.suite import Axes, expand, grouped, operators_of
from lqcd_aot.bench.work import Work, least_bytes, stored
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import OPERATORS, Spec


def touched(lattice: tuple[int, ...], parity: int | None) -> tuple[set[Any], set[Any], set[Any]]:
    """(links, sites read, sites written) of a sweep of the hop over all sites, or over those of one parity."""
    links, read, written = set(), set(), set()
    for x in itertools.product(*(range(n) for n in lattice)):
        if parity is not None and sum(x) % 2 != parity:
            continue
        written.add(x)
        for mu in range(4):
            forward = tuple((c + (nu == mu)) % lattice[nu] for nu, c in enumerate(x))
            back = tuple((c - (nu == mu)) % lattice[nu] for nu, c in enumerate(x))
            links |= {(x, mu), (back, mu)}
            read |= {forward, back}
    return links, read, written


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [1, 12])
def test_least_bytes_are_what_a_sweep_touches(dtype: str, batch: int) -> None:
    lattice, real = (4, 2, 4, 6), 4 if dtype == "float32" else 8
    links, read, written = touched(lattice, None)
    hop = real * (18 * len(links) + 24 * batch * (len(read) + len(written)))
    assert least_bytes(Spec("wilson_hop", lattice, dtype, batch=batch)) == hop
    assert least_bytes(Spec("wilson_normal", lattice, dtype, batch=batch)) == 2 * hop
    clover = 72 * real * 192  # two hermitian 6x6 blocks a site
    assert least_bytes(Spec("clover", lattice, dtype, batch=batch)) == hop + clover
    half = 0
    for parity in (1, 0):  # even -> odd -> even
        links, read, written = touched(lattice, parity)
        half += real * (18 * len(links) + 24 * batch * (len(read) + len(written)))
    assert least_bytes(Spec("wilson_schur", lattice, dtype, batch=batch)) == half


def test_the_published_intensity_of_a_hop() -> None:
    """cpu facts: 288 bytes of links, 96 in, 96 out a site in float32; 1320 flops."""
    assert least_bytes(Spec("wilson_hop", "4x4x4x4", "float32")) == 256 * (288 + 96 + 96)
    assert Work(1320, 480, 0).intensity == pytest.approx(2.75)


def test_an_iteration_moves_its_vectors_and_the_links_of_its_sweeps() -> None:
    """Full: 2 sweeps, 11 fields. Even-odd: 4 half sweeps, each of them all links; 11 fields of half the sites."""
    assert least_bytes(Spec("wilson_cg", "4x4x4x4", "float64", batch=3)) == 256 * 8 * (2 * 72 + 11 * 24 * 3)
    assert least_bytes(Spec("wilson_schur_cg", "4x4x4x4", "float32", batch=2)) == 256 * 4 * (4 * 72 + 11 * 24 * 2 // 2)


def test_halves_and_two_rows_are_counted_as_they_are_stored() -> None:
    """float16: 24 halves and a scale of 4 bytes; a storage of its own word keeps two rows where its packed links say so."""
    assert stored(Spec("wilson", "4x4x4x4", "float32", storage="float16")) == (52, 36)
    assert stored(Spec("wilson", "4x4x4x4", "float32", storage="bfloat16")) == (48, 36)
    assert least_bytes(Spec("wilson_hop", "4x4x4x4", "float32", storage="bfloat16")) == 256 * 480 // 2
    clover = Spec("clover", "4x4x4x4", "float32", storage="bfloat16")  # its blocks are stored as they are computed with
    assert least_bytes(clover) == 256 * (480 // 2 + 72 * 4)


@pytest.mark.parametrize(("numbers", "link"), [(72, 18), (144, 18), (48, 12), (96, 12)])
def test_rows_of_a_link_are_read_off_the_packed_field(numbers: int, link: int) -> None:
    class OwnWord:
        storage, dtype, fused, lattice = "float32 of its own kind", "float32", False, (4, 4, 4, 4)

    assert stored(OwnWord(), 256 * numbers * 4) == (96, 4 * link)  # type: ignore[arg-type]


def one(value: float) -> Figure:
    return Figure(value, value, value)


ROOFLINE = Roofline(
    "x86-64-v3",
    (Level("L1", 1000, (0,)), Level("L2", 10_000, (0,)), Level("memory", 0, ())),
    {1: (0,)},
    {(d, 1): one(90e9) for d in ("float32", "float64")},
    {("float32", 1): one(100e9), ("float64", 1): one(50e9)},
    {(level, kind, 1): one(rate * scale) for level, rate in (("L1", 200e9), ("L2", 80e9), ("memory", 10e9))
     for kind, scale in (("read", 1.0), ("copy", 0.5))},
)  # fmt: skip


@pytest.mark.parametrize(
    ("working_set", "intensity", "dtype", "level", "gflops", "bound"),
    [
        (1000, 2, "float32", "L1", 100, "compute"),
        (1001, 1, "float32", "L2", 80, "L2"),
        (1001, 1, "float64", "L2", 50, "compute"),
        (10_001, 3, "float32", "memory", 30, "memory"),
        (10_001, 300, "float32", "memory", 100, "compute"),
    ],
)
def test_a_roof_is_the_lower_of_flops_and_bytes(
    working_set: int, intensity: int, dtype: str, level: str, gflops: float, bound: str
) -> None:
    roof = ROOFLINE.roof(Work(1000 * intensity, 1000, working_set), dtype, 1)
    assert (roof.level, roof.gflops, roof.bound) == (level, pytest.approx(gflops), bound)


def made(lattice: tuple[int, ...] = (4, 4, 4, 4), gflops: float = 80.0, roof: float = 100.0, **changes: Any) -> dict[str, Any]:
    """A row as rows.py makes them."""
    sites = math.prod(lattice)
    flops = 1320 * sites
    row = {
        "operator": "wilson_hop", "dtype": "float32", "storage": "float32", "lattice": list(lattice), "batch": 1, "fused": False,
        "shards": 1, "threads": 1, "target": "x86-64-v3", "seconds": flops / gflops / 1e9, "fastest": flops / gflops / 1.1e9,
        "slowest": flops / gflops / 0.9e9, "gflops": gflops, "gbytes_per_s": gflops / 2.75, "least_bytes": 480 * sites,
        "working_set": 480 * sites, "intensity": 2.75, "level": "L2", "roof_gflops": roof, "bound": "compute",
        "fraction": gflops / roof, "compile_ms": 300, "artifact_bytes": 20_000, "cpus": [0], "round_trip_ns": None,
        "moved": False, "cpu_lost": 0.0, "solve": None, "peer": None,
    }  # fmt: skip
    return row | changes


SIZES = {"L1": 32 << 10, "L2": 1 << 20, "L3": 32 << 20}


def test_a_series_that_keeps_to_its_roof_falls_nowhere() -> None:
    (found,) = series.series([made((4, 4, 4, 4), 80), made((8, 8, 8, 8), 70)], SIZES)
    assert found["name"] == "wilson_hop, float32, batch 1, 1 thread"
    assert (found["best"]["lattice"], found["best"]["fraction"], found["falls"]) == ("4x4x4x4", 0.8, [])


def test_falls_are_named_with_level_bandwidth_and_fraction() -> None:
    rows = [
        made((16, 16, 16, 16), 30, 60, level="memory", bound="memory", working_set=40 << 20),
        made((4, 4, 4, 4), 80, working_set=500 << 10),
        made((8, 8, 8, 8), 75, level="L3", working_set=3 << 20),
    ]
    (found,) = series.series(rows, SIZES)
    (fall,) = found["falls"]
    assert fall["lattice"] == "16x16x16x16"
    for words_ in ("works on 40.0 MiB, held by memory", "8x8x8x8 still fitted L3 (32.0 MiB)",
                   "22 GB/s from there times 2.75 flops a byte make a roof of 60", "50 % of the roof after 80 %"):  # fmt: skip
        assert words_ in fall["reason"]


def test_what_no_number_explains_is_said_to_be_unexplained() -> None:
    rows = [made((4, 4, 4, 4), 80), made((8, 4, 4, 4), 40, moved=True)]
    (fall,) = series.series(rows, SIZES)[0]["falls"]
    assert "neither flops nor bytes explain it" in fall["reason"]
    assert "the CPUs were moved" in fall["reason"]


def test_disturbances_are_words_a_reader_sees() -> None:
    assert disturbance(made()) == disturbance(made(cpu_lost=None)) == disturbance(made(cpu_lost=0.05)) == ""
    assert disturbance(made(cpu_lost=0.31, moved=True)) == "the CPUs were moved meanwhile, other work had 31 % of the CPU"


def test_a_full_cache_is_a_reason() -> None:
    rows = [made((8, 8, 8, 8), 80, level="L3", working_set=4 << 20), made((16, 16, 16, 16), 30, level="L3", working_set=30 << 20)]
    (fall,) = series.series(rows, SIZES)[0]["falls"]
    assert "more than half of L3 (32.0 MiB), which other data share" in fall["reason"]


def test_rows_without_roofs_make_no_series() -> None:
    assert series.series([made(fraction=None, roof_gflops=None, level=None)], SIZES) == []


def test_a_comparison_is_a_ratio_of_speeds_and_knows_the_spread() -> None:
    old = [made(gflops=40), made((8, 8, 8, 8), 80), made((8, 4, 4, 4), 90), made(storage="float16")]
    new = [made(gflops=80), made((8, 8, 8, 8), 84), made((8, 4, 4, 4), 45), made(batch=12)]
    found = compare(new, old)
    assert [round(r["ratio"], 9) for r in found["rows"]] == [2.0, 1.05, 0.5]
    assert [r["verdict"] for r in found["rows"]] == ["faster", "within the spread", "slower"]
    assert found["only_new"] == ["wilson_hop 4x4x4x4 float32 batch 12, 1 thread"]
    assert found["only_old"] == ["wilson_hop 4x4x4x4 float32, stored as float16 batch 1, 1 thread"]


def test_every_axis_is_in_the_identity_of_a_row() -> None:
    changes = {"operator": "wilson", "dtype": "float64", "storage": "float16", "lattice": [8, 8, 8, 8], "batch": 2, "fused": True,
               "shards": 2, "threads": 2}  # fmt: skip
    assert len({identity(made()), *(identity(made(**{k: v})) for k, v in changes.items())}) == 1 + len(changes)
    assert len({words(made()), *(words(made() | {k: v}) for k, v in changes.items())}) == 1 + len(changes)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "other", "rows": []}', json.dumps({"schema": SCHEMA, "rows": [{}]})]
)
def test_what_is_no_report_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(text)
    with pytest.raises(UsageError, match=r"report .*old\.json"):
        read_report(tmp_path / "old.json")
    with pytest.raises(UsageError, match="cannot be read"):
        read_report(tmp_path / "absent.json")


HOP = Spec("wilson_hop", "8x4x4x4", "float32", batch=4)
LINE = {"operator": "wilson_hop", "dtype": "float32", "lattice": "8x4x4x4", "batch": 4, "threads": 1, "seconds": 2e-5}


def test_a_peers_rows_are_json_lines_among_its_own_words() -> None:
    other = {**LINE, "lattice": [8, 4, 4, 4], "storage": "float16", "peer": "G"}
    text = f"warming up\n  {json.dumps(LINE)}\n# done\n{json.dumps(other)}\n"
    first, second = peer.parse(text)
    assert (first.key, first.seconds, first.name) == (peer.key_of(HOP, 1), 2e-5, "")
    assert (second.key[2], second.name) == ("float16", "G")


@pytest.mark.parametrize(
    "line",
    ["{not json", json.dumps({k: v for k, v in LINE.items() if k != "threads"}), json.dumps({**LINE, "seconds": 0}),
     json.dumps({**LINE, "seconds": "fast"}), json.dumps({**LINE, "lattice": "8x4x4"}), json.dumps({**LINE, "batch": None})],
)  # fmt: skip
def test_a_row_that_is_none_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(UsageError, match="cannot be read") as caught:
        peer.parse(line)
    assert line[:20] in str(caught.value)


def test_words_in_braces_are_filled_and_others_left() -> None:
    text = peer.filled("bench {lattice} {T}.{X} {dtype} {storage} {batch} {threads} {operator} ${HOME} {else}", HOP, 2)
    assert text == "bench 8x4x4x4 8.4 float32 float32 4 2 wilson_hop ${HOME} {else}"


@pytest.mark.parametrize(("command", "calls"), [("grid", 3), ("grid {batch}", 6)])
def test_the_peer_runs_in_turns_with_us(command: str, calls: int) -> None:
    """Three rounds; the ratio is the median of the rounds' ratios, so that a drift meets both."""
    other = HOP.replace(batch=1)
    log: list[str] = []
    drift = iter([1.0, 2.0, 4.0] * 2)

    def run(text: str, cpus: Any) -> list[peer.PeerRow]:
        log.append(f"peer {text}")
        scale = 2.0 ** (sum(entry.startswith("peer") for entry in log) * 3 // calls - 1) if command == "grid" else 1.0
        return [peer.PeerRow(peer.key_of(HOP, 1), 3e-5 * scale, "G"), peer.PeerRow(peer.key_of(HOP, 7), 1.0, "G")]

    def own(question: peer.Question) -> dict[str, Any]:
        log.append(question[0].name)
        scale = next(drift) if question[0] is HOP else 1.0
        return made((8, 4, 4, 4), batch=question[0].batch, seconds=1e-5 * scale, fastest=0.9e-5 * scale, slowest=1.1e-5 * scale)

    rows, notes = peer.interleaved([(HOP, 1), (other, 1)], command, own, lambda n: (0,), run)
    assert sum(entry.startswith("peer") for entry in log) == calls
    assert all(log[i - 1].startswith("peer") for i, entry in enumerate(log) if entry == HOP.name)
    assert rows[0]["seconds"] == pytest.approx(2e-5)
    assert (rows[0]["fastest"], rows[0]["slowest"]) == (pytest.approx(0.9e-5), pytest.approx(4.4e-5))
    if command == "grid":
        assert rows[0]["peer"]["ratios"] == pytest.approx([3.0, 3.0, 3.0])
        assert (rows[0]["peer"]["name"], rows[0]["peer"]["ratio"]) == ("G", pytest.approx(3.0))
    assert rows[1]["peer"] is None
    assert notes == [f"the peer has no row for {other.name}, 1 threads",
                     "the peer timed wilson_hop 8x4x4x4 float32 batch 4, 7 threads, which we did not"]  # fmt: skip


def test_a_peer_that_fails_is_an_error_with_its_last_words() -> None:
    with pytest.raises(UsageError, match="failed") as caught:
        peer.call("echo no such grid >&2; exit 3", allowed_cpus()[:1])
    assert "no such grid" in str(caught.value)
    assert "exit code 3" in str(caught.value)


def test_all_operators_are_those_that_act_on_spinors() -> None:
    assert operators_of(["all"]) == [w for w, entry in OPERATORS.items() if entry["kind"] in ("dirac", "solver")]
    assert operators_of(["wilson", "wilson"]) == ["wilson"]
    with pytest.raises(UsageError, match="plaquette: is no Dirac operator"):
        operators_of(["plaquette"])


def test_axes_multiply_and_what_cannot_be_compiled_is_named() -> None:
    axes = Axes(("wilson", "wilson_schur"), ((4, 4, 4, 4), (4, 4, 4, 3)), ("float32",), (), (1, 2), fused=True)
    specs, skipped = expand(axes, "x86-64-v3")
    assert len(specs) == 2 * 2 * 2 + 2  # wilson plain and fused on both lattices; even-odd on the even one
    assert [s["name"] for s in skipped] == ["wilson_schur-4x4x4x3-f32-b1", "wilson_schur-4x4x4x3-f32-b2"]
    assert all("even" in s["reason"] for s in skipped)
    assert grouped(skipped) == [("wilson_schur-4x4x4x3-f32-b1 and 1 more", "even-odd needs even extents")]
    with pytest.raises(UsageError, match="nothing of this can be compiled"):
        expand(axes._replace(operators=("wilson_schur",), lattices=((4, 4, 4, 3),)), "x86-64-v3")


def test_storage_is_an_axis() -> None:
    axes = Axes(("wilson",), ((4, 4, 4, 4),), ("float32",), ("float32", "no such words"), (1,))
    specs, skipped = expand(axes, "x86-64-v3")
    assert [s.storage for s in specs] == ["float32"]
    assert "no such words" in skipped[0]["name"]


@given(st.lists(st.floats(0, 400), max_size=40))
def test_labels_keep_their_order_and_never_touch(wanted: list[float]) -> None:
    places = plot.spread_out(wanted, 16, 0, 400)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    assert all(places[b] - places[a] >= 16 - 1e-9 for a, b in itertools.pairwise(order))
    if len(wanted) <= 26:
        assert all(-1e-9 <= place <= 400 + 1e-9 for place in places)


@example(0.005004901672428024, 1.5)
@given(st.floats(1e-3, 1e3), st.floats(1.5, 1e4))
def test_an_axis_maps_its_ends_and_ticks_lie_between(low: float, factor: float) -> None:
    scale = plot.Scale(low, low * factor, 50, 650)
    assert (scale(low), scale(low * factor)) == (pytest.approx(50), pytest.approx(650))
    ticks = [scale(t) for t in scale.ticks()]
    assert ticks == sorted(ticks)
    assert all(49 < t < 651 for t in ticks)
