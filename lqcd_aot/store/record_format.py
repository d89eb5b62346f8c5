"""What a build record and a spec's index must hold (artifacts/README.md, "Record").

Owns the check of their form. Knows no recipe, program or compiler: spec, components, witness and provenance are somebody
else's JSON. Reads and writes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lqcd_aot.store.layout import is_key
from lqcd_aot.store.sealed import unseal

RECORD_SCHEMA = "lqcd-aot/record/v1"
SPEC_SCHEMA = "lqcd-aot/spec-index/v1"
DIVERGENCE_SCHEMA = "lqcd-aot/divergence/v1"

Record = dict[str, Any]
_MEMBERS: dict[str, type | tuple[type, ...]] = {
    "schema": str,
    "build_key": str,
    "spec_key": str,
    "spec": dict,
    "target": str,
    "components": dict,
    "conventions": dict,
    "outputs": dict,
    "witness": (dict, type(None)),
    "witness_status": str,
    "provenance": dict,
}
# Of artifacts that take more than a C entry point to call: how parameters are bound, what the container says of itself.
_OPTIONAL: dict[str, type | tuple[type, ...]] = {"binding": dict, "neff": dict}


class NewerSchema(ValueError):
    """A record of a later release: not ours to judge, so a miss and nothing to put aside."""


class Published(NamedTuple):
    """What `publish` did. outcome: "published", "reused" (the same outputs were there) or "diverged" (other outputs were)."""

    record: Record
    outcome: str


def check_record(record: Record, build_key: str | None = None) -> Record:
    """The record itself. Errors: ValueError with one sentence; NewerSchema."""
    schema = record.get("schema")
    if schema != RECORD_SCHEMA:
        if isinstance(schema, str) and schema.startswith("lqcd-aot/record/"):
            raise NewerSchema(f"has schema {schema}, this release reads {RECORD_SCHEMA}")
        raise ValueError(f"has schema {schema!r}, expected {RECORD_SCHEMA}")
    if set(record) - set(_OPTIONAL) != set(_MEMBERS):
        raise ValueError(f"has members {sorted(record)}, expected {sorted(_MEMBERS)}")
    for name, kind in (_MEMBERS | _OPTIONAL).items():
        if name in record and not isinstance(record[name], kind):
            raise ValueError(f"member {name} is a {type(record[name]).__name__}")
    for name in ("build_key", "spec_key"):
        if not is_key(record[name]):
            raise ValueError(f"member {name} is not a SHA-256 in hex: {record[name]!r}")
    if build_key is not None and record["build_key"] != build_key:
        raise ValueError(f"is the record of {record['build_key']}")
    check_outputs(record["outputs"])
    return record


def check_outputs(outputs: Any) -> None:
    """Errors: ValueError where this is not {name: {"sha256", "size", "media_type"}} with at least one output."""
    if not isinstance(outputs, dict) or not outputs:
        raise ValueError("names no outputs")
    for name, output in outputs.items():
        if not isinstance(output, dict) or set(output) != {"sha256", "size", "media_type"} or not is_key(output["sha256"]):
            raise ValueError(f"output {name} has no digest, size and media type")
        if not isinstance(output["size"], int) or output["size"] < 0:
            raise ValueError(f"output {name} has size {output['size']!r}")


def parse_record(data: bytes, build_key: str) -> Record:
    """A record from its stored bytes. Errors: ValueError with one sentence; NewerSchema."""
    return check_record(unseal(data), build_key)


def parse_index(data: bytes, spec_key: str) -> dict[str, str]:
    """{target: build_key} from the stored bytes of a spec's index. Errors: ValueError."""
    value = unseal(data)
    if value.get("schema") != SPEC_SCHEMA or value.get("spec_key") != spec_key or not isinstance(value.get("records"), dict):
        raise ValueError(f"is not the index of {spec_key}")
    records: dict[str, str] = value["records"]
    if not all(is_key(key) for key in records.values()):
        raise ValueError("names something that is no build key")
    return records
