"""The OCI manifests that stand for a bundle: what a registry or an image layout keeps beside the blobs.

    index        tagged with the bundle's name; the reference stands in an annotation, so that one request gives it
      head       image manifest: manifest.json, members.json, index.bin, documents, signatures
      <target>   image manifest: the records and machine code of one target

Owns their JSON. One manifest per target keeps each far below the 4 MiB that registries accept, and lets the usual tools copy one
target. Source: OCI image spec 1.1 (manifest.md, image-index.md, "guidelines for artifact usage").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from lqcd_aot.ship.remotes.base import Object, Shelf
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.errors import CorruptError
from lqcd_runtime.manifest import parse_object

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
EMPTY = b"{}"
REF_ANNOTATION = "lqcd-aot.reference"
TITLE = "org.opencontainers.image.title"
_ARTIFACT = "application/vnd.lqcd-aot."


class Manifests(NamedTuple):
    """top: bytes of the image index; images: bytes of the image manifests it lists."""

    top: bytes
    images: tuple[bytes, ...]


def manifests_of(shelf: Shelf) -> Manifests:
    """The manifests of a shelf; equal shelves give equal bytes."""
    head = _image("bundle", ((label, o) for label, o in sorted(shelf.head.items())))
    images = [(head, f"{_ARTIFACT}bundle", {TITLE: "head"})]
    for target, objects in sorted(shelf.targets.items()):
        labelled = ((f"records/{target}.jsonl" if i == 0 else f"blobs/{o.sha256}", o) for i, o in enumerate(objects))
        images.append((_image("target", labelled), f"{_ARTIFACT}target", {TITLE: target}))
    listed = [{**_descriptor(data, MANIFEST_TYPE), "artifactType": kind, "annotations": named} for data, kind, named in images]
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX_TYPE,
        "manifests": listed,
        "annotations": {REF_ANNOTATION: shelf.ref.decode("ascii")},
    }
    return Manifests(canonical_json(index), tuple(data for data, _, _ in images))


def reference_in(index: bytes, where: str) -> bytes:
    """The reference that an image index carries. Errors: CorruptError where it carries none."""
    annotations = parse_object(index, where).get("annotations")
    text = annotations.get(REF_ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        raise CorruptError(f"{where}: is an image, but not of a bundle", expected=f"an annotation {REF_ANNOTATION}")
    return text.encode("utf-8", "replace")


def _image(kind: str, layers: Iterable[tuple[str, Object]]) -> bytes:
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": f"{_ARTIFACT}{kind}",
        "config": _descriptor(EMPTY, EMPTY_TYPE),
        "layers": [_layer(label, o) for label, o in layers],
    }
    return canonical_json(manifest)


def _layer(label: str, o: Object) -> dict[str, Any]:
    return {"mediaType": o.media_type, "digest": f"sha256:{o.sha256}", "size": o.size, "annotations": {TITLE: label}}


def _descriptor(data: bytes, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{sha256_hex(data)}", "size": len(data)}


def layout_index(entries: Mapping[str, bytes]) -> bytes:
    """index.json of an image layout from {name: image index}."""
    name = "org.opencontainers.image.ref.name"
    listed = [{**_descriptor(data, INDEX_TYPE), "annotations": {name: ref}} for ref, data in sorted(entries.items())]
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": listed}, indent=1).encode("ascii")


def layout_entries(index_json: bytes, where: str) -> dict[str, str]:
    """{name: digest} from index.json of an image layout. Errors: CorruptError."""
    found = {}
    try:
        for entry in parse_object(index_json, where)["manifests"]:
            ref = entry.get("annotations", {}).get("org.opencontainers.image.ref.name")
            if ref is not None:
                found[str(ref)] = str(entry["digest"]).removeprefix("sha256:")
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptError(f"{where}: is no index of an image layout") from error
    return found
