"""Every parser of foreign bytes: sound inputs are read, every other one is answered by an error on purpose.

A fixed set of mutations for each parser, and every input that fuzzing (make fuzz) once found. A parser that raises anything else
fails here with the input's digest; the input itself is written where the message says.
"""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from lqcd_runtime.digest import sha256_hex
from tests.abuse.fuzz.mutate import mutations
from tests.abuse.fuzz.parsers import PARSERS, answers
from tests.abuse.fuzz.seeds import SEEDS

REGRESSIONS = Path(__file__).parent / "fuzz" / "regressions"
COUNT = {"bundle": 250, "index": 250, "gauge_file": 250, "recipe": 150}
USUAL = 600
# A parser may hold the input several times over (bytes, text, values) and what it imports; not thousands of times.
MEMORY = 64 << 20


def test_every_parser_has_seeds() -> None:
    assert PARSERS.keys() == SEEDS.keys()


@pytest.mark.parametrize("name", PARSERS)
def test_seeds_are_sound(name: str) -> None:
    for seed in SEEDS[name]():
        if name == "index" and seed == SEEDS[name]()[-1]:
            continue  # an index of nothing beside entries of something: for the mutations only
        PARSERS[name](seed)


@pytest.mark.parametrize("name", PARSERS)
def test_mutated_inputs_are_answered(name: str, tmp_path: Path) -> None:
    refused = 0
    seeds = SEEDS[name]()
    PARSERS[name](seeds[0])  # imports
    tracemalloc.start()
    try:
        for data in mutations(seeds, COUNT.get(name, USUAL), salt=f"lqcd-aot {name}"):
            refused += _answered(name, data, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused > COUNT.get(name, USUAL) // 4, "most of what was damaged is noticed"
    assert peak < MEMORY


@pytest.mark.parametrize("name", PARSERS)
def test_what_was_once_found_is_answered(name: str, tmp_path: Path) -> None:
    """Of most parsers nothing was found yet: then the seeds themselves are replayed."""
    for data in [*SEEDS[name](), *(path.read_bytes() for path in sorted((REGRESSIONS / name).glob("*")))]:
        _answered(name, data, tmp_path)


def _answered(name: str, data: bytes, tmp_path: Path) -> bool:
    """Whether the input was refused. Fails for anything that is no answer."""
    try:
        PARSERS[name](data)
    except answers(name):
        return True
    except Exception as error:
        kept = tmp_path / sha256_hex(data)
        kept.write_bytes(data)
        pytest.fail(f"{name}: {type(error).__name__}: {error}; the input is {kept}")
    return False
