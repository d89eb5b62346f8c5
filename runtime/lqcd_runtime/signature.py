"""What a user asks for: `Spec`, its key, its readable name, and the table of operators.

Owns: the list of operators with their kind and run-time inputs, the spec's canonical form, `spec_key`. A spec says nothing of
targets or compilers: one spec has one artifact per target. Every attribute is in the key (tests/properties flips each).
"""

from __future__ import annotations

from lqcd_runtime.digest import tagged_sha256
from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import format_extents, parse_extents
from lqcd_runtime.scalars import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lqcd_runtime.geometry import Extents

SPEC_TAG = "lqcd-aot/spec/v1"
DTYPES = {"float32": "f32", "float64": "f64", "bfloat16": "bf16"}
# What the arithmetic of each kind of machine offers; a CPU has no bfloat16 templates, a NeuronCore no double precision.
CPU_DTYPES = ("float32", "float64")
NEURON_DTYPES = ("float32", "bfloat16")
# How a CPU artifact may store links and spinors beside what it computes in, for Dirac operators and solvers: halves, or links
# without their third row.
HALVES = ("float16", "bfloat16")
TWO_ROWS = {"float32": "float32_12", "float64": "float64_12"}
CPU_STORAGES = {"float32": ("float32", *HALVES, TWO_ROWS["float32"]), "float64": ("float64", TWO_ROWS["float64"])}
STORED_KINDS = ("dirac", "solver")
EXTERNAL = "external"

# kind: how the runtime calls the artifact (artifacts/README.md, "Entry points").
#   dirac       packed links + packed spinors -> packed spinors; scalars: [diagonal, csw, mu]
#   builder     links -> packed fused blocks for a fused dirac artifact
#   observable  links -> a few float64 numbers
#   gauge_map   links -> links
#   solver      packed links + a solver's packed vectors -> the same some iterations later; compiled for a CPU
#   chunk       solver state -> solver state after `iterations` iterations; the operator is inside
# inputs: the run-time inputs a caller may pass, in order; results: the names of what an observable returns.
# `solves`: the system of a solver, by the word of its forward operator; `method`: its algorithm.
# `parity` is "even" for operators that live on even sites of the full-lattice array (odd sites are zero).
OPERATORS: dict[str, dict[str, Any]] = {
    "wilson_hop": {"kind": "dirac", "inputs": (), "parity": "full"},
    "wilson": {"kind": "dirac", "inputs": ("mass",), "parity": "full"},
    "wilson_dagger": {"kind": "dirac", "inputs": ("mass",), "parity": "full"},
    "wilson_normal": {"kind": "dirac", "inputs": ("mass",), "parity": "full"},
    "clover": {"kind": "dirac", "inputs": ("mass", "csw"), "parity": "full"},
    "clover_dagger": {"kind": "dirac", "inputs": ("mass", "csw"), "parity": "full"},
    "clover_normal": {"kind": "dirac", "inputs": ("mass", "csw"), "parity": "full"},
    "twisted": {"kind": "dirac", "inputs": ("mass", "mu"), "parity": "full"},
    "twisted_dagger": {"kind": "dirac", "inputs": ("mass", "mu"), "parity": "full"},
    "twisted_normal": {"kind": "dirac", "inputs": ("mass", "mu"), "parity": "full"},
    "wilson_schur": {"kind": "dirac", "inputs": ("mass",), "parity": "even"},
    "wilson_schur_dagger": {"kind": "dirac", "inputs": ("mass",), "parity": "even"},
    "wilson_schur_normal": {"kind": "dirac", "inputs": ("mass",), "parity": "even"},
    "clover_schur": {"kind": "dirac", "inputs": ("mass", "csw"), "parity": "even"},
    "clover_schur_dagger": {"kind": "dirac", "inputs": ("mass", "csw"), "parity": "even"},
    "clover_schur_normal": {"kind": "dirac", "inputs": ("mass", "csw"), "parity": "even"},
    "wilson_cg_chunk": {"kind": "chunk", "inputs": ("mass",), "parity": "full", "solves": "wilson_normal"},
    "wilson_schur_cg_chunk": {"kind": "chunk", "inputs": ("mass",), "parity": "even", "solves": "wilson_schur_normal"},
    **{
        f"{system}_{method}": {"kind": "solver", "inputs": inputs, "parity": parity, "solves": system, "method": method}
        for system, inputs, parity in (
            ("wilson", ("mass",), "full"),
            ("wilson_schur", ("mass",), "even"),
            ("clover", ("mass", "csw"), "full"),
            ("twisted", ("mass", "mu"), "full"),
            ("clover_schur", ("mass", "csw"), "even"),
        )
        for method in ("cg", "bicgstab")
    },
    "wilson_blocks": {"kind": "builder", "inputs": (), "parity": "full"},
    "plaquette": {
        "kind": "observable",
        "inputs": (),
        "results": ("plane_TZ", "plane_TY", "plane_TX", "plane_ZY", "plane_ZX", "plane_YX"),
    },
    "wilson_action": {"kind": "observable", "inputs": ("beta",), "results": ("wilson_action",)},
    "polyakov_loop": {
        "kind": "observable",
        "inputs": (),
        "results": ("T_re", "T_im", "Z_re", "Z_im", "Y_re", "Y_im", "X_re", "X_im"),
    },
    "topological_charge": {"kind": "observable", "inputs": (), "results": ("topological_charge",)},
    "energy_density": {"kind": "observable", "inputs": (), "results": ("energy_density",)},
    "wilson_flow_step": {"kind": "gauge_map", "inputs": ("epsilon",)},
    "stout_smear": {"kind": "gauge_map", "inputs": ("rho",)},
}


