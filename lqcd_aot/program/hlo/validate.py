"""What an HLO program of ours must hold to: allowed instructions, element types, operand counts, shapes, parameters, aliases.

Owns the rules, derived from the semantics of each instruction and not from the writer in graph.py. It is no full verifier of HLO:
instructions that our programs never use are refused, whatever they say. The codes are those of the Neuron compiler's
documentation for the same complaint. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from lqcd_aot.program.hlo.read import Message, WireError, parse
from lqcd_aot.program.hlo.schema import ELEMENT_TYPES

# Opcode -> number of operands (None: one or more). All stand on AWS's list of supported operators.
OPCODES: dict[str, int | None] = {
    "add": 2, "broadcast": 1, "compare": 2, "concatenate": None, "constant": 0, "convert": 1, "divide": 2, "dot": 2,
    "multiply": 2, "negate": 1, "parameter": 0, "reduce": 2, "reshape": 1, "select": 3, "slice": 1, "subtract": 2,
    "transpose": 1, "tuple": None,
}  # fmt: skip
ELEMENTS = {number: name for name, number in ELEMENT_TYPES.items()}
COMPLEX = (15, 18)
Shape = tuple[str, tuple[int, ...]]


class InvalidHlo(ValueError):
    """A module that is refused; `code` is the Neuron compiler's for this complaint."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Instruction:
    """One instruction of the entry computation: name, opcode, (element, extents), operands, and its message."""

    __slots__ = ("message", "name", "opcode", "operands", "shape")

    def __init__(self, message: Message, operands: tuple[Instruction, ...]) -> None:
        self.message, self.name, self.opcode, self.operands = message, message.name, message.opcode, operands
        self.shape = shape_of(message.shape, self.name)


class Module:
    """A valid program: its instructions in order, parameters by number, results, aliases (result, parameter)."""

    def __init__(self, instructions: list[Instruction], results: tuple[Instruction, ...], aliases: list[tuple[int, int]]) -> None:
        self.instructions, self.results, self.aliases = instructions, results, aliases
        parameters = [i for i in instructions if i.opcode == "parameter"]
        self.parameters = sorted(parameters, key=lambda i: int(i.message.parameter_number))


def shape_of(shape: Message | None, where: str) -> Shape:
    """(element, extents). Errors: InvalidHlo for no shape, a complex or foreign element type."""
    if shape is None:
        raise InvalidHlo("NCC_EVRF064", f"{where} has no shape")
    if shape.element_type in COMPLEX:
        raise InvalidHlo("NCC_EVRF004", f"{where} is complex; split it into real and imaginary parts")
    if shape.element_type not in ELEMENTS:
        raise InvalidHlo("NCC_ESPP004", f"{where} has element type {shape.element_type}, which no program of ours uses")
    if any(n < 1 for n in shape.dimensions):
        raise InvalidHlo("NCC_EVRF064", f"{where} has an empty extent: {shape.dimensions}")
    return ELEMENTS[shape.element_type], tuple(shape.dimensions)


def validate(hlo: bytes) -> Module:
    """The program in these bytes. Errors: InvalidHlo with the first complaint."""
    try:
        module = parse(hlo)
    except WireError as why:
        raise InvalidHlo("NCC_EVRF064", f"not an HloModuleProto: {why}") from why
    computations = {c.id: c for c in module.computations}
    entry = computations.get(module.entry_computation_id)
    if entry is None or entry.name != module.entry_computation_name:
        raise InvalidHlo("NCC_EVRF064", "the module has no entry computation")
    known: dict[int, Instruction] = {}
    for message in entry.instructions:
        instruction = _instruction(message, known)
        if instruction.opcode == "reduce" and not _is_adder(computations, message):
            raise InvalidHlo("NCC_EVRF064", f"{message.name} reduces with something else than a sum")
        known[message.id] = instruction
    root = known.get(entry.root_id)
    if root is None or root.opcode != "tuple":
        raise InvalidHlo("NCC_EVRF064", "the root is not a tuple of results")
    checked = Module(list(known.values()), root.operands, _aliases(module))
    _check_parameters(checked, entry.program_shape)
    _check_parameters(checked, module.host_program_shape)
    _check_aliases(checked)
    return checked


def _instruction(message: Message, known: Mapping[int, Instruction]) -> Instruction:
    if message.opcode not in OPCODES:
        raise InvalidHlo("NCC_EVRF001", f"operator {message.opcode!r} ({message.name}) is not supported")
    if message.id in known:
        raise InvalidHlo("NCC_EVRF064", f"two instructions have id {message.id}")
    if not all(number in known for number in message.operand_ids):
        raise InvalidHlo("NCC_EVRF064", f"{message.name} uses an instruction before it stands there")
    operands = tuple(known[number] for number in message.operand_ids)
    wanted = OPCODES[message.opcode]
    if (wanted is None and not operands) or (wanted is not None and len(operands) != wanted):
        raise InvalidHlo("NCC_EVRF064", f"{message.name}: {message.opcode} has {len(operands)} operands")
    instruction = Instruction(message, operands)
    expected = _RULES[message.opcode](message, [o.shape for o in operands], instruction.shape)
    if expected != instruction.shape:
        raise InvalidHlo("NCC_EVRF064", f"{message.name}: {message.opcode} gives {expected}, it says {instruction.shape}")
    return instruction


