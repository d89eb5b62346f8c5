"""The part of the HLO protocol buffers that a program of ours uses: field numbers as data.

Owns the table; from it come the writer's message classes (built at first use, no generated code) and the wire reader of read.py.
Source of the numbers: the public hlo.proto and xla_data.proto of openxla.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

PACKAGE = "lqcd_hlo"

# message -> field -> (number, type). A type ends in * where the field repeats; other messages stand by their names.
MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Layout": {"minor_to_major": (1, "int64*")},
    "Shape": {"element_type": (2, "int32"), "dimensions": (3, "int64*"), "tuple_shapes": (4, "Shape*"), "layout": (5, "Layout")},
    "ProgramShape": {"parameters": (1, "Shape*"), "result": (2, "Shape"), "parameter_names": (3, "string*")},
    "Literal": {"shape": (1, "Shape"), "f32s": (8, "float*")},
    "SliceDimensions": {"start": (1, "int64"), "limit": (2, "int64"), "stride": (3, "int64")},
    "DotDimensions": {
        "lhs_contracting": (1, "int64*"), "rhs_contracting": (2, "int64*"),
        "lhs_batch": (3, "int64*"), "rhs_batch": (4, "int64*"),
    },
    "Instruction": {
        "name": (1, "string"), "opcode": (2, "string"), "shape": (3, "Shape"), "literal": (8, "Literal"),
        "parameter_number": (9, "int64"), "dimensions": (14, "int64*"), "slice_dimensions": (17, "SliceDimensions*"),
        "dot_dimension_numbers": (30, "DotDimensions"), "id": (35, "int64"), "operand_ids": (36, "int64*"),
        "called_computation_ids": (38, "int64*"), "comparison_direction": (63, "string"),
    },
    "Computation": {
        "name": (1, "string"), "instructions": (2, "Instruction*"), "program_shape": (4, "ProgramShape"), "id": (5, "int64"),
        "root_id": (6, "int64"),
    },
    "Alias": {"output_shape_index": (1, "int64*"), "parameter_number": (2, "int64"), "kind": (4, "int32")},
    "Aliases": {"entries": (1, "Alias*")},
    "Module": {
        "name": (1, "string"), "entry_computation_name": (2, "string"), "computations": (3, "Computation*"),
        "host_program_shape": (4, "ProgramShape"), "entry_computation_id": (6, "int64"), "input_output_alias": (8, "Aliases"),
    },
}  # fmt: skip
MAY_ALIAS = 1

# PrimitiveType numbers and sizes of the element types a program may use.
ELEMENT_TYPES = {"pred": 1, "float32": 11, "tuple": 13, "bfloat16": 16}
ELEMENT_BYTES = {"pred": 1, "float32": 4, "bfloat16": 2}

_SCALARS = {"int32": 5, "int64": 3, "float": 2, "string": 9}  # FieldDescriptorProto.Type


@lru_cache(maxsize=1)
def message_classes() -> dict[str, Any]:
    """{message: protobuf class}, built from MESSAGES."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto3")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            repeated, base = kind.endswith("*"), kind.rstrip("*")
            field: Any = described.field.add(name=name, number=number, label=3 if repeated else 1)
            if base in _SCALARS:
                field.type = _SCALARS[base]
            else:
                field.type, field.type_name = 11, f".{PACKAGE}.{base}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {m: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{m}")) for m in MESSAGES}
