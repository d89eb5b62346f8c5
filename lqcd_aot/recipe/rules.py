"""What several keys of a recipe mean together: impossible combinations, rules that match nothing, constants nobody takes.

Owns those judgements as (path, sentence) pairs; load.py turns paths into lines. An impossible combination is never dropped in
silence: the sentence names the [[exclude]] to add. What a program cannot express beyond this is found by build/plan.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

from lqcd_aot.recipe.expand import Block, blocks, effective, points
from lqcd_aot.recipe.schema import AXIS_NAMES, Constants, Recipe, Rule
from lqcd_aot.recipe.values import AUTO, spell
from lqcd_runtime.conventions import AXES
from lqcd_runtime.geometry import Extents, format_extents
from lqcd_runtime.signature import OPERATORS

MAX_POINTS = 1_000_000
Issue = tuple[tuple[str | int, ...], str]


def issues(recipe: Recipe) -> list[Issue]:
    """Every issue that takes more than one key to see, in the order of the file's sections."""
    size = sum(math.prod(len(block[axis]) for axis in AXIS_NAMES) for block in blocks(recipe))
    if size > MAX_POINTS:
        return [(("axes",), f"the axes span {size} combinations, more than {MAX_POINTS}")]
    found = [*_constants(recipe), *_excludes(recipe), *_includes(recipe), *_impossible(recipe), *_iterations(recipe)]
    if not found and next(points(blocks(recipe)[0], recipe.exclude), None) is None and not recipe.include:
        found.append((("exclude",), "the [[exclude]] rules leave no variant"))
    return found


def toml_rule(entries: dict[str, Any]) -> str:
    """The [[exclude]] to add, as a user types it: 'add [[exclude]] with operator = "clover" and fused = true'."""
    return "add [[exclude]] with " + " and ".join(f"{axis} = {spell(value)}" for axis, value in entries.items())


def _constants(recipe: Recipe) -> Iterator[Issue]:
    constants = recipe.constants
    given = [name for name in Constants.model_fields if name != "policy" and getattr(constants, name) is not None]
    if constants.policy == "external":
        for name in given:
            yield ("constants", name), f'{name} is a run-time input under policy = "external"; say "baked" or drop it'
        return
    if not given:
        yield ("constants", "policy"), 'policy = "baked" needs values: mass or kappa, csw, mu'
    if constants.mass is not None and constants.kappa is not None:
        yield ("constants", "kappa"), "mass and kappa name the same constant; keep one"
    if constants.kappa is not None and 0.0 in constants.kappa:
        yield ("constants", "kappa"), "kappa = 0 has no mass (mass = 1/(2 kappa) - 4)"
    taken = {name for block in blocks(recipe) for operator in block["operator"] for name in OPERATORS[operator]["inputs"]}
    for name in given:
        if name.replace("kappa", "mass") not in taken:
            yield ("constants", name), f"no operator of this recipe takes {name}"


def _excludes(recipe: Recipe) -> Iterator[Issue]:
    axes = blocks(recipe)[0]
    for index, rule in enumerate(recipe.exclude):
        entries = rule.given()
        if not entries:
            yield ("exclude", index), "an [[exclude]] without entries would drop everything; name at least one axis"
        elif not any(_overlap(effective(axes, operator), entries) for operator in axes["operator"]):
            yield ("exclude", index), f"matches no variant of [axes]; {_why_nothing(axes, entries)}"


def _overlap(block: Block, entries: dict[str, tuple[Any, ...]]) -> bool:
    return all(not set(block[axis]).isdisjoint(allowed) for axis, allowed in entries.items())


def _why_nothing(axes: Block, entries: dict[str, tuple[Any, ...]]) -> str:
    for axis, allowed in entries.items():
        if set(axes[axis]).isdisjoint(allowed):
            return f"axes.{axis} has no {' or '.join(spell(v) for v in allowed)}"
    return "storage, batch, fused, shards and iterations are dtype, 1, false, 1 and none for operators to which they mean nothing"


