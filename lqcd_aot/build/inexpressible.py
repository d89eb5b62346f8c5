"""Variants that no program can express, turned into the [[exclude]] rules a user has to add.

Owns the search for the axis that is to blame and for the smallest rule. Never drops a variant itself: leaving one out must stand
in the recipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from lqcd_aot.program import refusal
from lqcd_aot.recipe import Recipe, place_of
from lqcd_aot.recipe.rules import toml_rule
from lqcd_aot.recipe.values import AS_COMPUTED, STORAGES, spell
from lqcd_aot.recipe.variant import Variant
from lqcd_runtime.errors import RecipeError, UsageError
from lqcd_runtime.signature import DTYPES, Spec
from lqcd_runtime.target import TARGETS

AXES = ("operator", "storage", "fused", "shards", "batch", "iterations", "lattice", "dtype", "target")
# What an axis is changed to, to see whether it is to blame; the operator is, where nothing else is.
OTHERS: dict[str, tuple[Any, ...]] = {
    "storage": STORAGES,
    "fused": (False,),
    "shards": (1,),
    "batch": (1,),
    "iterations": (1,),
    "lattice": ((8, 8, 8, 8),),
    "dtype": tuple(DTYPES),
    "target": TARGETS,
}


class _Bad(NamedTuple):
    variant: Variant
    values: dict[str, Any]
    blamed: tuple[str, ...]
    why: UsageError

    @property
    def text(self) -> str:
        facts = [self.why.fact, f"expected {self.why.expected}" if self.why.expected else "", f"found {self.why.found}"]
        return ", ".join(fact for fact in facts if fact and fact != "found None")


def refuse_inexpressible(
    variants: Iterable[Variant], reasons: Mapping[Variant, UsageError], recipe: Recipe | None = None
) -> None:
    """Errors: RecipeError where `reasons` names any of the variants: where it stands, what, why, expected and found, and the
    rules that leave exactly these out. recipe: where they come from, None for variants that no file asks for.
    """
    if not reasons:
        return
    good = [_values(v) for v in variants if v not in reasons]
    bad = [_Bad(v, _values(v), _blamed(v, why), why) for v, why in reasons.items()]
    first, details, axes = bad[0], [], []
    while bad:
        rule = _smallest_rule(bad[0], [one.values for one in bad], good)
        covered = [one for one in bad if _matches(rule, one.values)]
        bad = [one for one in bad if not _matches(rule, one.values)]
        more = f" (and {len(covered) - 1} more)" if len(covered) > 1 else ""
        axis = next((axis for axis in covered[0].blamed if axis in rule), next(iter(rule)))
        axes.append(f"{axis} = {spell(rule[axis])}")
        where = "" if recipe is None else f"{place_of(recipe, axis, rule[axis])}: "
        details.append(f"{where}{covered[0].variant.name}{more}: {covered[0].text}; {toml_rule(rule)}")
    number = "1 variant" if len(reasons) == 1 else f"{len(reasons)} variants"
    raise RecipeError(
        f"recipe{'' if recipe is None else ' ' + recipe.path}: has {number} that no program can express",
        details=details,
        expected=first.why.expected,
        found=first.why.found,
        hint=f"change or exclude {'; '.join(dict.fromkeys(axes))}; an [[include]] that asks for it has to be narrowed itself",
    )


def _values(variant: Variant) -> dict[str, Any]:
    values = {axis: variant.target if axis == "target" else getattr(variant.spec, axis) for axis in AXES}
    return values | {"storage": AS_COMPUTED} if variant.spec.storage == variant.spec.dtype else values


def _blamed(variant: Variant, why: UsageError) -> tuple[str, ...]:
    """The axes of which another value lifts this very refusal, the likeliest first."""
    found = [axis for axis, others in OTHERS.items() if any(_lifts(variant, axis, other, why) for other in others)]
    return tuple(found) or ("operator",)


def _lifts(variant: Variant, axis: str, value: Any, why: UsageError) -> bool:
    spec, target = variant.spec, variant.target
    if axis == "target":
        target = value
    elif axis == "storage":
        if spec.storage == spec.dtype:
            return False
        spec = spec.replace(storage=spec.dtype if value == AS_COMPUTED else value)
    elif (getattr(spec, axis) == 0 and axis == "iterations") or getattr(spec, axis) == value:
        return False
    else:
        spec = spec.replace(**{axis: value})
    found = refusal(spec, target)
    return found is None or _reason(found, spec) != _reason(why, variant.spec)


def _reason(error: UsageError, spec: Spec) -> str:
    return error.fact.replace(spec.name, "")


def _matches(rule: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    return all(values[axis] == value for axis, value in rule.items())


def _smallest_rule(first: _Bad, bad: list[dict[str, Any]], good: list[dict[str, Any]]) -> dict[str, Any]:
    """The rule of fewest axes that matches `first` and nothing good; among equals the one that blames, then that covers most."""
    # An axis that means nothing to an operator stands in no rule.
    axes = [axis for axis in AXES if axis != "iterations" or first.values[axis]]
    for size in range(1, len(axes) + 1):
        rules = [{axis: first.values[axis] for axis in chosen} for chosen in combinations(axes, size)]
        safe = [rule for rule in rules if not any(_matches(rule, values) for values in good)]
        if safe:
            return max(safe, key=lambda rule: (_blame(rule, first), sum(_matches(rule, values) for values in bad)))
    return first.values


def _blame(rule: Mapping[str, Any], first: _Bad) -> tuple[int, int]:
    """How many of the rule's axes are to blame, and how likely the likeliest of them is."""
    places = [first.blamed.index(axis) for axis in rule if axis in first.blamed]
    return len(places), -min(places, default=len(AXES))