def kind_of(operator: str) -> str:
    """The calling kind of an operator. Errors: UsageError for a name not in the table, with the nearest."""
    if operator not in OPERATORS:
        raise UsageError(f"operator {operator!r}: is not known{suggest(operator, OPERATORS)}", expected=", ".join(OPERATORS))
    kind: str = OPERATORS[operator]["kind"]
    return kind


def suggest(word: str, known: Any) -> str:
    """', did you mean ...?' or an empty string."""
    import difflib

    near = difflib.get_close_matches(str(word), [str(k) for k in known], n=1, cutoff=0.6)
    return f", did you mean {near[0]!r}?" if near else ""


class Spec:
    """One thing a user can ask for. Immutable, hashable, compared by value.

    operator: a name of OPERATORS; lattice: (T,Z,Y,X); dtype: arithmetic; storage: of links and spinors in the artifact;
    batch: right-hand sides per call; fused: per-site spin-colour blocks; shards: T slabs; nc: colours;
    constants: "external", or "baked:<sha256 of the baked values>" with the values themselves in `baked`.
    For observables, builders and gauge maps batch is 1. iterations: of a solver chunk, per call; 0 for every other kind.
    """

    operator: str
    lattice: Extents
    dtype: str
    storage: str
    batch: int
    fused: bool
    shards: int
    nc: int
    constants: str
    baked: tuple[tuple[str, float], ...]
    iterations: int

    __slots__ = (
        "baked", "batch", "constants", "dtype", "fused", "iterations", "lattice", "nc", "operator", "shards", "storage"
    )  # fmt: skip

    FIELDS = ("operator", "lattice", "dtype", "storage", "batch", "fused", "shards", "nc", "iterations", "constants")

    def __init__(
        self,
        operator: str,
        lattice: Any,
        dtype: str = "float64",
        *,
        storage: str | None = None,
        batch: int = 1,
        fused: bool = False,
        shards: int = 1,
        nc: int = 3,
        iterations: int = 0,
        baked: dict[str, float] | None = None,
    ) -> None:
        kind = kind_of(operator)
        put = object.__setattr__
        put(self, "operator", operator)
        put(self, "lattice", parse_extents(lattice))
        if dtype not in DTYPES:
            raise UsageError(f"dtype {dtype!r}: is not known{suggest(dtype, DTYPES)}", expected=", ".join(DTYPES))
        put(self, "dtype", dtype)
        put(self, "storage", storage or dtype)
        put(self, "batch", whole(batch, "batch", None))
        if type(fused) is not bool:
            raise UsageError("fused: is neither True nor False", found=repr(fused))
        put(self, "fused", fused)
        put(self, "shards", whole(shards, "shards", None))
        put(self, "nc", whole(nc, "nc", None))
        put(self, "iterations", whole(iterations, "iterations", None))
        if (self.iterations > 0) != (kind == "chunk") or self.iterations < 0:
            raise UsageError(
                f"operator {operator}: {self.iterations} iterations do not fit its kind",
                expected="iterations >= 1 for a solver chunk, 0 for everything else",
                found=f"kind {kind}, iterations = {self.iterations}",
            )
        values = {k: float(v) for k, v in sorted(baked.items())} if baked else {}
        put(self, "baked", tuple(values.items()))
        put(self, "constants", baked_constants(values))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Spec is immutable (tried to set {name})")

    def as_dict(self) -> dict[str, Any]:
        """The canonical form: what is hashed, stored in records and shown by `why` and `diff`."""
        from lqcd_runtime.digest import hex_float

        return {
            "operator": self.operator, "lattice": list(self.lattice), "dtype": self.dtype, "storage": self.storage,
            "batch": self.batch, "fused": self.fused, "shards": self.shards, "nc": self.nc, "iterations": self.iterations,
            "constants": self.constants, "baked": {k: hex_float(v) for k, v in self.baked},
        }  # fmt: skip

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> Spec:
        """Inverse of `as_dict`. Errors: UsageError, KeyError or TypeError where the dictionary is not one of ours."""
        try:
            baked = {k: float.fromhex(v) for k, v in d["baked"].items()}
            spec = cls(
                d["operator"], d["lattice"], d["dtype"], storage=d["storage"], batch=d["batch"], fused=d["fused"],
                shards=d["shards"], nc=d["nc"], iterations=d["iterations"], baked=baked,
            )  # fmt: skip
        except (AttributeError, OverflowError) as err:  # a text for a table, infinity for an integer
            raise UsageError("spec: has members of the wrong kind", found=f"{type(err).__name__}: {err}") from err
        if spec.as_dict() != d:
            raise UsageError("spec: does not survive a round trip", expected=spec.as_dict(), found=d)
        return spec

    def replace(self, **changes: Any) -> Spec:
        """A copy with some attributes changed. A new dtype takes storage with it unless storage is named too."""
        now = {name: getattr(self, name) for name in self.FIELDS if name != "constants"}
        now["baked"] = dict(self.baked)
        if "dtype" in changes and "storage" not in changes and now["storage"] == now["dtype"]:
            now["storage"] = changes["dtype"]
        now.update(changes)
        return Spec(now.pop("operator"), now.pop("lattice"), now.pop("dtype"), **now)

    @property
    def kind(self) -> str:
        return kind_of(self.operator)

    @property
    def key(self) -> str:
        """spec_key: SHA-256 of the canonical form under its domain tag, 64 hex digits."""
        return tagged_sha256(SPEC_TAG, self.as_dict())

    @property
    def name(self) -> str:
        """Readable, unique within a recipe: wilson-8x4x4x4-f64-b12-fused-s2, wilson_cg_chunk-8x4x4x4-f32-b1-k8."""
        parts = [self.operator, format_extents(self.lattice), DTYPES[self.dtype]]
        if self.storage != self.dtype:
            parts.append(f"store.{self.storage}")
        if self.kind in ("dirac", "solver", "chunk"):
            parts.append(f"b{self.batch}")
        if self.fused:
            parts.append("fused")
        if self.shards != 1:
            parts.append(f"s{self.shards}")
        if self.iterations:
            parts.append(f"k{self.iterations}")
        if self.nc != 3:
            parts.append(f"nc{self.nc}")
        parts += [f"{k}.{v!r}" for k, v in self.baked]
        return "-".join(parts)

    def differs(self, other: Spec) -> dict[str, tuple[Any, Any]]:
        """{field: (mine, theirs)} for every differing field: the explanation of a miss."""
        a, b = self.as_dict(), other.as_dict()
        return {k: (a[k], b[k]) for k in a if a[k] != b[k]}

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Spec) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        shape = (self.batch, self.fused, self.shards, self.iterations)
        return hash((self.operator, self.lattice, self.dtype, self.storage, shape, self.baked))

    def __repr__(self) -> str:
        return f"Spec({self.name})"


def baked_constants(values: dict[str, float]) -> str:
    """The `constants` attribute for baked values: "external" when there are none, else "baked:<sha256>"."""
    from lqcd_runtime.digest import hex_float

    if not values:
        return EXTERNAL
    return "baked:" + tagged_sha256("lqcd-aot/baked/v1", {k: hex_float(v) for k, v in values.items()})
