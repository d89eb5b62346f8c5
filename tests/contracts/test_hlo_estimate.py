"""Estimates: the public calibration points, the counts per site, memory by hand, and what "auto" chooses and says."""

from __future__ import annotations

import math

import pytest

from lqcd_aot.program import program_for
from lqcd_aot.program.hlo.canonical import serialise
from lqcd_aot.program.hlo.choose import choose_fused, choose_shards
from lqcd_aot.program.hlo.estimate import CALL_SECONDS, CORES, PROGRAM_LIMIT, Estimate, estimate
from lqcd_aot.program.hlo.graph import Graph
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import NEURON_TARGETS, SIM_TARGET


def one_dot(n: int, i: int, k: int, j: int, dtype: str = "bfloat16") -> Estimate:
    graph = Graph()
    a, b = graph.parameter(0, dtype, (n, i, k)), graph.parameter(1, dtype, (n, k, j))
    return estimate(serialise([a, b], graph.results([graph.dot(a, b)])), "trn1")


@pytest.mark.parametrize(
    ("n", "i", "k", "j", "expected"),
    [
        (4096, 4096, 4096, 1, 4_194_304),  # a public log: a 4096 x 4096 matrix for each of 4096 tokens, "4194304 exceeds"
        (1, 128, 128, 512, 1), (1, 128, 129, 512, 2), (1, 128, 128, 513, 2), (1, 129, 128, 512, 2), (7, 24, 96, 1, 7),
        (7, 24, 192, 8, 14),
    ],
)  # fmt: skip
def test_instructions_of_a_dot(n: int, i: int, k: int, j: int, expected: int) -> None:
    assert one_dot(n, i, k, j).instructions == one_dot(n, i, k, j).largest_operator == expected


def test_a_fused_operator_costs_one_instruction_a_site_and_application() -> None:
    for lattice, batch in (((4, 4, 2, 6), 1), ((8, 4, 4, 4), 512)):
        sites = math.prod(lattice)
        for operator, applications in (("wilson", 1), ("wilson_normal", 2)):
            guess = program_for(Spec(operator, lattice, "bfloat16", batch=batch, fused=True), "trn1").estimate("trn1")
            assert (guess.instructions, guess.largest_operator) == (applications * sites, sites)
    assert program_for(Spec("wilson", lattice, "bfloat16"), "trn1").estimate("trn1").instructions == 0


def test_memory_counts_parameters_results_and_what_is_alive_between() -> None:
    graph = Graph()
    x = graph.parameter(0, "float32", (256,))
    doubled = graph.binary("add", x, x)
    squared = graph.binary("multiply", doubled, doubled)
    guess = estimate(serialise([x], graph.results([graph.binary("subtract", squared, doubled)])), "trn2")
    assert guess.hbm_bytes == 1024 * (2 + 2), "x, the result, and both intermediates at the subtraction"
    assert guess.sbuf_bytes == 1024 * 3
    assert guess.vector == 3

    state = graph.parameter(0, "float32", (256,))
    moved = graph.negate(state)
    plain, shared = (estimate(serialise([state], graph.results([moved]), aliases), "trn2") for aliases in ([], [(0, 0)]))
    assert plain.hbm_bytes - shared.hbm_bytes == 1024


def test_time_is_at_least_a_call_and_the_slowest_engine() -> None:
    small, large = (program_for(Spec("wilson", (n, 4, 4, 4), "float32"), "trn1").estimate("trn1") for n in (4, 64))
    assert CALL_SECONDS < small.seconds < large.seconds
    single, half = one_dot(1000, 24, 96, 1, "float32"), one_dot(1000, 24, 96, 1)
    assert single.seconds - CALL_SECONDS == pytest.approx(4 * (half.seconds - CALL_SECONDS))


def test_every_target_of_hlo_programs_has_a_core_and_an_estimate_says_it_is_one() -> None:
    assert set(CORES) == {*NEURON_TARGETS, SIM_TARGET}
    line = program_for(Spec("wilson", (4, 4, 4, 4), "float32"), "trn1").estimate("trn1").line
    assert line.startswith("estimate, uncalibrated")
    assert "HBM" in line


def test_limits_are_those_of_the_compiler_s_messages() -> None:
    assert (PROGRAM_LIMIT, CORES["trn1"].operator_limit, CORES["inf2"].operator_limit, CORES["trn2"].operator_limit) == (
        5_000_000, 150_000, 150_000, 300_000,
    )  # fmt: skip
    fits = Estimate("trn1", 5_000_000, 150_000, 0, 16 * 2**30, 0, 0.0)
    assert fits.excesses == ()
    over = Estimate("trn1", 5_000_001, 150_001, 0, 16 * 2**30 + 1, 0, 0.0).excesses
    assert [code in sentence for code, sentence in zip(("EVRF007", "EXTP003", "GiB"), over, strict=True)] == [True] * 3
    assert Estimate("trn2", 5_000_000, 300_000, 0, 12 * 2**30, 0, 0.0).excesses == ()


def test_fused_is_chosen_where_it_fits_and_the_line_says_why_not_elsewhere() -> None:
    small = choose_fused(Spec("wilson", (16, 16, 16, 16), "bfloat16"), "trn1")
    assert (small.value, small.spec.fused) == (True, True)
    assert "fits" in small.line
    large = choose_fused(Spec("wilson", (20, 20, 20, 20), "bfloat16"), "trn1")
    assert (large.value, large.spec.fused) == (False, False)
    assert "160,000 matrix instructions in one operator, above 150,000 on trn1" in large.line
    assert choose_fused(Spec("wilson", (20, 20, 20, 20), "bfloat16"), "trn2").value is True
    clover = choose_fused(Spec("clover", (4, 4, 4, 4), "bfloat16", fused=True), "trn1")
    assert (clover.value, clover.line) == (False, "fused = false for clover-4x4x4x4-bf16-b1: it has no fused blocks")


@pytest.mark.parametrize(
    ("lattice", "target", "expected"),
    [
        ((16, 16, 16, 16), "trn1", 1), ((20, 20, 20, 20), "trn1", 2), ((20, 20, 20, 20), "trn2", 1),
        ((24, 24, 24, 24), "trn1", 3), ((32, 32, 32, 32), "trn1", 8), ((64, 32, 32, 32), "inf2", 16),
    ],
)  # fmt: skip
def test_the_fewest_slabs_that_fit(lattice: tuple[int, int, int, int], target: str, expected: int) -> None:
    """By hand: a fused slab of V/s sites is one dot of V/s instructions."""
    choice = choose_shards(Spec("wilson", lattice, "bfloat16", fused=True), target)
    sites, limit = math.prod(lattice), CORES[target].operator_limit
    fitting = [n for n in range(1, lattice[0] + 1) if lattice[0] % n == 0 and sites // n <= limit]
    assert choice.value == choice.spec.shards == expected == fitting[0]
    assert choice.estimate.excesses == ()
    assert f"shards = {expected}" in choice.line
    assert "estimate" in choice.line


def test_where_nothing_fits_the_line_says_so() -> None:
    large = Spec("wilson_cg_chunk", (64, 64, 64, 64), "float32", batch=16, iterations=1)
    choice = choose_shards(large, "trn1")
    assert choice.value == 1
    assert "nothing fits" in choice.line
    assert "device memory" in choice.line


def test_what_has_no_program_has_no_choice() -> None:
    for choose in (choose_fused, choose_shards):
        with pytest.raises(UsageError, match="double precision"):
            choose(Spec("wilson", (4, 4, 4, 4), "float64"), "trn1")
