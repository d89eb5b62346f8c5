"""The recipe as pydantic models: every key a recipe may hold, its type, its default, its meaning.

Owns the shape of a recipe and its JSON Schema. What several keys mean together is judged in rules.py; files, lines and
columns are the business of load.py. `NOT_IN_KEY` lists, with a reason each, the keys that reach no build key.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, WithJsonSchema
from pydantic_core import PydanticCustomError

from lqcd_aot.recipe import values
from lqcd_aot.recipe.variant import DEFAULT_MEMORY_BYTES, DEFAULT_TIMEOUT_S
from lqcd_runtime.geometry import Extents
from lqcd_runtime.signature import DTYPES, OPERATORS
from lqcd_runtime.target import TARGETS

SCHEMA_VERSION = 1
SCHEMA_URL = "https://json-schema.org/draft/2020-12/schema"

# Keys of a recipe that reach no build key. Everything else must change a key or the set of variants (tests/properties).
NOT_IN_KEY = {
    "schema": "the version of this grammar; what it means arrives in the spec, whose own version is in the key",
    "name": "a label; two recipes may share artifacts",
    "description": "prose for people",
    "build.timeout": "a limit on the compiler decides whether bytes are made, never which bytes",
    "build.memory": "a reservation for the scheduler of compiles, never seen by the compiler",
}


def _one_or_many(check: Callable[[Any], Any], *, real: bool = False) -> BeforeValidator:
    """Accept one value or an array of them; give back a tuple without duplicates. Issues carry the element's index."""

    def parse(given: Any) -> tuple[Any, ...]:
        single = not isinstance(given, list) or (check is values.lattice and all(type(n) is int for n in given) and given)
        items = [given] if single else given
        if not items:
            raise PydanticCustomError("empty", "has no values")
        out: dict[Any, None] = {}
        for index, item in enumerate(items):
            place = {} if single else {"index": index}
            try:
                value = check(item)
            except ValueError as why:
                raise PydanticCustomError("value", "{why}", {"why": str(why), **place}) from None
            if value in out:
                raise PydanticCustomError("value", "{why}", {"why": f"{values.spell(value)} stands here twice", **place})
            out[value] = None
        return tuple(out)

    return BeforeValidator(parse)


