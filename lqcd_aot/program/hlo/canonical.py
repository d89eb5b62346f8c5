"""Graph -> canonical HloModuleProto bytes: what is hashed is what is compiled.

Owns the canonical form: parameters by number, then every instruction in post-order from the root; ids and names count from there;
no metadata, no unused instruction. So the bytes do not depend on names, on the order of independent statements, on dead code,
on the process or on any field's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lqcd_aot.program.hlo.graph import Node
from lqcd_aot.program.hlo.schema import ELEMENT_TYPES, MAY_ALIAS, message_classes

MODULE, ENTRY, ADDER = "lqcd", "main.2", "add.1"
_ENTRY_ID, _ADDER_ID = 2, 1
_ADDER_INSTRUCTIONS = 3


def serialise(parameters: Sequence[Node], root: Node, aliases: Sequence[Sequence[int]] = ()) -> bytes:
    """The module as bytes. parameters: all of them, used or not, by number; aliases: (result, parameter) pairs."""
    classes = message_classes()
    module = classes["Module"](name=MODULE, entry_computation_name=ENTRY, entry_computation_id=_ENTRY_ID)
    order = _post_order(parameters, root)
    if any(node.opcode == "reduce" for node in order):
        _adder(module.computations.add())
    entry = module.computations.add(name=ENTRY, id=_ENTRY_ID)
    numbers = {id(node): _ADDER_INSTRUCTIONS + 1 + place for place, node in enumerate(order)}
    for node in order:
        _instruction(entry.instructions.add(), node, numbers)
    entry.root_id = numbers[id(root)]
    for program in (entry.program_shape, module.host_program_shape):
        for node in parameters:
            _shape(program.parameters.add(), node)
            program.parameter_names.append(f"p{node['number']}")
        _shape(program.result, root)
    for result, parameter in aliases:
        module.input_output_alias.entries.add(output_shape_index=[result], parameter_number=parameter, kind=MAY_ALIAS)
    data: bytes = module.SerializeToString(deterministic=True)
    return data


def _post_order(parameters: Sequence[Node], root: Node) -> list[Node]:
    order, seen = list(parameters), {id(p) for p in parameters}
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:
        node, place = stack.pop()
        if id(node) in seen:
            continue
        if place < len(node.operands):
            stack += [(node, place + 1), (node.operands[place], 0)]
        else:
            seen.add(id(node))
            order.append(node)
    return order


def _instruction(proto: Any, node: Node, numbers: dict[int, int]) -> None:
    number = numbers[id(node)]
    proto.name = f"p{node['number']}" if node.opcode == "parameter" else f"i.{number}"
    proto.opcode, proto.id = node.opcode, number
    _shape(proto.shape, node)
    proto.operand_ids.extend(numbers[id(operand)] for operand in node.operands)
    for name, value in node.attributes:
        if name == "dimensions":
            proto.dimensions.extend(value)
        elif name == "ranges":
            for start, limit, stride in value:
                proto.slice_dimensions.add(start=start, limit=limit, stride=stride)
        elif name == "number":
            proto.parameter_number = value
        elif name == "direction":
            proto.comparison_direction = value
        elif name == "values":
            _shape(proto.literal.shape, node)
            proto.literal.f32s.extend(value)
    if node.opcode == "dot":
        numbers_of = proto.dot_dimension_numbers
        numbers_of.lhs_contracting.append(2)
        numbers_of.rhs_contracting.append(1)
        numbers_of.lhs_batch.append(0)
        numbers_of.rhs_batch.append(0)
    elif node.opcode == "reduce":
        proto.called_computation_ids.append(_ADDER_ID)


def _shape(proto: Any, node: Node) -> None:
    proto.element_type = ELEMENT_TYPES[node.dtype]
    if node.opcode == "tuple":
        for operand in node.operands:
            _shape(proto.tuple_shapes.add(), operand)
        return
    proto.dimensions.extend(node.shape)
    proto.layout.minor_to_major.extend(reversed(range(len(node.shape))))
    if not node.shape:
        proto.layout.SetInParent()


def _adder(computation: Any) -> None:
    """a + b of float32, the reducer of every sum."""
    scalar = [Node("parameter", "float32", (), (), (("number", i),)) for i in (0, 1)]
    total = Node("add", "float32", (), (scalar[0], scalar[1]), ())
    computation.name, computation.id, computation.root_id = ADDER, _ADDER_ID, _ADDER_INSTRUCTIONS
    numbers = {id(node): 1 + place for place, node in enumerate((*scalar, total))}
    for node in (*scalar, total):
        _instruction(computation.instructions.add(), node, numbers)
    for instruction, name in zip(computation.instructions, ("a.1", "b.2", "sum.3"), strict=True):
        instruction.name = name
    for node, name in zip(scalar, ("a.1", "b.2"), strict=True):
        _shape(computation.program_shape.parameters.add(), node)
        computation.program_shape.parameter_names.append(name)
    _shape(computation.program_shape.result, total)