def _same(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    return operands[0] if len(set(operands)) == 1 else None


def _reshape(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    (element, extents) = operands[0]
    return (element, stated[1]) if math.prod(extents) == math.prod(stated[1]) else None


def _broadcast(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    (element, extents), axes = operands[0], message.dimensions
    fits = len(axes) == len(extents) and axes == sorted(set(axes)) and all(0 <= a < len(stated[1]) for a in axes)
    return (element, stated[1]) if fits and all(stated[1][a] == n for a, n in zip(axes, extents, strict=True)) else None


def _slice(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    (element, extents), ranges = operands[0], message.slice_dimensions
    if len(ranges) != len(extents) or not all(
        0 <= r.start < r.limit <= n and r.stride >= 1 for r, n in zip(ranges, extents, strict=True)
    ):
        return None
    return element, tuple((r.limit - r.start + r.stride - 1) // r.stride for r in ranges)


def _concatenate(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    if len(message.dimensions) != 1 or not 0 <= message.dimensions[0] < len(operands[0][1]):
        return None
    axis = message.dimensions[0]
    rest = {(element, extents[:axis], extents[axis + 1 :]) for element, extents in operands}
    if len(rest) != 1:
        return None
    element, before, after = rest.pop()
    return element, (*before, sum(extents[axis] for _, extents in operands), *after)


def _transpose(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    (element, extents), order = operands[0], message.dimensions
    return (element, tuple(extents[a] for a in order)) if sorted(order) == list(range(len(extents))) else None


def _compare(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    return ("pred", operands[0][1]) if operands[0] == operands[1] and message.comparison_direction == "GT" else None


def _select(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    condition, a, b = operands
    return a if a == b and condition == ("pred", a[1]) else None


def _convert(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    return (stated[0], operands[0][1]) if {stated[0], operands[0][0]} <= {"float32", "bfloat16"} else None


def _dot(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    """Batched matrix products only: [n,i,k] x [n,k,j], sums in float32."""
    numbers, ((left, a), (right, b)) = message.dot_dimension_numbers, operands
    if numbers is None or len(a) != 3 or len(b) != 3 or left != right or left == "pred":
        return None
    spelled = (numbers.lhs_contracting, numbers.rhs_contracting, numbers.lhs_batch, numbers.rhs_batch)
    fits = spelled == ([2], [1], [0], [0]) and a[0] == b[0] and a[2] == b[1]
    return ("float32", (a[0], a[1], b[2])) if fits else None


def _reduce(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    (element, extents), start = operands
    axes = message.dimensions
    fits = start == ("float32", ()) and element == "float32" and len(set(axes)) == len(axes)
    if not fits or not all(0 <= a < len(extents) for a in axes):
        return None
    return element, tuple(n for i, n in enumerate(extents) if i not in axes)


def _constant(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    whole = message.literal is not None and len(message.literal.f32s) == math.prod(stated[1]) and stated[0] == "float32"
    return shape_of(message.literal.shape, message.name) if whole else None


def _stated(message: Message, operands: list[Shape], stated: Shape) -> Shape | None:
    return stated if stated[0] != "pred" else None


_RULES: dict[str, Callable[[Message, list[Shape], Shape], Shape | None]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "negate"), _same),
    "broadcast": _broadcast, "compare": _compare, "concatenate": _concatenate, "constant": _constant, "convert": _convert,
    "dot": _dot, "parameter": _stated, "reduce": _reduce, "reshape": _reshape, "select": _select, "slice": _slice,
    "transpose": _transpose, "tuple": _stated,
}  # fmt: skip


def _is_adder(computations: Mapping[int, Any], message: Message) -> bool:
    called = [computations.get(number) for number in message.called_computation_ids]
    if len(called) != 1 or called[0] is None:
        return False
    opcodes = [i.opcode for i in called[0].instructions]
    return opcodes == ["parameter", "parameter", "add"] and called[0].root_id == called[0].instructions[-1].id


def _aliases(module: Message) -> list[tuple[int, int]]:
    entries = module.input_output_alias.entries if module.input_output_alias is not None else []
    if any(len(e.output_shape_index) != 1 for e in entries):
        raise InvalidHlo("NCC_EVRF064", "an alias does not name one result")
    return [(e.output_shape_index[0], e.parameter_number) for e in entries]


def _check_parameters(module: Module, shape: Message | None) -> None:
    numbers = [p.message.parameter_number for p in module.parameters]
    if numbers != list(range(len(numbers))):
        raise InvalidHlo("NCC_EVRF064", f"parameters are numbered {numbers}")
    if shape is None or shape.result is None:
        raise InvalidHlo("NCC_EVRF064", "the program has no shape")
    stated = [shape_of(s, "a parameter of the program's shape") for s in shape.parameters]
    results = [shape_of(s, "a result of the program's shape") for s in shape.result.tuple_shapes]
    if stated != [p.shape for p in module.parameters] or results != [r.shape for r in module.results]:
        raise InvalidHlo("NCC_EVRF064", "the program's shape is not that of its parameters and results")
    if len(shape.parameter_names) != len(stated):
        raise InvalidHlo("NCC_EVRF064", "the program's shape names other parameters")


def _check_aliases(module: Module) -> None:
    taken = [parameter for _, parameter in module.aliases]
    for result, parameter in module.aliases:
        if not (0 <= result < len(module.results) and 0 <= parameter < len(module.parameters)) or taken.count(parameter) != 1:
            raise InvalidHlo("NCC_EVRF064", f"result {result} cannot share the buffer of parameter {parameter}")
        if module.results[result].shape != module.parameters[parameter].shape:
            raise InvalidHlo("NCC_EVRF064", f"result {result} and parameter {parameter} have different shapes")
