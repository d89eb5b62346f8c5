"""torch.export graph -> HLO nodes. Shapes are inferred here, not read from the graph.

Owns the table of aten operators; one that is not in it is refused by name. A graph holds no extents (open slices, no reshape to
given sizes), so one exported at a small template lattice is emitted at any lattice, batch and dtype. Arithmetic is float32:
bfloat16 operands are widened on entry and results rounded at the end; only the operands of dots are rounded to `dot_dtype`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lqcd_aot.program.hlo.graph import Graph, Node
from lqcd_runtime.errors import UsageError

Table = dict[str, Callable[..., Any]]


class Emitter:
    """Emits exported graphs into one Graph. dot_dtype: element type to which the operands of dots are rounded."""

    def __init__(self, graph: Graph, dot_dtype: str = "float32") -> None:
        self.graph, self.dot_dtype = graph, dot_dtype
        self.table: Table = {
            "aten.slice.Tensor": self._slice,
            "aten.select.int": self._select,
            "aten.cat.default": self._cat,
            "aten.stack.default": self._stack,
            "aten.unsqueeze.default": self._unsqueeze,
            "aten.permute.default": lambda x, order: graph.transpose(x, [_axis(i, len(x.shape)) for i in order]),
            "aten.neg.default": graph.negate,
            "aten.add.Tensor": lambda a, b, alpha=1: self._scaled("add", a, b, alpha),
            "aten.sub.Tensor": lambda a, b, alpha=1: self._scaled("subtract", a, b, alpha),
            "aten.rsub.Scalar": lambda a, b, alpha=1: self._scaled("subtract", b, a, alpha),
            "aten.mul.Tensor": lambda a, b: self._binary("multiply", a, b),
            "aten.div.Tensor": lambda a, b: self._binary("divide", a, b),
            "aten.sum.dim_IntList": self._sum,
            "aten.gt.Tensor": lambda a, b: graph.greater(a, b),
            "aten.gt.Scalar": lambda a, b: graph.greater(a, graph.constant(b)),
            "aten.where.self": graph.select,
            "aten.where.ScalarOther": lambda c, a, b: graph.select(c, a, graph.constant(b)),
            "aten.where.ScalarSelf": lambda c, a, b: graph.select(c, graph.constant(a), b),
            "aten.zeros_like.default": lambda x, **_: graph.broadcast(graph.constant(0.0), x.shape),
            "aten.matmul.default": self._matmul,
        }

    def run(self, exported: Any, operands: Sequence[Node]) -> list[Node]:
        """The results of a torch.export.ExportedProgram applied to operands in the order of its arguments.

        Errors: UsageError naming every operator that has no lowering, or a tensor that is no argument.
        """
        _refuse_unknown(exported, self.table)
        values: dict[Any, Any] = {}
        given = iter(operands)
        for node in exported.graph.nodes:
            if node.op == "placeholder":
                values[node] = self._widened(next(given))
            elif node.op == "call_function":
                args = [_value(a, values) for a in node.args]
                kwargs = {k: _value(v, values) for k, v in node.kwargs.items() if k not in _IGNORED}
                values[node] = self.table[str(node.target)](*args, **kwargs)
            else:
                return [_value(r, values) for r in node.args[0]]
        raise AssertionError("a graph without an output")

    def _widened(self, node: Node) -> Node:
        return self.graph.convert(node, "float32") if node.dtype == "bfloat16" else node

    def _binary(self, opcode: str, a: Any, b: Any) -> Node:
        return self.graph.binary(opcode, self._node(a), self._node(b))

    def _node(self, value: Any) -> Node:
        return value if isinstance(value, Node) else self.graph.constant(value)

    def _scaled(self, opcode: str, a: Any, b: Any, alpha: float) -> Node:
        return self._binary(opcode, a, b if alpha == 1 else self._binary("multiply", b, alpha))

    def _slice(self, x: Node, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Node:
        axis = _axis(axis, len(x.shape))
        first, limit, stride = slice(start, end, step).indices(x.shape[axis])
        return self.graph.slice(x, axis, first, limit, stride)

    def _select(self, x: Node, axis: int, index: int) -> Node:
        axis = _axis(axis, len(x.shape))
        at = _axis(index, x.shape[axis])
        return self.graph.reshape(self.graph.slice(x, axis, at, at + 1), [*x.shape[:axis], *x.shape[axis + 1 :]])

    def _cat(self, parts: Sequence[Node], axis: int = 0) -> Node:
        return self.graph.concatenate(parts, _axis(axis, len(parts[0].shape)))

    def _stack(self, parts: Sequence[Node], axis: int = 0) -> Node:
        return self.graph.concatenate([self._unsqueeze(p, axis) for p in parts], _axis(axis, len(parts[0].shape) + 1))

    def _unsqueeze(self, x: Node, axis: int) -> Node:
        axis = _axis(axis, len(x.shape) + 1)
        return self.graph.reshape(x, [*x.shape[:axis], 1, *x.shape[axis:]])

    def _sum(self, x: Node, axes: Sequence[int], keepdim: bool = False) -> Node:
        assert not keepdim
        return self.graph.reduce_sum(x, [_axis(a, len(x.shape)) for a in axes])

    def _matmul(self, a: Node, b: Node) -> Node:
        """Matrices over equal leading axes, as one batched dot."""
        lead = a.shape[:-2]
        assert b.shape[:-2] == lead
        count = 1
        for n in lead:
            count *= n
        narrow = [self.graph.convert(x, self.dot_dtype) for x in (a, b)]
        flat = [self.graph.reshape(x, [count, *x.shape[-2:]]) for x in narrow]
        out = self.graph.dot(flat[0], flat[1])
        return self.graph.reshape(out, [*lead, *out.shape[-2:]])


_IGNORED = ("dtype", "layout", "device", "pin_memory", "memory_format")


def _axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def _value(argument: Any, values: Mapping[Any, Any]) -> Any:
    if isinstance(argument, (list, tuple)):
        return [_value(a, values) for a in argument]
    return values[argument] if hasattr(argument, "op") else argument


def _refuse_unknown(exported: Any, table: Table) -> None:
    nodes = exported.graph.nodes
    unknown = sorted({str(n.target) for n in nodes if n.op == "call_function" and str(n.target) not in table})
    if unknown:
        raise UsageError(
            "lowering: the module uses operators without a lowering", details=unknown, expected=", ".join(sorted(table)),
            hint="write the module with slices, concatenations, arithmetic, sums and matmul",
        )  # fmt: skip
    foreign = sorted(n.target for n in nodes if n.op == "get_attr") + sorted(
        s.target for s in exported.graph_signature.input_specs if s.target is not None
    )
    if foreign:
        raise UsageError(
            "lowering: the module holds tensors of its own", details=foreign, expected="every field an argument of forward",
            hint="pass gauge links, blocks and scalars as arguments: one program serves all of them",
        )  # fmt: skip
