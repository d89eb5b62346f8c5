"""The binding of an HLO program: which parameter and which result is which logical array. Read from `entry["binding"]`.

    {"parameters": [{"number", "name", "shape", "dtype", "role"}], "results": [{"name", "shape", "dtype", "role"}],
     "aliases": [[result, parameter], ...], "layout": "..."}

roles: "input" changes with every call; "scalar" is a number; "resident" is written once (links, blocks); "state" stays on the
device between calls, and its result is aliased with the parameter; results are "output", "partial" or "state". Owns the checks
and the names of a NEFF's tensors. What makes a binding is split_binding; here any binding is read, of whatever release.
"""

from __future__ import annotations

from lqcd_runtime.errors import CorruptError, EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.manifest import Entry

ROLES = ("input", "scalar", "resident", "state", "output", "partial")
BYTES = {"float32": 4, "bfloat16": 2, "float64": 8, "int32": 4, "uint32": 4, "uint8": 1, "bool": 1}


class Slot:
    """A parameter or result: number in its list, name, shape, dtype (a word of BYTES), role."""

    __slots__ = ("dtype", "name", "number", "role", "shape")

    def __init__(self, number: int, raw: dict[str, Any]) -> None:
        self.number = number
        self.name: str = raw["name"]
        self.shape = tuple(int(n) for n in raw["shape"])
        self.dtype: str = raw["dtype"]
        self.role: str = raw.get("role", "output")
        if not isinstance(self.name, str) or self.dtype not in BYTES or self.role not in ROLES or min(self.shape, default=1) < 1:
            raise ValueError(f"{self.name!r}: {self.dtype} {self.shape} {self.role}")

    @property
    def nbytes(self) -> int:
        size = BYTES[self.dtype]
        for extent in self.shape:
            size *= extent
        return size

    @property
    def numpy_dtype(self) -> str:
        """Name of the numpy dtype that carries it; bfloat16 travels as its bits."""
        return "uint16" if self.dtype == "bfloat16" else self.dtype


class Binding:
    """parameters, results: Slots in order; aliases: {result name: parameter name}; layout: word for the layout of fields."""

    __slots__ = ("aliases", "layout", "parameters", "results")

    def __init__(self, raw: dict[str, Any], where: str) -> None:
        """Errors: CorruptError for what is no binding."""
        try:
            listed = sorted(raw["parameters"], key=lambda p: int(p["number"]))
            self.parameters = [Slot(int(p["number"]), p) for p in listed]
            self.results = [Slot(i, r) for i, r in enumerate(raw["results"])]
            pairs = [(int(r), int(p)) for r, p in raw.get("aliases", [])]
            self.aliases = {self.results[r].name: self.parameters[p].name for r, p in pairs}
            self.layout = str(raw.get("layout", ""))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as err:
            raise CorruptError(f"{where}: its binding cannot be read", found=f"{type(err).__name__}: {err}") from err
        if [p.number for p in self.parameters] != list(range(len(self.parameters))) or not self.results:
            raise CorruptError(f"{where}: its binding does not number its parameters", found=[p.number for p in self.parameters])
        for slots in (self.parameters, self.results):
            if len({s.name for s in slots}) != len(slots):
                raise CorruptError(f"{where}: its binding names two arrays alike", found=[s.name for s in slots])
        states = {s.name for s in self.parameters if s.role == "state"}
        if states != set(self.aliases.values()):
            raise CorruptError(f"{where}: its state is not aliased", expected=sorted(states), found=sorted(self.aliases.values()))

    @classmethod
    def of(cls, entry: Entry) -> Binding:
        """Errors: CorruptError where the entry has none."""
        raw = entry.as_dict().get("binding")
        if not isinstance(raw, dict):
            raise CorruptError(f"artifact {entry.name}: has no binding", hint="build it again")
        return cls(raw, f"artifact {entry.name}")

    def named(self, *roles: str) -> list[Slot]:
        """Parameters of these roles."""
        return [p for p in self.parameters if p.role in roles]


def tensor_names(binding: Binding, table: dict[tuple[int, str], int] | None, where: str) -> tuple[dict[str, str], dict[str, str]]:
    """({parameter: NEFF tensor name}, {result: NEFF tensor name}).

    table: {(0 input or 1 output, tensor name): bytes} as the runtime tells it, None where it cannot. A NEFF either keeps our
    names or calls its tensors input0, input1, ... and output0, ...; its order is never trusted. Which of both neuronx-cc does for
    a program of ours has not been seen. Errors: EngineError where neither fits.
    """
    out: list[dict[str, str]] = []
    for usage, slots, word in ((0, binding.parameters, "input"), (1, binding.results, "output")):
        numbered = {s.name: f"{word}{s.number}" for s in slots}
        if table is None:
            out.append(numbered)
            continue
        sizes = {name: size for (use, name), size in table.items() if use == usage}
        for names in ({s.name: s.name for s in slots}, numbered):
            if {names[s.name]: s.nbytes for s in slots} == sizes:
                out.append(names)
                break
        else:
            raise EngineError(
                f"{where}: its {word} tensors are not those of its binding",
                expected=", ".join(f"{s.name} or {word}{s.number}: {s.nbytes}" for s in slots),
                found=", ".join(f"{name}: {size}" for name, size in sorted(sizes.items())) or "none",
            )  # fmt: skip
    return out[0], out[1]
