"""Sound inputs for every parser, made by the project itself: what fuzzing starts from. Deterministic."""

from __future__ import annotations

import io
import json
import tempfile
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from lqcd_runtime.bundle_layout import INDEX_MAGIC, index_bytes, place, tail
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.manifest import entry_dict
from lqcd_runtime.signature import Spec
from tests.made import record, small_bundle

ROOT = Path(__file__).resolve().parents[3]
_LOCK = b"""schema = "lqcd-aot/lock/v1"

[recipe]
name = "r"
sha256 = "%(zero)s"

[[artifact]]
name = "wilson-4x4x4x4-f64-b1@aarch64"
spec_key = "%(zero)s"
build_key = "%(zero)s"
sha256 = "%(zero)s"
size = 17
""".replace(b"%(zero)s", b"0" * 64)


@lru_cache(maxsize=1)
def _bundle() -> tuple[bytes, dict[str, bytes]]:
    """A bundle, and its members before the ones that depend on the index: {name: bytes}."""
    from lqcd_runtime.bundle_file import BundleFile

    data = small_bundle()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b.lqcd"
        path.write_bytes(data)
        opened = BundleFile(str(path))
        members = {name: opened.document(name) for name in opened.members() if "/" in name}
        members |= {name: opened.bytes_of(name) for name in ("index.bin", "manifest.json", "entries.jsonl", "members.json")}
        opened.close()
    return data, members


def bundle_with_index(index: bytes) -> bytes:
    """A bundle with this index.bin and digests, sizes and CRCs to match."""
    _, members = _bundle()
    manifest = json.loads(members["manifest.json"])
    facts = {"sha256": sha256_hex(index), "size": len(index), "crc32": f"{zlib.crc32(index):08x}"}
    manifest["members"]["index.bin"] = facts
    manifest["count"] = int.from_bytes(index[8:12], "little") if index[:8] == INDEX_MAGIC else manifest["count"]
    data = {**members, "index.bin": index, "manifest.json": canonical_json(manifest)}
    placed = place({name: (len(d), zlib.crc32(d)) for name, d in data.items()})
    out = io.BytesIO()
    for member in placed:
        out.write(member.local_header() + data[member.name])
    for piece in tail(placed, sha256_hex(data["manifest.json"])):
        out.write(piece)
    return out.getvalue()


def _entries() -> list[bytes]:
    specs = (
        Spec("wilson", (4, 4, 4, 4)),
        Spec("wilson", (8, 4, 4, 4), batch=3, baked={"mass": 0.1}),
        Spec("plaquette", (4, 4, 4, 4)),
    )
    return [canonical_json(entry_dict(record(spec, "x86-64-v2"))) for spec in specs]


def _records() -> list[bytes]:
    from lqcd_aot.store.sealed import seal

    return [seal({**record(Spec("wilson", (4, 4, 4, 4)), "x86-64-v2"), "build_key": "0" * 64})]


def _signatures() -> tuple[bytes, bytes, bytes]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from lqcd_aot.trust import SigningKey
    from lqcd_aot.trust.sign import sign_manifest, sign_records

    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(32)), "fuzz")
    return sign_manifest("0" * 64, key)[1], sign_records({"0" * 64: "1" * 64}, key)[1], key.public.as_bytes()


def _reference() -> bytes:
    objects = {label: {"sha256": "0" * 64, "size": 1} for label in ("manifest.json", "members.json", "index.bin")}
    return canonical_json({"schema": "lqcd-aot/remote/v1", "name": "x", "manifest_sha256": "0" * 64, "objects": objects})


def _gauge_files() -> list[bytes]:
    from lqcd_runtime.fields import random_links
    from lqcd_runtime.gauge_io import write_gauge

    links, out = random_links((2, 2, 2, 2), 1), []
    with tempfile.TemporaryDirectory() as folder:
        for form in ("ildg", "nersc", "nersc-2row"):
            path = Path(folder) / form
            write_gauge(path, links, form, precision="float32")
            out.append(path.read_bytes())
    return out


def _hlo() -> bytes:
    from lqcd_aot.program.hlo.canonical import serialise
    from lqcd_aot.program.hlo.graph import Graph

    graph = Graph()
    x, y = graph.parameter(0, "float32", (2, 4, 6)), graph.parameter(1, "float32", (2, 6, 4))
    scaled = graph.binary("multiply", x, graph.transpose(y, (0, 2, 1)))
    parts = graph.concatenate([graph.slice(scaled, 2, 0, 3), graph.negate(graph.slice(scaled, 2, 3, 6))], 2)
    total = graph.reduce_sum(graph.dot(parts, y), (0, 1))
    return serialise([x, y], graph.results([parts, graph.reshape(total, (2, 2))]))


def _neffs() -> tuple[bytes, bytes]:
    from lqcd_runtime.neff import write_neff, write_sim

    return write_neff(b"payload", build="2.0", name="x"), write_sim(b"hlo", {"compiler": "double"})


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "recipe": lambda: [p.read_bytes() for p in sorted((ROOT / "recipes").glob("*.toml"))],
    "lock": lambda: [_LOCK],
    "entry": _entries,
    "record": _records,
    "bundle": lambda: [_bundle()[0], (ROOT / "tests" / "golden" / "signed-v1.lqcd").read_bytes()],
    "index": lambda: [_bundle()[1]["index.bin"], index_bytes([])],
    "envelope": lambda: [_signatures()[0]],
    "record_signatures": lambda: [_signatures()[1]],
    "public_key": lambda: [_signatures()[2]],
    "reference": lambda: [_reference()],
    "image_index": lambda: [canonical_json({"annotations": {"lqcd-aot.reference": "{}"}})],
    "gauge_file": _gauge_files,
    "neff": lambda: [_neffs()[0]],
    "sim_neff": lambda: [_neffs()[1]],
    "hlo": lambda: [_hlo()],
}
