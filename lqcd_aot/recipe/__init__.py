"""Recipes: TOML file -> checked `Recipe` -> variants. The grammar is recipes/README.md.

    values.py     axis words, lattices, quantities with units
    schema.py     the pydantic models, the JSON Schema, the list of keys that reach no build key
    positions.py  where each key and value of a TOML text stands
    rules.py      what several keys mean together: impossible combinations, rules that match nothing
    auto.py       what fused = "auto" and shards = "auto" stand for
    load.py       file -> Recipe, every issue with file:line:column in one RecipeError; where a value stands
    expand.py     Recipe -> variants, lazily, in a stable order
    __main__.py   prints the JSON Schema
    names.py      a readable variant name back to its spec and target
    variant.py    Variant = spec + target + build parameters

Nothing here imports torch, a program or a compiler.
"""

from lqcd_aot.recipe.expand import expand
from lqcd_aot.recipe.load import load, loads, place_of
from lqcd_aot.recipe.schema import NOT_IN_KEY, Recipe, recipe_json_schema
from lqcd_aot.recipe.variant import Variant

__all__ = ["NOT_IN_KEY", "Recipe", "Variant", "expand", "load", "loads", "place_of", "recipe_json_schema"]
