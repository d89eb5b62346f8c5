"""Expansion: order, collapse, builders, rules, each against a brute-force derivation."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lqcd_aot.recipe import Recipe, expand, loads
from lqcd_runtime.errors import RecipeError, UsageError
from lqcd_runtime.signature import OPERATORS, Spec

AXES: dict[str, list[Any]] = {
    "operator": ["wilson", "clover", "plaquette", "stout_smear", "wilson_blocks"],
    "lattice": ["4x4x4x4", "8x4x4x4"],
    "dtype": ["float32", "float64"],
    "batch": [1, 12],
    "fused": [False, True],
    "shards": [1, 2],
    "target": ["x86-64-v3", "aarch64"],
}


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(toml(v) for v in value)}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def table(header: str, entries: dict[str, Any]) -> str:
    return f"{header}\n" + "".join(f"{k} = {toml(v)}\n" for k, v in entries.items())


def recipe_text(axes: dict[str, Any], exclude: list[dict[str, Any]] = [], include: list[dict[str, Any]] = []) -> str:  # noqa: B006
    rules = [table("[[exclude]]", r) for r in exclude] + [table("[[include]]", r) for r in include]
    return 'schema = 1\nname = "t"\n' + table("[axes]", axes) + "".join(rules)


def brute_force(axes: dict[str, Any], exclude: list[dict[str, Any]], include: list[dict[str, Any]]) -> list[str]:
    """Names, derived without the code under test: full product, collapse by replacing, filter, duplicates dropped."""
    names: list[str] = []
    for number, block in enumerate([axes, *({**axes, **rule} for rule in include)]):
        for values in itertools.product(*(block[axis] for axis in AXES)):
            point = dict(zip(AXES, values, strict=True))
            kind = OPERATORS[point["operator"]]["kind"]
            if kind != "dirac":
                point |= {"batch": 1, "fused": False}
            if kind in ("observable", "gauge_map"):
                point["shards"] = 1
            if number == 0 and any(all(point[a] in allowed for a, allowed in rule.items()) for rule in exclude):
                continue
            target = point.pop("target")
            wanted = [Spec(**point)]
            if point["fused"]:
                wanted.insert(0, Spec("wilson_blocks", point["lattice"], point["dtype"], shards=point["shards"]))
            names += [n for spec in wanted if (n := f"{spec.name}@{target}") not in names]
    return names


rules = st.dictionaries(st.sampled_from(sorted(AXES)), st.none(), min_size=1, max_size=3).flatmap(
    lambda picked: st.fixed_dictionaries(
        {axis: st.lists(st.sampled_from(AXES[axis]), min_size=1, max_size=2, unique=True) for axis in picked}
    )
)
subsets = st.fixed_dictionaries({axis: st.lists(st.sampled_from(v), min_size=1, unique=True) for axis, v in AXES.items()})


@settings(max_examples=120, deadline=None)
@given(subsets, st.lists(rules, max_size=2), st.lists(rules, max_size=2))
def test_expansion_is_the_brute_force_product(axes: Any, exclude: list[Any], include: list[Any]) -> None:
    names = brute_force(axes, exclude, include)
    try:
        recipe = loads(recipe_text(axes, exclude, include))
    except RecipeError as refused:
        # Only a rule without effect is refused here; leaving it out must not change the outcome.
        for line in refused.details:
            assert "matches no variant" in line or "adds no variant" in line or "leave no variant" in line
        if "matches no variant" in refused.details[0]:
            kept = [r for r in exclude if brute_force(axes, [r], []) == brute_force(axes, [], [])]
            assert kept
        return
    assert [v.name for v in expand(recipe)] == names
    assert len(set(names)) == len(names)


def test_no_two_variants_share_a_name_or_a_spec_and_target() -> None:
    variants = list(expand(loads(recipe_text(AXES))))
    assert len({v.name for v in variants}) == len({(v.spec.key, v.target) for v in variants}) == len(variants)


def test_expansion_is_lazy() -> None:
    huge = dict(AXES, batch=list(range(1, 10_001)), operator=["wilson"])
    first = list(itertools.islice(expand(loads(recipe_text(huge))), 3))
    assert [v.name for v in first] == [
        "wilson-4x4x4x4-f32-b1@x86-64-v3",
        "wilson-4x4x4x4-f32-b1@aarch64",
        "wilson-4x4x4x4-f32-b1-s2@x86-64-v3",
    ]


def test_targets_can_be_narrowed_but_not_invented() -> None:
    recipe = loads(recipe_text(AXES))
    narrowed = [v.name for v in expand(recipe, only_targets=["aarch64"])]
    assert narrowed == [v.name for v in expand(recipe) if v.target == "aarch64"]
    with pytest.raises(UsageError, match="has no target 'x86-64-v2', did you mean 'x86-64-v3'"):
        expand(recipe, only_targets=["x86-64-v2"])


def test_baked_constants_multiply_only_the_operators_that_take_them() -> None:
    axes = {
        "operator": ["wilson_hop", "wilson", "clover", "plaquette"],
        "lattice": "4x4x4x4",
        "dtype": "float64",
        "target": "aarch64",
    }
    text = recipe_text(axes) + '[constants]\npolicy = "baked"\nmass = [0.1, 0.5]\ncsw = 1\n'
    baked = [(v.spec.operator, dict(v.spec.baked)) for v in expand(loads(text))]
    assert baked == [
        ("wilson_hop", {}),
        ("wilson", {"mass": 0.1}),
        ("wilson", {"mass": 0.5}),
        ("clover", {"mass": 0.1, "csw": 1.0}),
        ("clover", {"mass": 0.5, "csw": 1.0}),
        ("plaquette", {}),
    ]


def test_kappa_is_the_mass_it_stands_for() -> None:
    axes = {"operator": "wilson", "lattice": "4x4x4x4", "dtype": "float64", "target": "aarch64"}
    kappa, mass = 0.15625, -0.8  # 1/(2 * 0.15625) = 3.2 exactly representable up to one rounding
    (a,) = expand(loads(recipe_text(axes) + f'[constants]\npolicy = "baked"\nkappa = {kappa}\n'))
    (b,) = expand(loads(recipe_text(axes) + f'[constants]\npolicy = "baked"\nmass = {3.2 - 4.0!r}\n'))
    assert a.spec == b.spec and a.spec.key == b.spec.key
    assert abs(dict(a.spec.baked)["mass"] - mass) <= 4 * 2.0**-52


def test_a_lattice_has_one_spelling_whatever_the_recipe_writes() -> None:
    axes = {"operator": "wilson", "dtype": "float64", "target": "aarch64"}
    spellings = ["8x4x4x6", [8, 4, 4, 6], ["8x4x4x6"], [[8, 4, 4, 6]]]
    keys = {next(expand(loads(recipe_text(dict(axes, lattice=s))))).spec.key for s in spellings}
    assert len(keys) == 1


def test_build_parameters_reach_every_variant() -> None:
    text = recipe_text(dict(AXES)) + '[build]\ntimeout = "1.5 min"\nmemory = "0.5 GiB"\nsalt = "again"\n'
    recipe: Recipe = loads(text)
    assert {(v.timeout_s, v.memory_bytes, v.salt) for v in expand(recipe)} == {(90.0, 2**29, "again")}
