"""The validator: accepts every program of ours, refuses everything else by code, and never fails in another way."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from lqcd_aot.program import program_for
from lqcd_aot.program.hlo.schema import message_classes
from lqcd_aot.program.hlo.validate import OPCODES, InvalidHlo, validate
from lqcd_runtime.signature import OPERATORS, Spec

LATTICE = (4, 4, 2, 4)
CHUNK = Spec("wilson_cg_chunk", LATTICE, "float32", iterations=1)
# AWS's published list of operators, as far as our programs could use it.
SUPPORTED = {
    "abs", "add", "and", "bitcast-convert", "broadcast", "compare", "concatenate", "constant", "convert", "divide", "dot",
    "exponential", "log", "maximum", "minimum", "multiply", "negate", "parameter", "power", "reduce", "reshape", "rsqrt",
    "select", "slice", "sqrt", "subtract", "tanh", "transpose", "tuple",
}  # fmt: skip


def specs() -> list[Spec]:
    words = [name for name, entry in OPERATORS.items() if entry["kind"] not in ("gauge_map", "solver")]
    made = [Spec(n, LATTICE, "bfloat16", iterations=2 * (OPERATORS[n]["kind"] == "chunk")) for n in words]
    return [*made, Spec("wilson_normal", LATTICE, "float32", batch=3, fused=True, shards=2)]


def test_every_program_is_valid_and_says_what_its_binding_says() -> None:
    seen = set()
    for spec in specs():
        program = program_for(spec, "trn1")
        module = validate(program.hlo)
        stated = [(p["dtype"], tuple(p["shape"])) for p in program.binding["parameters"]]
        assert [p.shape for p in module.parameters] == stated, spec.name
        assert [r.shape for r in module.results] == [(r["dtype"], tuple(r["shape"])) for r in program.binding["results"]]
        assert [list(pair) for pair in module.aliases] == program.binding["aliases"]
        seen |= {i.opcode for i in module.instructions}
    assert seen == set(OPCODES), "an allowed instruction that no program uses is a hole"
    assert seen <= SUPPORTED


def module() -> Any:
    return message_classes()["Module"].FromString(program_for(CHUNK, "sim").hlo)


def first(proto: Any, opcode: str) -> Any:
    return next(i for i in proto.computations[-1].instructions if i.opcode == opcode)


DAMAGES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "complex": ("NCC_EVRF004", lambda m: setattr(first(m, "add").shape, "element_type", 15)),
    "double": ("NCC_ESPP004", lambda m: setattr(first(m, "add").shape, "element_type", 12)),
    "operator": ("NCC_EVRF001", lambda m: setattr(first(m, "add"), "opcode", "dynamic-slice")),
    "operand": ("NCC_EVRF064", lambda m: first(m, "add").operand_ids.pop()),
    "later": ("NCC_EVRF064", lambda m: first(m, "add").operand_ids.__setitem__(0, m.computations[-1].root_id)),
    "shape": ("NCC_EVRF064", lambda m: first(m, "multiply").shape.dimensions.__setitem__(0, 7)),
    "empty": ("NCC_EVRF064", lambda m: first(m, "multiply").shape.dimensions.__setitem__(0, 0)),
    "slice": ("NCC_EVRF064", lambda m: setattr(first(m, "slice").slice_dimensions[0], "limit", 99)),
    "axis": ("NCC_EVRF064", lambda m: first(m, "concatenate").dimensions.__setitem__(0, 9)),
    "broadcast": ("NCC_EVRF064", lambda m: next(
        i for i in m.computations[-1].instructions if i.opcode == "broadcast" and i.dimensions).dimensions.pop()),
    "direction": ("NCC_EVRF064", lambda m: setattr(first(m, "compare"), "comparison_direction", "LT")),
    "reducer": ("NCC_EVRF064", lambda m: setattr(m.computations[0].instructions[2], "opcode", "multiply")),
    "same id": ("NCC_EVRF064", lambda m: setattr(first(m, "add"), "id", first(m, "multiply").id)),
    "parameter": ("NCC_EVRF064", lambda m: setattr(first(m, "parameter"), "parameter_number", 3)),
    "signature": ("NCC_EVRF064", lambda m: m.host_program_shape.parameters[0].dimensions.__setitem__(0, 3)),
    "result": ("NCC_EVRF064", lambda m: m.computations[-1].program_shape.result.tuple_shapes.pop()),
    "alias": ("NCC_EVRF064", lambda m: setattr(m.input_output_alias.entries[0], "parameter_number", 3)),
    "alias twice": ("NCC_EVRF064", lambda m: setattr(m.input_output_alias.entries[1], "parameter_number", 0)),
    "root": ("NCC_EVRF064", lambda m: setattr(m.computations[-1], "root_id", first(m, "add").id)),
    "entry": ("NCC_EVRF064", lambda m: setattr(m, "entry_computation_id", 77)),
    "literal": ("NCC_EVRF064", lambda m: first(m, "constant").literal.f32s.append(1.0)),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_rule_is_named_by_the_compiler_s_code(damage: str) -> None:
    code, break_it = DAMAGES[damage]
    proto = module()
    break_it(proto)
    with pytest.raises(InvalidHlo) as refusal:
        validate(proto.SerializeToString())
    assert refusal.value.code == code
    assert str(refusal.value)


@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"HloModule text", b"\x0a\x80", b"\x1a\x05\x0a"])
def test_other_bytes_are_no_module(data: bytes) -> None:
    with pytest.raises(InvalidHlo):
        validate(data)


def test_damaged_bytes_are_refused_or_valid_and_nothing_else() -> None:
    """Thousands of flips, cuts and insertions: a refusal or a module, never another exception."""
    whole, chance, refused = program_for(Spec("wilson_hop", LATTICE, "float32", fused=True), "sim").hlo, random.Random(7), 0
    for _ in range(1500):
        data, at = bytearray(whole), chance.randrange(len(whole))
        kind = chance.randrange(3)
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at : at + chance.randrange(1, 9)]
        else:
            data[at:at] = chance.randbytes(chance.randrange(1, 5))
        try:
            validate(bytes(data))
        except InvalidHlo:
            refused += 1
    # What passes changed a name or a literal, or a number that a rule does not pin down; three quarters and more do not.
    assert refused > 900
