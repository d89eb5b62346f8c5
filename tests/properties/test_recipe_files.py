"""The shipped recipes, the grammar in recipes/README.md and the JSON Schema agree with the code."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lqcd_aot.build.plan import plan
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.recipe import expand, load, loads, recipe_json_schema
from lqcd_aot.recipe.schema import Axes, Build, Constants, Recipe

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
SHIPPED = sorted(RECIPES.glob("*.toml"))
CPU_ONLY = [path for path in SHIPPED if path.stem in ("smoke", "cpu", "clover", "observables")]


def tour() -> str:
    (text,) = re.findall(r"```toml\n(.*?)```", (RECIPES / "README.md").read_text(encoding="utf-8"), re.S)
    return str(text)


def test_the_recipes_the_readme_lists_are_there() -> None:
    listed = set(re.findall(r"^\| `(\w+\.toml)`", (RECIPES / "README.md").read_text(encoding="utf-8"), re.M))
    assert listed == {path.name for path in SHIPPED}
    assert {"smoke.toml", "cpu.toml", "observables.toml", "clover.toml"} <= listed


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_a_shipped_recipe_loads_and_is_named_as_its_file(path: Path) -> None:
    recipe = load(path)
    assert recipe.name == path.stem
    assert recipe.description
    assert path.read_text(encoding="utf-8").startswith("#:schema ./recipe.schema.json\n")
    assert recipe.path == str(path)


@pytest.mark.parametrize("path", CPU_ONLY, ids=lambda p: p.stem)
def test_every_variant_of_a_shipped_recipe_has_a_program(path: Path) -> None:
    items = plan(expand(load(path)), None, FakeToolchain())
    assert {item.decision for item in items} == {"build"}


def test_smoke_covers_the_hosts_a_demo_may_meet() -> None:
    recipe = load(RECIPES / "smoke.toml")
    assert {"x86-64-v2", "aarch64"} <= set(recipe.axes.target)
    assert len(list(expand(recipe, only_targets=["x86-64-v2"]))) <= 8


def test_the_grammar_of_the_readme_is_a_recipe_that_names_every_key() -> None:
    recipe = loads(tour(), "recipes/README.md")
    document = tomllib.loads(tour())
    optional_twins = {"kappa", "mu", "iterations"}  # shown in comments: they cannot stand beside mass, or have no taker here
    assert set(document) == {field.alias or name for name, field in Recipe.model_fields.items()}
    for name, model in (("axes", Axes), ("constants", Constants), ("build", Build)):
        assert set(document[name]) | (optional_twins & set(model.model_fields)) == set(model.model_fields)
    for name in optional_twins:
        assert re.search(rf"# .*\b{name} = ", tour())
    assert {item.decision for item in plan(expand(recipe), None, FakeToolchain())} == {"build"}


def test_the_committed_schema_is_the_code_s() -> None:
    committed = json.loads((RECIPES / "recipe.schema.json").read_text(encoding="utf-8"))
    assert committed == recipe_json_schema(), "write it anew: python -m lqcd_aot.recipe > recipes/recipe.schema.json"


def complaints(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> list[str]:
    """A validator of the JSON Schema words our schema uses; an unknown word is a KeyError of this test."""
    if "$ref" in schema:
        return complaints(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    found: list[str] = []
    for keyword, wanted in schema.items():
        found += CHECKS[keyword](value, wanted, schema, root)
    return found


def _type(value: Any, wanted: str, *_: Any) -> list[str]:
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    right = isinstance(value, kinds[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
    return [] if right else [f"{value!r} is no {wanted}"]


def _properties(value: Any, wanted: dict[str, Any], _: Any, root: dict[str, Any]) -> list[str]:
    return [c for k, v in value.items() if k in wanted for c in complaints(v, wanted[k], root)] if isinstance(value, dict) else []


CHECKS: dict[str, Any] = {
    **dict.fromkeys(("$schema", "$defs", "title", "description", "default"), lambda *_: []),
    "type": _type,
    "properties": _properties,
    "const": lambda v, w, *_: [] if v == w else [f"{v!r} is not {w!r}"],
    "enum": lambda v, w, *_: [] if v in w else [f"{v!r} is not known"],
    "anyOf": lambda v, w, _, root: [] if any(not complaints(v, s, root) for s in w) else [f"{v!r} is none of these"],
    "pattern": lambda v, w, *_: [] if not isinstance(v, str) or re.search(w, v) else [f"{v!r} does not match {w}"],
    "items": lambda v, w, _, root: [c for i in v for c in complaints(i, w, root)] if isinstance(v, list) else [],
    "minItems": lambda v, w, *_: ["too few"] if isinstance(v, list) and len(v) < w else [],
    "maxItems": lambda v, w, *_: ["too many"] if isinstance(v, list) and len(v) > w else [],
    "uniqueItems": lambda v, w, *_: ["twice"] if isinstance(v, list) and any(v.count(i) > 1 for i in v) else [],
    "minimum": lambda v, w, *_: ["too small"] if isinstance(v, int) and v < w else [],
    "required": lambda v, w, *_: [f"no {k}" for k in w if isinstance(v, dict) and k not in v],
    "additionalProperties": lambda v, w, s, _: (
        [f"unknown {k}" for k in v if k not in s["properties"]] if w is False and isinstance(v, dict) else []
    ),
}


@pytest.mark.parametrize("path", [*SHIPPED, RECIPES / "README.md"], ids=lambda p: p.name)
def test_the_schema_accepts_what_the_code_accepts(path: Path) -> None:
    text = tour() if path.suffix == ".md" else path.read_text(encoding="utf-8")
    schema = recipe_json_schema()
    assert complaints(tomllib.loads(text), schema, schema) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('dtype = "float64"', 'dtpye = "float64"'),
        ('"wilson_hop"', '"wilson_hob"'),
        ('"4x4x4x4"', '"4x4x4"'),
        ('"4x4x4x4"', "[4, 4, 4, 1]"),
        ('"60 s"', "60"),
        ("schema = 1", "schema = 2"),
        ('"aarch64"]', '"aarch64", "aarch64"]'),
    ],
)
def test_the_schema_refuses_what_the_code_refuses(old: str, new: str) -> None:
    text = (RECIPES / "smoke.toml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    schema = recipe_json_schema()
    assert complaints(tomllib.loads(text.replace(old, new)), schema, schema)
