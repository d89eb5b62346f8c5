"""HLO instructions as values: made with their shape inferred, each distinct one once, trivial ones not at all.

Owns the instruction set of our programs (all of it is on AWS's published operator list) and the rules of their shapes. Knows no
torch, no protobuf, no physics. A wrong shape here is a mistake of ours, not of a user, hence AssertionError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Shape = tuple[int, ...]


class Node:
    """One instruction: opcode, element type, shape, operands, attributes ((name, value) pairs)."""

    __slots__ = ("attributes", "dtype", "opcode", "operands", "shape")

    def __init__(self, opcode: str, dtype: str, shape: Shape, operands: tuple[Node, ...], attributes: tuple[Any, ...]) -> None:
        self.opcode, self.dtype, self.shape, self.operands, self.attributes = opcode, dtype, shape, operands, attributes

    def __getitem__(self, name: str) -> Any:
        return dict(self.attributes)[name]

    def __repr__(self) -> str:
        return f"{self.opcode} {self.dtype}{list(self.shape)}"


class Graph:
    """Makes nodes; equal instructions over equal operands are one node, so repetitions in the source cost nothing."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Node] = {}

    def _make(self, opcode: str, dtype: str, shape: Sequence[int], operands: Sequence[Node] = (), **attributes: Any) -> Node:
        pairs = tuple(attributes.items())
        key = (opcode, dtype, tuple(shape), tuple(map(id, operands)), pairs)
        if key not in self._known:
            self._known[key] = Node(opcode, dtype, tuple(shape), tuple(operands), pairs)
        return self._known[key]

    def parameter(self, number: int, dtype: str, shape: Sequence[int]) -> Node:
        """Parameter `number` of the program."""
        return self._make("parameter", dtype, shape, number=number)

    def constant(self, values: Sequence[float] | float) -> Node:
        """A float32 number, or vector of numbers."""
        flat = (float(values),) if isinstance(values, (int, float)) else tuple(float(v) for v in values)
        return self._make("constant", "float32", () if isinstance(values, (int, float)) else (len(flat),), values=flat)

    def reshape(self, x: Node, shape: Sequence[int]) -> Node:
        """The same elements in C order under another shape."""
        assert math.prod(shape) == math.prod(x.shape), (x, shape)
        while x.opcode == "reshape":
            x = x.operands[0]
        return x if x.shape == tuple(shape) else self._make("reshape", x.dtype, shape, [x])

    def broadcast(self, x: Node, shape: Sequence[int]) -> Node:
        """x repeated to `shape` by the rules of numpy."""
        if x.shape == tuple(shape):
            return x
        lead = len(shape) - len(x.shape)
        kept = [i for i, n in enumerate(x.shape) if n != 1]
        assert lead >= 0 and all(x.shape[i] == shape[lead + i] for i in kept), (x, shape)
        dense = self.reshape(x, [x.shape[i] for i in kept])
        return self._make("broadcast", x.dtype, shape, [dense], dimensions=tuple(lead + i for i in kept))

    def slice(self, x: Node, axis: int, start: int, limit: int, stride: int = 1) -> Node:
        """x[start:limit:stride] along one axis."""
        assert 0 <= start < limit <= x.shape[axis] and stride >= 1, (x, axis, start, limit, stride)
        if (start, limit, stride) == (0, x.shape[axis], 1):
            return x
        ranges = tuple((start, limit, stride) if i == axis else (0, n, 1) for i, n in enumerate(x.shape))
        return self._make("slice", x.dtype, [-((s - e) // k) for s, e, k in ranges], [x], ranges=ranges)

    def concatenate(self, parts: Sequence[Node], axis: int) -> Node:
        """Parts joined along an axis."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        assert len({(p.dtype, p.shape[:axis], p.shape[axis + 1 :]) for p in parts}) == 1, parts
        shape = [*first.shape[:axis], sum(p.shape[axis] for p in parts), *first.shape[axis + 1 :]]
        return self._make("concatenate", first.dtype, shape, parts, dimensions=(axis,))

    def transpose(self, x: Node, order: Sequence[int]) -> Node:
        """Axis i of the result is axis order[i] of x."""
        assert sorted(order) == list(range(len(x.shape))), (x, order)
        if list(order) == list(range(len(x.shape))):
            return x
        return self._make("transpose", x.dtype, [x.shape[i] for i in order], [x], dimensions=tuple(order))

    def binary(self, opcode: str, a: Node, b: Node) -> Node:
        """add, subtract, multiply or divide, with broadcasting."""
        assert a.dtype == b.dtype, (opcode, a, b)
        shape = _joint(a.shape, b.shape)
        return self._make(opcode, a.dtype, shape, [self.broadcast(a, shape), self.broadcast(b, shape)])

    def negate(self, x: Node) -> Node:
        """-x."""
        return self._make("negate", x.dtype, x.shape, [x])

    def convert(self, x: Node, dtype: str) -> Node:
        """x rounded to, or widened to, another element type. Narrowing what was just widened gives the original back."""
        if x.opcode == "convert" and x.dtype == "float32" and dtype == x.operands[0].dtype == "bfloat16":
            return x.operands[0]
        return x if x.dtype == dtype else self._make("convert", dtype, x.shape, [x])

    def greater(self, a: Node, b: Node) -> Node:
        """a > b, false where either is not a number."""
        shape = _joint(a.shape, b.shape)
        return self._make("compare", "pred", shape, [self.broadcast(a, shape), self.broadcast(b, shape)], direction="GT")

    def select(self, condition: Node, a: Node, b: Node) -> Node:
        """a where the condition holds, else b."""
        shape = _joint(_joint(condition.shape, a.shape), b.shape)
        return self._make("select", a.dtype, shape, [self.broadcast(n, shape) for n in (condition, a, b)])

    def dot(self, a: Node, b: Node) -> Node:
        """[n,i,k] x [n,k,j] -> float32 [n,i,j]; operands float32 or bfloat16, sums in float32."""
        (n, i, k), (m, rows, j) = a.shape, b.shape
        assert (n, k) == (m, rows) and a.dtype == b.dtype, (a, b)
        return self._make("dot", "float32", [n, i, j], [a, b])

    def reduce_sum(self, x: Node, axes: Sequence[int]) -> Node:
        """Sum over axes, which disappear."""
        kept = [n for i, n in enumerate(x.shape) if i not in axes]
        return self._make("reduce", x.dtype, kept, [x, self.constant(0.0)], dimensions=tuple(sorted(axes)))

    def results(self, nodes: Sequence[Node]) -> Node:
        """The root: a tuple of all results."""
        return self._make("tuple", "tuple", (), nodes)


def _joint(a: Shape, b: Shape) -> Shape:
    """The shape to which both broadcast."""
    n = max(len(a), len(b))
    wide = [(1,) * (n - len(s)) + s for s in (a, b)]
    assert all(p == q or 1 in (p, q) for p, q in zip(*wide, strict=True)), (a, b)
    return tuple(max(p, q) for p, q in zip(*wide, strict=True))
