"""Spec -> canonical HLO: export the torch module once per structure, emit it at the spec's extents and dtype.

Owns the template lattice, the constants, the unrolling of solver chunks. Loads torch; called through `variant.program_for` only
when no cached program is there.
"""

from __future__ import annotations

import threading
from typing import Any

import torch

from lqcd_aot.program.hlo.canonical import serialise
from lqcd_aot.program.hlo.emit import Emitter
from lqcd_aot.program.hlo.graph import Graph, Node
from lqcd_aot.program.hlo.modules.table import Structure, module_for, structure
from lqcd_runtime.signature import Spec
from lqcd_runtime.split_binding import CHECKERBOARD, binding, layout

# Extents that differ from each other and from every other axis length, so that a mistaken axis is an error of shapes.
TEMPLATE, TEMPLATE_SHARDS, TEMPLATE_BATCH = (14, 10, 8, 22), 2, 5

_exported: dict[Structure, Any] = {}
_lock = threading.Lock()


def lower(spec: Spec) -> bytes:
    """Canonical HloModuleProto bytes of a spec. Errors: UsageError for an operator without a lowering."""
    bound = binding(spec)
    graph = Graph()
    emitter = Emitter(graph, spec.dtype)
    parameters = [graph.parameter(p["number"], p["dtype"], p["shape"]) for p in bound["parameters"]]
    fields = {p["name"]: node for p, node in zip(bound["parameters"], parameters, strict=True)}
    fields |= constants(graph, spec)
    exported = exported_module(spec)
    arguments, names = tuple(fields), [r["name"] for r in bound["results"]]
    for _ in range(max(spec.iterations, 1)):
        results = emitter.run(exported, [fields[name] for name in arguments])
        fields |= dict(zip(names, results, strict=True))
    finished = [graph.convert(fields[r["name"]], r["dtype"]) for r in bound["results"]]
    shapes = [list(node.shape) for node in finished]
    assert shapes == [r["shape"] for r in bound["results"]], (spec.name, shapes)
    return serialise(parameters, graph.results(finished), bound["aliases"])


def constants(graph: Graph, spec: Spec) -> dict[str, Node]:
    """Operands that are no parameters: signs of the rows of a checkerboard, the counter of a chunk."""
    out = {}
    if layout(spec) == CHECKERBOARD:
        for name, extent in zip(("rows_t", "rows_z", "rows_y"), spec.lattice, strict=False):
            out[name] = graph.constant([1.0 - 2.0 * (n % 2) for n in range(extent)])
    if spec.kind == "chunk":
        out["steps"] = graph.broadcast(graph.constant(0.0), [spec.batch])
    return out


def exported_module(spec: Spec) -> Any:
    """The torch.export graph of a spec's structure, made once a process on the meta device."""
    with _lock:
        key = structure(spec)
        if key not in _exported:
            _exported[key] = export(template(spec))
        return _exported[key]


def template(spec: Spec) -> Spec:
    """The spec of the same structure on the template lattice; itself where the structure holds the lattice."""
    if structure(spec)[-1] is not None:
        return spec
    batched = spec.kind in ("dirac", "chunk")
    return spec.replace(
        lattice=TEMPLATE, dtype="float32", shards=TEMPLATE_SHARDS if spec.shards > 1 else 1,
        batch=TEMPLATE_BATCH if batched else 1, iterations=min(spec.iterations, 1),
    )  # fmt: skip


def export(spec: Spec) -> Any:
    """torch.export of a spec's module at the spec's own extents."""
    fields = {p["name"]: _meta(p["shape"]) for p in binding(spec)["parameters"]}
    fields |= {name: _meta(node.shape) for name, node in constants(Graph(), spec).items()}
    module = _Named(module_for(spec), tuple(fields))
    # One process exports the same text with the same result; strict mode would trace bytecode, which is not needed here.
    return torch.export.export(module, tuple(fields.values()), strict=False)


def _meta(shape: Any) -> torch.Tensor:
    return torch.empty(tuple(shape), dtype=torch.float32, device="meta")


class _Named(torch.nn.Module):
    """A module over keyword fields as one over positional arguments, in the order of `names`."""

    def __init__(self, inner: torch.nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.inner, self.names = inner, names

    def forward(self, *fields: torch.Tensor) -> Any:
        return self.inner(**dict(zip(self.names, fields, strict=True)))
