"""Plans: what is reused, built or blocked, and the reason with both values. The store is real, the compiler is a fake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lqcd_aot.build.plan import PlanItem, plan, predicted_seconds
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.keys import Change
from lqcd_aot.program import Program, program_for
from lqcd_aot.recipe import Variant, expand, loads
from lqcd_aot.store import Failure, Store, open_store
from lqcd_runtime.conventions import CONVENTIONS
from lqcd_runtime.errors import RecipeError
from lqcd_runtime.signature import Spec

RECIPE = """
schema = 1
name = "plan"
[axes]
operator = ["wilson", "wilson_hop", "plaquette"]
lattice = "4x4x4x4"
dtype = ["float32", "float64"]
target = ["x86-64-v3", "aarch64"]
"""


def variants(text: str = RECIPE) -> list[Variant]:
    return list(expand(loads(text)))


class Flagged(FakeToolchain):
    """A fake compiler with other flags."""

    def __init__(self, *flags: str, version: str = "1") -> None:
        super().__init__(version)
        self._flags = flags

    def flags(self, target: str) -> tuple[str, ...]:
        return (*self._flags, f"-mcpu={target}")


def publish(store: Store, item: PlanItem, milliseconds: int = 250) -> None:
    assert item.key is not None
    data = item.key.hex.encode()
    record = {
        "schema": "lqcd-aot/record/v1",
        "build_key": item.key.hex,
        "spec_key": item.spec_key,
        "spec": item.variant.spec.as_dict(),
        "target": item.variant.target,
        "components": item.key.components,
        "conventions": CONVENTIONS,
        "outputs": {"code": {"sha256": store.put_blob(data), "size": len(data), "media_type": "application/x-sharedlib"}},
        "witness": None,
        "witness_status": "unchecked: a fake",
        "provenance": {"compile_ms": milliseconds},
    }
    store.publish(record)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


@pytest.fixture
def filled(store: Store) -> Store:
    for item in plan(variants(), store, FakeToolchain()):
        publish(store, item)
    return store


def decisions(items: list[PlanItem]) -> dict[str, set[str]]:
    return {word: {i.variant.name for i in items if i.decision == word} for word in ("reuse", "build", "blocked")}


def reasons(items: list[PlanItem]) -> set[str]:
    return {item.reason for item in items}


@pytest.mark.parametrize("there_is_a_folder", [False, True])
def test_an_empty_store_builds_everything_in_the_recipe_s_order(store: Store, there_is_a_folder: bool) -> None:
    items = plan(variants(), store if there_is_a_folder else None, FakeToolchain())
    assert [item.variant for item in items] == variants()
    assert {(item.decision, item.reason) for item in items} == {("build", "no artifact of this spec")}
    assert predicted_seconds(items) is None


def test_a_built_recipe_builds_nothing(filled: Store) -> None:
    toolchain = FakeToolchain()
    items = plan(variants(), filled, toolchain)
    assert {item.decision for item in items} == {"reuse"}
    assert items[0].reason == f"artifact {str(items[0].build_key)[:12]} is in the store"
    assert toolchain.compiled == [] and predicted_seconds(items) == 0


def test_a_changed_axis_builds_exactly_the_new_variants(filled: Store) -> None:
    more = variants(RECIPE.replace('"4x4x4x4"', '["4x4x4x4", "4x4x4x6"]'))
    got = decisions(plan(more, filled, FakeToolchain()))
    assert got["reuse"] == {v.name for v in variants()}
    assert got["build"] == {v.name for v in more if v.spec.lattice == (4, 4, 4, 6)}


def test_another_target_of_a_built_spec_names_the_targets_there_are(filled: Store) -> None:
    items = plan([Variant(Spec("wilson", "4x4x4x4"), "x86-64-v2")], filled, FakeToolchain())
    assert reasons(items) == {"no artifact of this spec for x86-64-v2, only for aarch64, x86-64-v3"}


def test_another_compiler_version_names_both(filled: Store) -> None:
    items = plan(variants(), filled, FakeToolchain("2"))
    assert {(i.decision, i.reason) for i in items} == {("build", "compiler version 1 -> 2")}
    assert items[0].changes == (Change("toolchain.version", "1", "2"),)


def test_other_flags_name_only_those_that_differ(filled: Store) -> None:
    assert reasons(plan(variants(), filled, Flagged("-O2", "-g0"))) == {"flags changed: -O3 -> -O2 -g0"}
    assert reasons(plan(variants(), filled, Flagged())) == {"flags changed: -O3 -> (none)"}
    assert reasons(plan(variants(), filled, Flagged("-O3", version="3"))) == {"compiler version 1 -> 3"}
    doubled = plan(variants()[:1], filled, Flagged("-O3", "-O3"))
    assert reasons(doubled) == {"flags changed: -O3 -mcpu=x86-64-v3 -> -O3 -O3 -mcpu=x86-64-v3"}


def test_a_changed_template_names_both_digests_and_touches_only_its_own(filled: Store) -> None:
    def edited(spec: Spec, target: str) -> Program:
        program = program_for(spec, target)
        if spec.kind != "dirac":
            return program
        return Program((*program.files, ("extra.hpp", "// new")), program.defines, program.entry)

    items = plan(variants(), filled, FakeToolchain(), program_for=edited)
    got = decisions(items)
    assert got["reuse"] == {v.name for v in variants() if v.spec.operator == "plaquette"}
    for item in items:
        if item.decision == "build":
            old = program_for(item.variant.spec, item.variant.target).digest
            assert item.program is not None
            assert item.reason == f"program changed: {old[:12]} -> {item.program.digest[:12]}"


def test_a_salt_disowns_everything_and_several_changes_are_all_named(filled: Store) -> None:
    salted = variants(RECIPE + '[build]\nsalt = "bad host"\n')
    assert reasons(plan(salted, filled, FakeToolchain("2"))) == {"salt changed: (none) -> bad host; compiler version 1 -> 2"}


def test_bytes_that_are_gone_are_built_again(filled: Store) -> None:
    item = plan(variants(), filled, FakeToolchain())[0]
    record = filled.record(str(item.build_key))
    assert record is not None
    Path(filled.layout.blob(record["outputs"]["code"]["sha256"])).unlink()
    again = plan(variants(), filled, FakeToolchain())[0]
    assert again.decision == "build"
    assert (
        again.reason
        == f"artifact {str(item.build_key)[:12]} is named by the spec's index, but its record or bytes cannot be used"
    )


def test_only_a_deterministic_failure_blocks_and_only_until_it_is_retried(store: Store) -> None:
    items = plan(variants()[:2], store, FakeToolchain())
    log = store.put_blob(b"error: no")
    for item, failure_class in zip(items, ("deterministic", "resource"), strict=True):
        store.record_failure(Failure(str(item.build_key), item.variant.name, failure_class, 1, "failed", log, {}))
    blocked, again = plan(variants()[:2], store, FakeToolchain())
    assert (blocked.decision, again.decision) == ("blocked", "build")
    assert blocked.reason == f"failed before (deterministic, log {log[:12]}); use --retry-failed"
    assert decisions(plan(variants()[:2], store, FakeToolchain(), retry_failed=True))["blocked"] == set()
    assert decisions(plan(variants()[:2], store, FakeToolchain("2")))["blocked"] == set()


@pytest.mark.parametrize("target", ["inf2", "trn1", "trn2", "trn3", "sim"])
def test_a_target_without_a_compiler_is_blocked_with_the_reason(store: Store, target: str) -> None:
    items = plan(variants(RECIPE.replace('"aarch64"', f'"{target}"')), store, FakeToolchain())
    assert all((item.decision == "blocked") == (item.variant.target == target) for item in items)
    assert {i.reason for i in items if i.decision == "blocked"} == {
        f"not in the store, and no compiler for target {target}: {target} is not a CPU target"
    }
    assert all(i.build_key is None and i.spec_key == i.variant.spec.key for i in items if i.decision == "blocked")


def test_without_any_compiler_a_plan_still_says_what_is_there(filled: Store) -> None:
    more = variants(RECIPE.replace('"4x4x4x4"', '["4x4x4x4", "4x4x4x6"]'))
    items = plan(more, filled, None)
    got = decisions(items)
    assert got["reuse"] == {v.name for v in variants()} and got["build"] == set()
    current = {i.variant.name: i.build_key for i in plan(variants(), filled, FakeToolchain())}
    assert {i.variant.name: i.build_key for i in items if i.decision == "reuse"} == current
    assert {i.reason for i in items if i.decision == "blocked"} == {"not in the store, and there is no compiler here"}


def test_what_no_program_expresses_is_refused_with_the_rule_that_cures_it() -> None:
    text = RECIPE.replace('["wilson", ', '["wilson", "clover", ').replace("target =", "fused = [false, true]\ntarget =")
    with pytest.raises(RecipeError) as caught:
        plan(variants(text), None, FakeToolchain())
    (detail,) = caught.value.details
    assert "only the Wilson operators have fused blocks" in detail and "(and 3 more)" in detail
    rule = detail.split("add [[exclude]] with ")[1].replace(" and ", "\n")
    assert rule == 'operator = "clover"\nfused = true'
    cured = variants(f"{text}\n[[exclude]]\n{rule}\n")
    assert {v.name for v in variants(text)} - {v.name for v in cured} == {
        f"clover-4x4x4x4-{d}-b1-fused@{t}" for d in ("f32", "f64") for t in ("x86-64-v3", "aarch64")
    }
    assert decisions(plan(cured, None, FakeToolchain()))["blocked"] == set()


ONE = 'schema = 1\nname = "one"\n[axes]\noperator = "{}"\nlattice = "4x4x4x4"\ndtype = ["float32"]\n{}\ntarget = ["x86-64-v3"]\n'


@pytest.mark.parametrize(
    ("operator", "line", "column", "axis", "expected", "found"),
    [
        ("clover", "fused = true", 9, "fused = true", "wilson_hop, wilson, wilson_dagger or wilson_normal", "clover"),
        ("wilson", "batch = [1, 100]", 13, "batch = 100", "1 <= batch <= 64", "batch = 100"),
        ("wilson", "batch = 100", 9, "batch = 100", "1 <= batch <= 64", "batch = 100"),
        ("wilson_schur", "shards = 2", 10, "shards = 2", "shards = 1", "shards = 2"),
        ("wilson_cg_chunk", "iterations = 4", None, 'target = "x86-64-v3"', "a Neuron target or sim", "x86-64-v3"),
    ],
)
def test_a_recipe_of_one_operator_is_told_the_axis_with_its_place(
    operator: str, line: str, column: int | None, axis: str, expected: str, found: str
) -> None:
    """Every axis would do as a rule here: there is nothing else in the recipe. Named is the one that is to blame."""
    recipe = loads(ONE.format(operator, line), "r.toml")
    with pytest.raises(RecipeError) as caught:
        plan(list(expand(recipe)), None, FakeToolchain(), recipe=recipe)
    error = caught.value
    assert "recipe r.toml: has 1 variant that no program can express" in error.fact
    (detail,) = error.details
    assert detail.startswith(f"r.toml:7:{column}: " if column else "r.toml:8:11: ")
    assert f"expected {expected}, found {found}; add [[exclude]] with {axis}" in detail
    assert (error.expected, error.found) == (expected, found)
    assert axis in str(error.hint)
    # A rule of that axis is one that the recipe's own checks know.
    assert axis.partition(" ")[0] in recipe.axes.model_fields_set


def test_an_include_that_asks_for_it_is_pointed_at() -> None:
    text = ONE.format("wilson", "batch = 1") + "[[include]]\nbatch = [2, 99]\n"
    recipe = loads(text, "r.toml")
    with pytest.raises(RecipeError) as caught:
        plan(list(expand(recipe)), None, FakeToolchain(), recipe=recipe)
    assert caught.value.details[0].startswith("r.toml:10:13: wilson-4x4x4x4-f32-b99@x86-64-v3: ")


def test_minutes_come_from_the_history_of_the_nearest_kind(store: Store) -> None:
    for item in plan(variants(), store, FakeToolchain()):
        if item.variant.spec.operator != "plaquette":
            milliseconds = 4000 if item.variant.target == "aarch64" else 1000 if item.variant.spec.operator == "wilson" else 2000
            publish(store, item, milliseconds)
    wanted = [
        Variant(Spec("wilson", "4x4x4x6"), "aarch64"),  # the same operator and target
        Variant(Spec("wilson_hop", "4x4x4x6"), "x86-64-v2"),  # the operator on any target: 2, 2, 4, 4
        Variant(Spec("plaquette", "4x4x4x6"), "aarch64"),  # anything: 1, 1, 2, 2, 4, 4, 4, 4
        Variant(Spec("wilson", "4x4x4x4"), "aarch64"),  # reused
    ]
    items = plan(wanted, store, FakeToolchain())
    assert [item.estimate for item in items] == [4.0, 3.0, 3.0, None]
    assert predicted_seconds(items) == 10.0


def test_a_plan_speaks_json(filled: Store) -> None:
    (item,) = plan(variants()[:1], filled, FakeToolchain("2"))
    shown: dict[str, Any] = json.loads(json.dumps(item.as_json()))
    assert shown == {
        "name": "wilson-4x4x4x4-f32-b1@x86-64-v3",
        "target": "x86-64-v3",
        "spec_key": item.variant.spec.key,
        "build_key": item.build_key,
        "decision": "build",
        "reason": "compiler version 1 -> 2",
        "changes": [{"component": "toolchain.version", "old": "1", "new": "2"}],
        "estimate_seconds": 0.25,
    }


def test_planning_writes_nothing(filled: Store) -> None:
    def tree() -> dict[str, int]:
        return {str(p): p.stat().st_mtime_ns for p in sorted(Path(filled.root).rglob("*"))}

    before = tree()
    plan(variants(), filled, FakeToolchain("2"))
    assert tree() == before
