"""Recipe -> variants: lazily, in one fixed order, each variant once.

Order: the product of [axes] (operator outermost, target innermost, values as written), then each [[include]] in turn.
An axis that means nothing to an operator's kind collapses to its neutral value, so observables are not multiplied by
batch. A fused Dirac variant is preceded by the `wilson_blocks` builder that makes its blocks. Knows no program, no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from lqcd_aot.recipe.auto import resolve
from lqcd_aot.recipe.schema import AXIS_NAMES, Constants, Recipe, Rule
from lqcd_aot.recipe.values import AS_COMPUTED, AUTO
from lqcd_aot.recipe.variant import Variant
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import OPERATORS, Spec, suggest

BUILDER = "wilson_blocks"
# The axes that mean nothing to a kind, with the value they collapse to.
NEUTRAL: dict[str, dict[str, tuple[Any, ...]]] = {
    "dirac": {"iterations": (0,)},
    "builder": {"storage": (AS_COMPUTED,), "batch": (1,), "fused": (False,), "iterations": (0,)},
    "observable": {"storage": (AS_COMPUTED,), "batch": (1,), "fused": (False,), "shards": (1,), "iterations": (0,)},
    "gauge_map": {"storage": (AS_COMPUTED,), "batch": (1,), "fused": (False,), "shards": (1,), "iterations": (0,)},
    # A solver applies its operator to all of the lattice; what it does per call is the caller's choice.
    "solver": {"fused": (False,), "shards": (1,), "iterations": (0,)},
    # A chunk runs many applications in one call, so nobody could exchange halos between them.
    "chunk": {"storage": (AS_COMPUTED,), "shards": (1,)},
}
Block = dict[str, tuple[Any, ...]]


def blocks(recipe: Recipe) -> list[Block]:
    """The products of a recipe: [axes], then each [[include]] with the axes it does not name filled in from [axes]."""
    axes = {axis: getattr(recipe.axes, axis) for axis in AXIS_NAMES}
    return [axes, *({**axes, **rule.given()} for rule in recipe.include)]


def effective(block: Block, operator: str) -> Block:
    """The block as one operator sees it: this operator only, meaningless axes collapsed."""
    return {**block, "operator": (operator,), **NEUTRAL[OPERATORS[operator]["kind"]]}


def points(block: Block, exclude: Iterable[Rule] = ()) -> Iterator[tuple[Any, ...]]:
    """The points (values in the order of AXIS_NAMES) of a block that no exclude rule matches."""
    rules = [[(AXIS_NAMES.index(axis), frozenset(v)) for axis, v in rule.given().items()] for rule in exclude]
    for operator in block["operator"]:
        mine = effective(block, operator)
        for point in product(*(mine[axis] for axis in AXIS_NAMES)):
            if not any(all(point[i] in allowed for i, allowed in rule) for rule in rules):
                yield point


def baked_values(constants: Constants, operator: str) -> list[dict[str, float]]:
    """The sets of values to compile in for an operator; [{}] where it keeps every input external."""
    if constants.policy == "external":
        return [{}]
    mass = constants.mass
    if constants.kappa is not None:
        mass = tuple(1.0 / (2.0 * kappa) - 4.0 for kappa in constants.kappa)
    given = {"mass": mass, "csw": constants.csw, "mu": constants.mu}
    used = {k: v for k, v in given.items() if v is not None and k in OPERATORS[operator]["inputs"]}
    return [dict(zip(used, choice, strict=True)) for choice in product(*used.values())]


def expand(
    recipe: Recipe, only_targets: Iterable[str] | None = None, say: Callable[[str], None] | None = None
) -> Iterator[Variant]:
    """The variants of a recipe, lazily and in a stable order; `only_targets` narrows the target axis.

    say: takes a line for each "auto" that was given a value. Errors: UsageError, at the call, for a target that the recipe does
    not name.
    """
    everything = blocks(recipe)
    if only_targets is not None:
        wanted = set(only_targets)
        named = {target for block in everything for target in block["target"]}
        for target in sorted(wanted - named):
            raise UsageError(
                f"recipe {recipe.name}: has no target {target!r}{suggest(target, named)}",
                expected=", ".join(sorted(named)),
            )
        everything = [{**b, "target": tuple(t for t in b["target"] if t in wanted)} for b in everything]
    return _unique(recipe, everything, say or (lambda line: None))


def _unique(recipe: Recipe, everything: list[Block], say: Callable[[str], None]) -> Iterator[Variant]:
    build = recipe.build
    parameters = (build.timeout, build.memory, build.salt)
    seen: set[tuple[Any, ...]] = set()
    for index, block in enumerate(everything):
        baked = {operator: baked_values(recipe.constants, operator) for operator in block["operator"]}
        specs: tuple[Any, list[Spec]] = (None, [])
        for point in points(block, recipe.exclude if index == 0 else ()):
            point = _resolved(point, say)
            operator, lattice, dtype, storage, batch, fused, shards, iterations, target = point
            if fused:
                need = (BUILDER, lattice, dtype, AS_COMPUTED, 1, False, shards, 0, target)
                if need not in seen:
                    seen.add(need)
                    yield Variant(Spec(BUILDER, lattice, dtype, shards=shards), target, *parameters)
            if point in seen:
                continue
            seen.add(point)
            if point[:-1] != specs[0]:
                # Points of one spec differ only in the innermost axis, so the spec is made once for all targets.
                stored = None if storage == AS_COMPUTED else storage
                shape = {"storage": stored, "batch": batch, "fused": fused, "shards": shards, "iterations": iterations}
                specs = (point[:-1], [Spec(operator, lattice, dtype, **shape, baked=b) for b in baked[operator]])
            for spec in specs[1]:
                yield Variant(spec, target, *parameters)


def _resolved(point: tuple[Any, ...], say: Callable[[str], None]) -> tuple[Any, ...]:
    """The point with values in the place of "auto"."""
    operator, lattice, dtype, storage, batch, fused, shards, iterations, target = point
    if fused != AUTO and shards != AUTO:
        return point
    shape = {"operator": operator, "lattice": lattice, "dtype": dtype, "batch": batch, "iterations": iterations}
    found = resolve(fused, shards, target, shape)
    if found.line is not None:
        say(found.line)
    return operator, lattice, dtype, storage, batch, found.fused, found.shards, iterations, target
