"""Recipe file -> `Recipe`; every issue of the file in one RecipeError, each with file:line:column.

Owns the translation of what tomllib, pydantic and rules.py found into sentences with places. Judges nothing itself.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from lqcd_aot.recipe import rules
from lqcd_aot.recipe.positions import Place, locate
from lqcd_aot.recipe.schema import SCHEMA_VERSION, Axes, Build, Constants, Recipe, Rule
from lqcd_aot.recipe.values import spell
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import RecipeError
from lqcd_runtime.signature import suggest

GRAMMAR = "recipes/README.md is the grammar as one commented recipe"
TABLES: dict[str, type[BaseModel]] = {
    "axes": Axes, "constants": Constants, "exclude": Rule, "include": Rule, "build": Build,
}  # fmt: skip


def load(path: str | Path) -> Recipe:
    """Read, check and return a recipe. Errors: RecipeError with all issues, or where the file cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError as why:
        raise RecipeError(f"recipe {path}: cannot be read", found=why.strerror or str(why), hint=GRAMMAR) from why
    return loads(data, str(path))


def loads(data: bytes | str, name: str = "<recipe>") -> Recipe:
    """The same from the bytes or text of a recipe; `name` stands for the file in messages."""
    raw = data.encode("utf-8") if isinstance(data, str) else data
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as why:
        before = raw[: why.start].decode("utf-8")
        at = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise _refusal(name, [(at, f"byte 0x{raw[why.start]:02x} is not UTF-8")]) from None
    table = _parse(text, name)
    version = table.get("schema")
    if type(version) is int and version != SCHEMA_VERSION:
        # Keys of another grammar would all look like typos, so this issue stands alone.
        raise _refusal(name, [(locate(text)["schema",].key, f"schema {version} is not known here (known: {SCHEMA_VERSION})")])
    try:
        recipe = Recipe.model_validate(table)
    except ValidationError as why:
        raise _refusal(name, _placed(text, [_sentence(error) for error in why.errors()])) from None
    if found := rules.issues(recipe):
        raise _refusal(name, _placed(text, found))
    recipe._path, recipe._sha256, recipe._text = name, sha256_hex(raw), text
    return recipe


def place_of(recipe: Recipe, axis: str, value: Any) -> str:
    """file:line:column where an axis of a recipe takes a value: in [axes], or in the first [[include]] that does."""
    tables: list[tuple[tuple[str | int, ...], Any]] = [(("axes",), recipe.axes)]
    tables += [(("include", index), rule) for index, rule in enumerate(recipe.include)]
    for path, table in tables:
        values = getattr(table, axis) or ()
        if value in values:
            (((line, column), _),) = _placed(recipe._text, [((*path, axis, values.index(value)), "")])
            return f"{recipe.path}:{line}:{column}"
    (((line, column), _),) = _placed(recipe._text, [(("axes", axis), "")])
    return f"{recipe.path}:{line}:{column}"


def _parse(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as why:
        fact = str(why)
        match = re.search(r" \(at line (\d+), column (\d+)\)$", fact)
        lines = text.split("\n")
        at = (int(match[1]), int(match[2])) if match else (len(lines), len(lines[-1]) + 1)
        fact = re.sub(r" \(at .*\)$", "", fact)
        raise _refusal(name, [(at, f"is not TOML: {fact[:1].lower()}{fact[1:]}")]) from None
    except RecursionError:
        raise _refusal(name, [((1, 1), "is nested too deeply")]) from None


def _refusal(name: str, found: list[tuple[tuple[int, int], str]]) -> RecipeError:
    lines = [f"{name}:{line}:{column}: {sentence}" for (line, column), sentence in sorted(found)]
    number = "1 issue" if len(lines) == 1 else f"{len(lines)} issues"
    return RecipeError(f"recipe {name}: has {number}", details=lines, hint=GRAMMAR)


def _placed(text: str, found: Iterable[rules.Issue]) -> list[tuple[tuple[int, int], str]]:
    """Give each issue the place of its path, or of the nearest path above it that stands in the text."""
    places = locate(text.replace("\r\n", "\n"))
    out = []
    for path, sentence in found:
        near = path
        while near and near not in places:
            near = near[:-1]
        place = places.get(near, Place((1, 1), (1, 1)))
        # An unknown key and the table that lacks one are pointed at by name, everything else by its value.
        by_name = sentence.startswith("unknown key") or any(isinstance(part, str) for part in path[len(near) :])
        out.append((place.key if by_name else place.value, sentence))
    return out


def _sentence(error: Any) -> rules.Issue:
    """(path, sentence) of one pydantic error."""
    path: tuple[str | int, ...] = tuple(error["loc"])
    dotted = ".".join(str(p) for p in path if isinstance(p, str))
    context, kind, given = error.get("ctx", {}), error["type"], error["input"]
    if kind == "value":
        return (*path, context["index"]) if "index" in context else path, f"{dotted}: {context['why']}"
    if kind == "extra_forbidden":
        fields = TABLES[str(path[0])].model_fields if len(path) > 1 else Recipe.model_fields
        known = [field.alias or name for name, field in fields.items()]
        return path, f"unknown key {path[-1]!r}{suggest(str(path[-1]), known)} (known: {', '.join(known)})"
    if kind == "missing":
        where = f"[{'.'.join(str(p) for p in path[:-1])}] has no" if len(path) > 1 else "the recipe has no"
        return path, f"{where} {path[-1]!r}"
    if kind == "literal_error":
        return path, f"{dotted}: {spell(given)} is not known (known: {context['expected']})"
    if kind == "string_pattern_mismatch":
        return path, f"{dotted}: {spell(given)} is not lower-case letters, digits, dot, dash and underscore"
    names = {"string_type": "a string", "model_type": "a table", "list_type": "an array of tables ([[...]])"}
    if kind in names:
        return path, f"{dotted}: {spell(given)} is not {names[kind]}"
    return path, f"{dotted}: {error['msg'][:1].lower()}{error['msg'][1:]}"