def _includes(recipe: Recipe) -> Iterator[Issue]:
    earlier: list[tuple[Block, list[Rule]]] = []
    for index, block in enumerate(blocks(recipe)):
        if index:
            if not recipe.include[index - 1].given():
                yield ("include", index - 1), "an [[include]] without entries adds nothing; name at least one axis"
            elif all(any(_holds(b, rules, point) for b, rules in earlier) for point in points(block)):
                yield ("include", index - 1), "adds no variant that [axes] or an earlier [[include]] does not have"
        earlier.append((block, recipe.exclude if index == 0 else []))


def _holds(block: Block, exclude: list[Rule], point: tuple[Any, ...]) -> bool:
    """Whether a block has a point: one value an axis, so its own product has it or nothing."""
    if point[0] not in block["operator"]:
        return False
    mine = effective(block, point[0])
    if any(value not in mine[axis] for axis, value in zip(AXIS_NAMES, point, strict=True)):
        return False
    return next(points(_only(block, dict(zip(AXIS_NAMES, point, strict=True))), exclude), None) is not None


def _only(block: Block, chosen: dict[str, Any]) -> Block:
    return {**block, **{axis: (value,) for axis, value in chosen.items()}}


def _impossible(recipe: Recipe) -> Iterator[Issue]:
    for index, block in enumerate(blocks(recipe)):
        exclude = recipe.exclude if index == 0 else []
        for entries, why in (*_odd_extents(block, exclude), *_uneven_slabs(block, exclude)):
            advice = toml_rule(entries) if index == 0 else "narrow this [[include]]"
            place = ("axes",) if index == 0 else ("include", index - 1)
            yield (*place, *_element(recipe, index, entries["lattice"])), f"{why}; {advice}"


def _iterations(recipe: Recipe) -> Iterator[Issue]:
    """A solver chunk without a number of iterations, and iterations that no operator takes."""
    for index, block in enumerate(blocks(recipe)):
        place: tuple[str | int, ...] = ("axes",) if index == 0 else ("include", index - 1)
        chunks = [operator for operator in block["operator"] if OPERATORS[operator]["kind"] == "chunk"]
        if chunks and 0 in block["iterations"]:
            yield place, f"operator {chunks[0]} is a solver chunk and needs iterations, e.g. iterations = 8"
        table = recipe.axes if index == 0 else recipe.include[index - 1]
        if not chunks and index and table.iterations is not None:
            yield (*place, "iterations"), "no operator here is a solver chunk, which alone takes iterations"
    if 0 not in recipe.axes.iterations and not any(
        OPERATORS[operator]["kind"] == "chunk" for block in blocks(recipe) for operator in block["operator"]
    ):
        yield ("axes", "iterations"), "no operator of this recipe is a solver chunk, which alone takes iterations"


def _element(recipe: Recipe, index: int, lattice: Extents) -> tuple[str | int, ...]:
    """Where the lattice stands below its table; nothing where an [[include]] takes it from [axes]."""
    named = recipe.axes.lattice if index == 0 else recipe.include[index - 1].lattice
    return () if named is None else ("lattice", named.index(lattice))


def _odd_extents(block: Block, exclude: list[Rule]) -> Iterator[tuple[dict[str, Any], str]]:
    even_odd = [operator for operator in block["operator"] if OPERATORS[operator].get("parity") == "even"]
    for lattice in block["lattice"]:
        odd = [f"{axis} = {n}" for axis, n in zip(AXES, lattice, strict=True) if n % 2]
        if odd:
            hit = [o for o in even_odd if next(points(_only(block, {"operator": o, "lattice": lattice}), exclude), None)]
            if hit:
                verb = f"operator {hit[0]} is even-odd and needs" if len(hit) == 1 else f"{', '.join(hit)} are even-odd and need"
                why = f"{verb} even extents, lattice {format_extents(lattice)} has {', '.join(odd)}"
                yield {"operator": hit[0] if len(hit) == 1 else hit, "lattice": lattice}, why


def _uneven_slabs(block: Block, exclude: list[Rule]) -> Iterator[tuple[dict[str, Any], str]]:
    for lattice, shards in product(block["lattice"], block["shards"]):
        if shards != AUTO and lattice[0] % shards:
            cut = points(_only(block, {"lattice": lattice, "shards": shards}), exclude)
            if any(point[AXIS_NAMES.index("shards")] == shards for point in cut):
                why = f"{shards} shards do not divide T = {lattice[0]} of lattice {format_extents(lattice)}"
                yield {"lattice": lattice, "shards": shards}, why
