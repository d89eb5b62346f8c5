"""Every key of every recipe model changes a build key, or stands in NOT_IN_KEY and changes neither key nor bytes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lqcd_aot.build.plan import plan
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.keys import COMPONENTS, build_key
from lqcd_aot.program import Program, program_for
from lqcd_aot.recipe import NOT_IN_KEY, Recipe, Variant, expand
from lqcd_aot.recipe.schema import Axes, Build, Constants, Rule
from lqcd_runtime.signature import CPU_STORAGES, Spec

BASE: dict[str, Any] = {
    "schema": 1,
    "name": "base",
    "description": "one of each",
    "axes": {
        "operator": ["wilson", "twisted", "plaquette", "wilson_cg_chunk"],
        "lattice": ["8x4x4x4", "4x4x4x4"],
        "dtype": ["float32", "float64"],
        "batch": [1, 4],
        "fused": [False],
        "shards": [1, 2],
        "iterations": [2, 4],
        "target": ["x86-64-v3", "aarch64"],
    },
    "constants": {"policy": "baked", "mass": [0.1], "mu": [0.2]},
    "exclude": [
        {"operator": "twisted", "batch": 4},
        {"operator": "twisted", "fused": True},
        {"operator": "wilson_cg_chunk", "iterations": 4},
    ],
    "include": [{"operator": "clover", "batch": 1, "fused": False, "dtype": "float32"}],
    "build": {"timeout": "60 s", "memory": "1 GiB", "salt": ""},
}

# "model.field": the recipe's other value, as (path, value). One row a field, checked by reflection below.
FLIPS: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "Recipe.name": (("name",), "other"),
    "Recipe.description": (("description",), "other words"),
    "Recipe.axes": (("axes", "batch"), [1]),
    "Recipe.constants": (("constants",), {}),
    "Recipe.exclude": (("exclude",), []),
    "Recipe.include": (("include",), []),
    "Recipe.build": (("build", "salt"), "x"),
    "Axes.operator": (("axes", "operator"), ["wilson_dagger", "twisted", "plaquette", "wilson_cg_chunk"]),
    "Axes.lattice": (("axes", "lattice"), ["8x4x4x4", "4x4x4x8"]),
    "Axes.dtype": (("axes", "dtype"), ["float64"]),
    "Axes.storage": (("axes", "storage"), ["dtype", "float16"]),
    "Axes.batch": (("axes", "batch"), [1, 4, 8]),
    "Axes.fused": (("axes", "fused"), [False, True]),
    "Axes.shards": (("axes", "shards"), [1, 4]),
    "Axes.iterations": (("axes", "iterations"), [8]),
    "Axes.target": (("axes", "target"), ["x86-64-v2", "aarch64"]),
    "Constants.policy": (("constants",), {"policy": "external"}),
    "Constants.mass": (("constants", "mass"), [0.7]),
    "Constants.kappa": (("constants",), {"policy": "baked", "kappa": [0.15], "mu": [0.2]}),
    "Constants.csw": (("constants", "csw"), [1.2]),
    "Constants.mu": (("constants", "mu"), [0.3]),
    "Build.timeout": (("build", "timeout"), "90 s"),
    "Build.memory": (("build", "memory"), "3 GiB"),
    "Build.salt": (("build", "salt"), "2026-11: bad batch"),
    "Rule.operator": (("exclude", 0, "operator"), "wilson"),
    "Rule.lattice": (("exclude", 0, "lattice"), "8x4x4x4"),
    "Rule.dtype": (("exclude", 0, "dtype"), "float32"),
    "Rule.storage": (("include", 0, "storage"), "bfloat16"),
    "Rule.batch": (("exclude", 0, "batch"), 1),
    "Rule.fused": (("include", 0), {"operator": "wilson", "fused": True}),
    "Rule.shards": (("exclude", 0, "shards"), 2),
    "Rule.iterations": (("exclude", 2, "iterations"), [2]),
    "Rule.target": (("exclude", 0, "target"), "aarch64"),
}
# The only field without another valid value, which test_recipe_issues sees refused.
SINGLE_VALUED = {"Recipe.schema_"}
EXCLUDED = {"Recipe.name", "Recipe.description", "Build.timeout", "Build.memory"}


def flipped(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    recipe: Any = copy.deepcopy(BASE)
    at = recipe
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    return dict(recipe)


def program_of(spec: Spec, target: str) -> Program:
    """The CPU program, and a stand-in for what no CPU program expresses."""
    stand_in = spec.kind == "chunk" or spec.storage not in CPU_STORAGES[spec.dtype]
    return Program((), (("NAME", spec.name),), "none") if stand_in else program_for(spec, target)


def outcome(table: dict[str, Any]) -> tuple[list[str | None], list[bytes]]:
    """(build keys, artifact bytes) of a recipe by the fake compiler."""
    toolchain = FakeToolchain()
    items = plan(expand(Recipe.model_validate(table)), None, toolchain, program_for=program_of)
    assert all(item.program is not None for item in items)
    return [i.build_key for i in items], [toolchain.compile(i.program, i.variant.target) for i in items if i.program]


def test_the_table_has_every_field_of_every_model() -> None:
    models = (Recipe, Axes, Constants, Build, Rule)
    fields = {f"{model.__name__}.{name}" for model in models for name in model.model_fields}
    assert set(FLIPS) | SINGLE_VALUED == fields
    spelled = {f"Recipe.{n}" if "." not in n else f"Build.{n.partition('.')[2]}" for n in NOT_IN_KEY}
    assert {name.replace("schema_", "schema") for name in EXCLUDED | SINGLE_VALUED} == spelled
    assert all(len(reason) > 4 for reason in NOT_IN_KEY.values())


@pytest.mark.parametrize("field", sorted(set(FLIPS) - EXCLUDED))
def test_another_value_makes_other_keys(field: str) -> None:
    before, after = outcome(BASE)[0], outcome(flipped(*FLIPS[field]))[0]
    assert None not in before + after
    assert set(before) != set(after)


@pytest.mark.parametrize("field", sorted(EXCLUDED))
def test_another_value_of_an_excluded_field_makes_the_same_keys_and_bytes(field: str) -> None:
    assert outcome(flipped(*FLIPS[field])) == outcome(BASE)


@pytest.mark.parametrize("field", ["Axes.batch", "Axes.target", "Constants.mass", "Rule.dtype"])
def test_variants_untouched_by_a_change_keep_their_keys(field: str) -> None:
    """Changing one field rebuilds exactly the variants whose spec, target or program changed."""

    def by_name(table: dict[str, Any]) -> dict[str, str | None]:
        variants = expand(Recipe.model_validate(table))
        return {i.variant.name: i.build_key for i in plan(variants, None, FakeToolchain(), program_for=program_of)}

    before, after = by_name(BASE), by_name(flipped(*FLIPS[field]))
    common = before.keys() & after.keys()
    assert common and before != after
    assert {n: before[n] for n in common} == {n: after[n] for n in common}


SPEC = Spec("twisted", "8x4x4x4", "float64", batch=4, shards=2, baked={"mass": 0.1, "mu": 0.2})
CHUNK = Spec("wilson_cg_chunk", "8x4x4x4", "float32", batch=4, iterations=8)
SPEC_FLIPS: dict[str, Any] = {
    "operator": "twisted_dagger", "lattice": (8, 4, 4, 6), "dtype": "float32", "storage": "float32", "batch": 8,
    "fused": True, "shards": 4, "nc": 2, "baked": {"mass": 0.1},
    "iterations": 4,
}  # fmt: skip
VARIANT_IN_KEY, VARIANT_NOT_IN_KEY = {"spec", "target", "salt"}, {"timeout_s", "memory_bytes"}
PARTS: dict[str, Any] = {
    "spec": SPEC, "program_digest": "ab" * 32, "toolchain_identity": {"compiler": "fake", "version": "1"},
    "flags": ("-O3", "-g0"), "target": "x86-64-v3", "salt": "",
}  # fmt: skip


def test_every_attribute_of_a_spec_is_in_both_keys() -> None:
    # "constants" is derived from "baked", so flipping one flips both.
    assert set(SPEC_FLIPS) | {"constants"} == set(Spec.__slots__) == set(Spec.FIELDS) | {"baked"} == set(SPEC.as_dict())
    for name, value in SPEC_FLIPS.items():
        changes = {name: value, **({"storage": "float64"} if name == "dtype" else {})}
        base = CHUNK if name == "iterations" else SPEC
        other = base.replace(**changes)
        assert other.key != base.key, name
        assert other.name != base.name, name
        assert build_key(**{**PARTS, "spec": other}).hex != build_key(**{**PARTS, "spec": base}).hex, name


def test_every_attribute_of_a_variant_is_in_the_key_or_excluded() -> None:
    assert set(Variant._fields) == VARIANT_IN_KEY | VARIANT_NOT_IN_KEY

    def key(variant: Variant) -> str | None:
        return plan([variant], None, FakeToolchain())[0].build_key

    base = Variant(Spec("wilson", "4x4x4x4"), "x86-64-v3")
    others = {"spec": Spec("wilson", "4x4x4x6"), "target": "aarch64", "salt": "x", "timeout_s": 1.0, "memory_bytes": 1}
    for name in Variant._fields:
        assert (key(base._replace(**{name: others[name]})) != key(base)) == (name in VARIANT_IN_KEY), name


OTHER_PARTS: list[tuple[str, Any]] = [
    ("program_digest", "cd" * 32),
    ("toolchain_identity", {"compiler": "fake", "version": "2"}),
    ("toolchain_identity", {"compiler": "other", "version": "1"}),
    ("toolchain_identity", {"compiler": "fake", "version": "1", "binary_sha256": "ef" * 32}),
    ("flags", ("-g0", "-O3")),
    ("flags", ("-O3",)),
    ("flags", ("-O3 -g0",)),
    ("target", "x86-64-v2"),
    ("salt", " "),
]


@pytest.mark.parametrize(("part", "value"), OTHER_PARTS)
def test_every_component_of_a_build_key_counts(part: str, value: Any) -> None:
    assert build_key(**{**PARTS, part: value}).hex != build_key(**PARTS).hex


def test_the_components_are_the_documented_ones() -> None:
    assert set(build_key(**PARTS).components) == set(COMPONENTS)
    assert {part for part, _ in OTHER_PARTS} | {"spec"} == set(PARTS)


def test_the_order_of_a_toolchain_s_facts_does_not_count() -> None:
    turned = dict(reversed(PARTS["toolchain_identity"].items()))
    assert build_key(**{**PARTS, "toolchain_identity": turned}).hex == build_key(**PARTS).hex
