"""A bundle as content-addressed objects, and the reference that names them.

    head      manifest.json, members.json, index.bin, documents, signatures: what tells what there is and who vouches for it
    targets   records/<target>.jsonl (canonical records, one a line, by build key), and the blobs they name

    reference  {"schema": "lqcd-aot/remote/v1", "name", "manifest_sha256", "objects": {label: {"sha256", "size"}}}

Owns this form, both ways. Records of one target are one object, so that a reader of one target asks for little and rarely. The
reference is not signed; everything it names is checked against the manifest, and the manifest against its signatures.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.ship.remotes.base import LARGEST_REF, Object, Shelf
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.errors import CorruptError
from lqcd_runtime.manifest import check_schema, parse_object
from lqcd_runtime.signatures import LARGEST, MOST, members

if TYPE_CHECKING:
    from lqcd_runtime.bundle_file import BundleFile

SCHEMA = "lqcd-aot/remote/v1"
HEAD = ("manifest.json", "members.json", "index.bin")
LARGEST_OBJECT = 1 << 30
_MEDIA = "application/vnd.lqcd-aot."


class Reference(NamedTuple):
    """What a name stands for: the manifest, and {label: (digest, size)}."""

    name: str
    manifest_sha256: str
    objects: dict[str, tuple[str, int]]


def shelve(bundle: BundleFile, name: str) -> tuple[Shelf, dict[str, bytes], dict[str, Object]]:
    """(shelf, {digest: bytes} of all but the blobs, {digest: object} of the blobs) of a verified bundle."""
    listed = bundle.members()
    labels = {label: bundle.bytes_of(label) for label in HEAD}
    labels |= {label: bundle.document(label) for label in listed if label.startswith("documents/")}
    labels |= members(bundle)
    head = {label: Object(sha256_hex(data), len(data), _media(label)) for label, data in labels.items()}
    small = {head[label].sha256: data for label, data in labels.items()}
    lines: dict[str, list[bytes]] = defaultdict(list)
    blobs: dict[str, dict[str, Object]] = defaultdict(dict)
    for entry in sorted(bundle.entries(), key=lambda e: e.build_key):
        lines[entry.target].append(bundle.record(entry.build_key) + b"\n")
        for output in entry.outputs.values():
            blobs[entry.target][output["sha256"]] = Object(output["sha256"], output["size"], str(output["media_type"]))
    targets, packs = {}, {}
    for target in sorted(lines):
        data = b"".join(lines[target])
        packs[f"records/{target}.jsonl"] = pack = Object(sha256_hex(data), len(data), f"{_MEDIA}records+jsonl")
        small[pack.sha256] = data
        targets[target] = [pack, *(blobs[target][digest] for digest in sorted(blobs[target]))]
    objects = {label: {"sha256": o.sha256, "size": o.size} for label, o in {**head, **packs}.items()}
    ref = {"schema": SCHEMA, "name": name, "manifest_sha256": bundle.manifest_sha256, "objects": objects}
    all_blobs = {digest: o for found in blobs.values() for digest, o in found.items()}
    return Shelf(canonical_json(ref), head, targets), small, all_blobs


def parse_reference(data: bytes, where: str) -> Reference:
    """A reference from its bytes. Errors: CorruptError, TooNewError."""
    if len(data) > LARGEST_REF:
        raise CorruptError(f"{where}: is too large", expected=f"at most {LARGEST_REF} bytes")
    value = parse_object(data, where)
    check_schema(value.get("schema"), SCHEMA, where)
    objects: dict[str, tuple[str, int]] = {}
    try:
        name, manifest = value["name"], value["manifest_sha256"]
        for label, facts in value["objects"].items():
            objects[label] = _checked(facts)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptError(f"{where}: is no reference", found=f"{type(error).__name__}: {error}") from error
    signatures = [label for label in objects if label.startswith("signatures/")]
    if not set(HEAD) <= objects.keys() or objects["manifest.json"][0] != manifest or not isinstance(name, str):
        raise CorruptError(f"{where}: does not name what every bundle has", expected=", ".join(HEAD))
    if len(signatures) > MOST or any(objects[label][1] > LARGEST for label in signatures):
        raise CorruptError(f"{where}: names more signatures than can be")
    return Reference(name, str(manifest), objects)


def _checked(facts: dict[str, Any]) -> tuple[str, int]:
    digest, size = facts["sha256"], facts["size"]
    if len(bytes.fromhex(digest)) != 32 or digest != digest.lower() or type(size) is not int or not 0 <= size <= LARGEST_OBJECT:
        raise ValueError(f"object {str(digest)[:80]} of {size!r} bytes")
    return digest, size


def _media(label: str) -> str:
    if label.endswith(".bin"):
        return f"{_MEDIA}index"
    return (
        f"{_MEDIA}signature+json"
        if label.startswith("signatures/")
        else f"{_MEDIA}{label.partition('.')[0].rpartition('/')[2]}+json"
    )
