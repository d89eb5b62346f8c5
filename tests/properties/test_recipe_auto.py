"""fused = "auto" and shards = "auto": what they stand for, that it is said, and that nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from lqcd_aot.program.hlo.choose import of
from lqcd_aot.program.hlo.estimate import CORES
from lqcd_aot.recipe import auto, expand, loads
from lqcd_runtime.signature import Spec

RECIPE = """
schema = 1
name = "auto"
[axes]
operator = "wilson"
lattice = "4x4x4x4"
dtype = "float32"
batch = 1
fused = "auto"
shards = "auto"
target = "trn1"
"""


def names(text: str) -> tuple[list[str], list[str]]:
    said: list[str] = []
    return [v.name for v in expand(loads(text), say=said.append)], said


def test_on_a_cpu_it_is_unfused_and_whole_and_says_so() -> None:
    found, said = names(RECIPE.replace("trn1", "x86-64-v3"))
    assert found == ["wilson-4x4x4x4-f32-b1@x86-64-v3"]
    assert said == ['"auto" on x86-64-v3: fused = false, shards = 1']


def test_on_a_neuron_target_it_is_what_fits_by_the_estimate() -> None:
    found, said = names(RECIPE)
    assert not of(Spec("wilson", "4x4x4x4", "float32", fused=True), "trn1").excesses
    assert found == ["wilson_blocks-4x4x4x4-f32@trn1", "wilson-4x4x4x4-f32-b1-fused@trn1"]
    (line,) = said
    assert line.startswith("trn1: fused = true for wilson-4x4x4x4-f32-b1: fits") and "(estimate)" in line


def shrunk(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
    """A trn1 core with other limits."""
    from dataclasses import replace

    monkeypatch.setitem(CORES, "trn1", replace(CORES["trn1"], **limits))


def test_what_does_not_fit_is_cut_then_unfused_and_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = Spec("wilson", "4x4x4x4", "float32", fused=True)
    whole, half = of(blocks, "trn1").hbm_bytes, of(blocks.replace(shards=2), "trn1").hbm_bytes
    assert half < whole
    shrunk(monkeypatch, hbm=(whole + half) // 2)
    found, said = names(RECIPE)
    assert found[1] == "wilson-4x4x4x4-f32-b1-fused-s2@trn1" and "shards = 2" in said[0] and "device memory" in said[0]
    smallest = of(blocks.replace(shards=4), "trn1").hbm_bytes
    unfused = of(blocks.replace(fused=False), "trn1").hbm_bytes
    assert unfused < smallest
    shrunk(monkeypatch, hbm=unfused)
    found, said = names(RECIPE)
    assert found == ["wilson-4x4x4x4-f32-b1@trn1"] and "fused = false" in said[0] and "device memory" in said[0]


def test_an_operator_without_blocks_or_slabs_takes_neither() -> None:
    found, said = names(RECIPE.replace('"wilson"', '["wilson_schur", "plaquette"]'))
    assert found == ["wilson_schur-4x4x4x4-f32-b1@trn1", "plaquette-4x4x4x4-f32@trn1"]
    assert len(said) == 1 and "no fused blocks" in said[0]


def test_auto_beside_the_value_it_takes_is_one_variant() -> None:
    both = RECIPE.replace('fused = "auto"', 'fused = [true, "auto"]').replace('shards = "auto"', 'shards = [1, "auto"]')
    assert names(both)[0] == names(RECIPE)[0]


def test_explicit_values_are_never_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an estimate says, and without asking for one."""
    shrunk(monkeypatch, hbm=1)
    monkeypatch.setattr("lqcd_aot.program.hlo.choose.of", lambda *_: pytest.fail("asked for an estimate"))
    text = RECIPE.replace('fused = "auto"', "fused = true").replace('shards = "auto"', "shards = 4")
    assert names(text) == (["wilson_blocks-4x4x4x4-f32-s4@trn1", "wilson-4x4x4x4-f32-b1-fused-s4@trn1"], [])


def test_what_no_program_expresses_is_left_to_the_plan() -> None:
    assert auto.resolve("auto", "auto", "trn1", {"operator": "wilson", "lattice": "4x4x4x4", "dtype": "float64"}) == (
        False,
        1,
        None,
    )
