"""Provenance and bill of materials, as members of a bundle: its manifest, and so its signature, covers them.

    documents/provenance.intoto.json   in-toto Statement v1 with a SLSA provenance v1 predicate
    documents/sbom.cdx.json            CycloneDX 1.6

Owns their content: a function of records, recipe and checkout, so equal builds give equal bytes; no time unless one is given, no
host, no user. What is said of the toolchain is the pre-image of the build keys. Both are plain JSON that the usual tools read.
Source: in-toto attestation framework 1.0, SLSA 1.0 "Provenance", CycloneDX 1.6 (ECMA-424).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.signature import Spec

if TYPE_CHECKING:
    from lqcd_aot.ship.origin import Origin

PROVENANCE = "documents/provenance.intoto.json"
SBOM = "documents/sbom.cdx.json"
BUILD_TYPE = "urn:lqcd-aot:build:v1"
BUILDER = "urn:lqcd-aot:builder:v1"

Record = Mapping[str, Any]
Records = Mapping[str, Record]


def provenance(
    records: Records, recipe: Mapping[str, str], origin: Origin | None, version: str, *, epoch: int | None = None
) -> bytes:
    """The statement: which machine code was made from which recipe, checkout and toolchains, by which release.

    records: by build key. recipe: {"name", "sha256"}. epoch: seconds since 1970 to state as the end of the build, if any.
    """
    inputs: list[dict[str, Any]] = []
    if origin is not None:
        inputs.append({"name": "checkout", "digest": {"gitCommit": origin.commit}, "annotations": {"dirty": origin.dirty}})
    for facts in _toolchains(records).values():
        digests = {"digest": {"sha256": facts["binary_sha256"]}} if "binary_sha256" in facts else {}
        inputs.append({"name": facts.get("compiler", "compiler"), "annotations": facts, **digests})
    metadata = {} if epoch is None else {"metadata": {"finishedOn": _spelled(epoch)}}
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": _subjects(records),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"recipe": dict(recipe)},
                "resolvedDependencies": inputs,
            },
            "runDetails": {"builder": {"id": BUILDER, "version": {"lqcd-aot": version}}, **metadata},
        },
    }
    return canonical_json(statement)


def sbom(records: Records, name: str, *, epoch: int | None = None) -> bytes:
    """The bill: every artifact with its digest, and the toolchains that made them (which are not in the bundle).

    The serial number is derived from the build keys.
    """
    compilers = _toolchains(records)
    components: list[dict[str, Any]] = [_component(record) for _, record in sorted(records.items())]
    components += [_tool(ref, facts) for ref, facts in compilers.items()]
    identity = sha256_hex(canonical_json([name, sorted(records)]))
    when = {} if epoch is None else {"timestamp": _spelled(epoch)}
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # A version-8 (own scheme) UUID, RFC 9562.
        "serialNumber": f"urn:uuid:{identity[:8]}-{identity[8:12]}-8{identity[13:16]}-a{identity[17:20]}-{identity[20:32]}",
        "version": 1,
        "metadata": {"component": {"type": "data", "bom-ref": "bundle", "name": name}, **when},
        "components": components,
        "dependencies": [{"ref": "bundle", "dependsOn": sorted(records)}],
    }
    return canonical_json(bill)


def for_records(documents: Mapping[str, bytes], records: Records) -> dict[str, bytes]:
    """The documents of a bundle that keeps only some of its records: fewer subjects, fewer components, nothing else changed."""
    out = dict(documents)
    if PROVENANCE in out:
        statement = json.loads(out[PROVENANCE])
        out[PROVENANCE] = canonical_json({**statement, "subject": _subjects(records)})
    if SBOM in out:
        out[SBOM] = _again(out[SBOM], records)
    return out


def merged(documents: Sequence[Mapping[str, bytes]], records: Records) -> dict[str, bytes]:
    """The documents of a merged bundle: a bill where one of the parts had one. Statements of provenance stay with the parts: they
    speak of one recipe each."""
    bills = [d[SBOM] for d in documents if SBOM in d]
    return {SBOM: _again(bills[0], records)} if bills else {}


def _again(bill: bytes, records: Records) -> bytes:
    name = json.loads(bill)["metadata"]["component"]["name"]
    return sbom(records, str(name))


def _subjects(records: Records) -> list[dict[str, Any]]:
    return sorted(
        ({"name": _name(r), "digest": {"sha256": r["outputs"]["code"]["sha256"]}} for r in records.values()),
        key=lambda subject: str(subject["name"]),
    )


def _component(record: Record) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": record["build_key"],
        "name": _name(record),
        "version": record["build_key"][:16],
        "hashes": [{"alg": "SHA-256", "content": record["outputs"]["code"]["sha256"]}],
        "properties": [
            {"name": "lqcd-aot:build_key", "value": record["build_key"]},
            {"name": "lqcd-aot:compiler", "value": _compiler_ref(record)},
            {"name": "lqcd-aot:target", "value": record["target"]},
            {"name": "lqcd-aot:witness", "value": record["witness_status"]},
        ],
    }


def _tool(ref: str, facts: Mapping[str, str]) -> dict[str, Any]:
    hashes = {"hashes": [{"alg": "SHA-256", "content": facts["binary_sha256"]}]} if "binary_sha256" in facts else {}
    properties = [{"name": f"lqcd-aot:{k}", "value": v} for k, v in sorted(facts.items())]
    tool = {"type": "application", "bom-ref": ref, "name": facts.get("compiler", "compiler"), "scope": "excluded"}
    return {**tool, "version": facts.get("version", "unknown"), **hashes, "properties": properties}


def _toolchains(records: Records) -> dict[str, dict[str, str]]:
    """{reference: identity} of every toolchain that made one of the records, in the order of the references."""
    found = {_compiler_ref(r): {k: str(v) for k, v in _identity(r).items()} for r in records.values()}
    return dict(sorted(found.items()))


def _identity(record: Record) -> Mapping[str, Any]:
    toolchain = record["components"].get("toolchain")
    return toolchain if isinstance(toolchain, dict) else {}


def _compiler_ref(record: Record) -> str:
    return f"toolchain-{sha256_hex(canonical_json(dict(_identity(record))))[:16]}"


def _name(record: Record) -> str:
    return f"{Spec.from_dict(record['spec']).name}@{record['target']}"


def _spelled(epoch: int) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
