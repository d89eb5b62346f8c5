"""Variants that no program can express, turned into the [[exclude]] rules a user has to add.

Owns the search for the smallest such rules. Never drops a variant itself: leaving one out must stand in the recipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

from lqcd_aot.recipe.rules import toml_rule
from lqcd_aot.recipe.variant import Variant
from lqcd_runtime.errors import RecipeError

AXES = ("operator", "fused", "shards", "batch", "lattice", "dtype", "target")


def refuse_inexpressible(variants: Iterable[Variant], reasons: Mapping[Variant, str]) -> None:
    """Errors: RecipeError where `reasons` names any of the variants: what, why, and the rules that leave exactly them out."""
    if not reasons:
        return
    good = [_values(v) for v in variants if v not in reasons]
    bad = [(_values(v), v.name, why) for v, why in reasons.items()]
    details = []
    while bad:
        rule = _smallest_rule(bad[0][0], [values for values, _, _ in bad], good)
        covered = [row for row in bad if _matches(rule, row[0])]
        bad = [row for row in bad if not _matches(rule, row[0])]
        more = f" (and {len(covered) - 1} more)" if len(covered) > 1 else ""
        details.append(f"{covered[0][1]}{more}: {covered[0][2]}; {toml_rule(rule)}")
    number = "1 variant" if len(reasons) == 1 else f"{len(reasons)} variants"
    raise RecipeError(
        f"recipe: has {number} that no program can express",
        details=details,
        hint="where an [[include]] asks for it, narrow that one: excludes do not touch it",
    )


def _values(variant: Variant) -> dict[str, Any]:
    return {axis: variant.target if axis == "target" else getattr(variant.spec, axis) for axis in AXES}


def _matches(rule: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    return all(values[axis] == value for axis, value in rule.items())


def _smallest_rule(first: dict[str, Any], bad: list[dict[str, Any]], good: list[dict[str, Any]]) -> dict[str, Any]:
    """The rule of fewest axes that matches `first` and nothing good; among equals the one that covers most."""
    for size in range(1, len(AXES) + 1):
        rules = [{axis: first[axis] for axis in axes} for axes in combinations(AXES, size)]
        safe = [rule for rule in rules if not any(_matches(rule, values) for values in good)]
        if safe:
            return max(safe, key=lambda rule: sum(_matches(rule, values) for values in bad))
    return first