def _real(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{values.spell(value)} is not a finite number")
    return float(value)


def _one(check: Callable[[Any], Any]) -> BeforeValidator:
    def parse(given: Any) -> Any:
        try:
            return check(given)
        except ValueError as why:
            raise PydanticCustomError("value", "{why}", {"why": str(why)}) from None

    return BeforeValidator(parse)


def _list_schema(item: dict[str, Any]) -> WithJsonSchema:
    array = {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}
    return WithJsonSchema({"anyOf": [item, array]})


_LATTICE_ITEM = {
    "anyOf": [
        {"type": "string", "pattern": r"^[0-9]{1,6}(x[0-9]{1,6}){3}$"},
        {"type": "array", "items": {"type": "integer", "minimum": 2}, "minItems": 4, "maxItems": 4},
    ]
}
_COUNT_ITEM = {"type": "integer", "minimum": 1}

Operators = Annotated[tuple[str, ...], _one_or_many(values.operator), _list_schema({"type": "string", "enum": list(OPERATORS)})]
Lattices = Annotated[tuple[Extents, ...], _one_or_many(values.lattice), _list_schema(_LATTICE_ITEM)]
Dtypes = Annotated[tuple[str, ...], _one_or_many(values.dtype), _list_schema({"type": "string", "enum": list(DTYPES)})]
_STORAGE_ITEM = {"type": "string", "enum": list(values.STORAGES)}
Storages = Annotated[tuple[str, ...], _one_or_many(values.storage), _list_schema(_STORAGE_ITEM)]
Counts = Annotated[tuple[int, ...], _one_or_many(values.count), _list_schema(_COUNT_ITEM)]
Fused = Annotated[tuple[bool | str, ...], _one_or_many(values.fused), _list_schema({"enum": [True, False, "auto"]})]
Shards = Annotated[tuple[int | str, ...], _one_or_many(values.shards), _list_schema({"anyOf": [_COUNT_ITEM, {"const": "auto"}]})]
Targets = Annotated[tuple[str, ...], _one_or_many(values.target), _list_schema({"type": "string", "enum": list(TARGETS)})]
Reals = Annotated[tuple[float, ...], _one_or_many(_real), _list_schema({"type": "number"})]
Seconds = Annotated[
    float, _one(values.seconds), WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? *(ms|s|min|h)$"})
]
Bytes = Annotated[
    int,
    _one(values.memory),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? *(B|kB|MB|GB|KiB|MiB|GiB|TiB)$"}),
]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Axes(_Table):
    """The product of variants. Each axis is one value or an array of values."""

    operator: Operators = Field(description="operators, observables and gauge maps")
    lattice: Lattices = Field(description='extents in the order T, Z, Y, X: "16x8x8x8" or [16, 8, 8, 8]')
    dtype: Dtypes = Field(description="type of arithmetic")
    storage: Storages = Field(
        default=(values.AS_COMPUTED,),
        description='storage of links and vectors (Dirac operators and solvers on a CPU only): "dtype", "float16", "bfloat16", '
        '"float32_12", "float64_12"',
    )
    batch: Counts = Field(default=(1,), description="right-hand sides per call (Dirac operators only)")
    fused: Fused = Field(
        default=(False,), description='per-site spin-colour blocks (Dirac operators only); "auto": where they fit, by an estimate'
    )
    shards: Shards = Field(
        default=(1,),
        description='slabs of T (Dirac operators and their builders only); "auto": as few as fit, by an estimate',
    )
    iterations: Counts = Field(
        default=(0,),
        description="iterations per call (solver chunks only, which need it)",
        json_schema_extra={"default": None},
    )
    target: Targets = Field(description="machines to build for")


class Rule(_Table):
    """Values of some axes: an exclude drops what matches all of them, an include adds their product."""

    operator: Operators | None = None
    lattice: Lattices | None = None
    dtype: Dtypes | None = None
    storage: Storages | None = None
    batch: Counts | None = None
    fused: Fused | None = None
    shards: Shards | None = None
    iterations: Counts | None = None
    target: Targets | None = None

    def given(self) -> dict[str, tuple[Any, ...]]:
        """The axes this rule names."""
        return {axis: getattr(self, axis) for axis in AXIS_NAMES if getattr(self, axis) is not None}


class Constants(_Table):
    """Whether mass, csw and mu are run-time inputs ("external") or compiled in ("baked")."""

    policy: Literal["external", "baked"] = "external"
    mass: Reals | None = Field(default=None, description="bare masses to bake")
    kappa: Reals | None = Field(default=None, description="the same as mass = 1/(2 kappa) - 4")
    csw: Reals | None = Field(default=None, description="clover coefficients to bake")
    mu: Reals | None = Field(default=None, description="twisted masses to bake")


class Build(_Table):
    """Parameters of the build. Quantities carry their unit."""

    timeout: Seconds = Field(
        default=DEFAULT_TIMEOUT_S,
        description='time one compile may take, e.g. "120 s"',
        json_schema_extra={"default": f"{DEFAULT_TIMEOUT_S:g} s"},
    )
    memory: Bytes = Field(
        default=DEFAULT_MEMORY_BYTES,
        description='memory to reserve for one compile, e.g. "2 GiB"',
        json_schema_extra={"default": f"{DEFAULT_MEMORY_BYTES // 2**30} GiB"},
    )
    salt: str = Field(default="", description="any text; a new one disowns everything built before")


class Recipe(_Table):
    """A whole recipe file. Made by load.load; expanded by expand.expand."""

    schema_: Literal[1] = Field(alias="schema", description="version of this grammar")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", description="lower case, digits, dot, dash, underscore")
    description: str = Field(default="", description="one sentence for people")
    axes: Axes
    constants: Constants = Field(default=Constants(), json_schema_extra={"default": {}})
    exclude: list[Rule] = Field(default=[], description="drop variants of [axes] that match every entry of one table")
    include: list[Rule] = Field(default=[], description="add a product; axes not named take the values of [axes]")
    build: Build = Field(default=Build(), json_schema_extra={"default": {}})

    _path: str = PrivateAttr("")
    _sha256: str = PrivateAttr("")
    _text: str = PrivateAttr("")

    @property
    def path(self) -> str:
        """The file as the caller named it."""
        return self._path

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes; a bundle's manifest names it."""
        return self._sha256


AXIS_NAMES = tuple(Axes.model_fields)


def recipe_json_schema() -> dict[str, Any]:
    """The JSON Schema of a recipe, for editors (recipes/recipe.schema.json is this, spelled out)."""
    schema = _without_null(Recipe.model_json_schema(by_alias=True))
    return {"$schema": SCHEMA_URL, "title": "lqcd-aot recipe", **{k: v for k, v in schema.items() if k != "title"}}


def _without_null(node: Any) -> Any:
    """A schema without the null that stands for an absent key: TOML has none, and an editor would offer it."""
    if isinstance(node, list):
        return [_without_null(item) for item in node if item != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    kept = {k: _without_null(v) for k, v in node.items() if not (k == "default" and v is None)}
    only = kept.get("anyOf", ())
    return {**{k: v for k, v in kept.items() if k != "anyOf"}, **only[0]} if len(only) == 1 else kept
