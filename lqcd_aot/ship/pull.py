"""From a remote to a store: only what is needed here, verified and judged before the store sees it.

    round trips    reference; manifest, members, index, signatures together; records of the needed targets; blobs

Owns the order and the checks: manifest against the reference, signatures against the trusted keys, members and index against the
manifest, records against members, blobs against their digests. Blobs that the store has are not fetched, so pulling again
after an interruption goes on where it stopped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.ship.closure import Imported, take_in
from lqcd_aot.ship.content import Content, Record, Signer, write_content
from lqcd_aot.ship.push import AT_ONCE, Progress
from lqcd_aot.ship.remotes.base import Remote, RemoteError, checked_name, fetch
from lqcd_aot.ship.remotes.shelf import Reference, parse_reference
from lqcd_runtime.bundle_layout import INDEX_HEAD, INDEX_MAGIC, INDEX_RECORD
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CorruptError
from lqcd_runtime.manifest import BUNDLE_SCHEMA, check_conventions, check_schema, parse_object
from lqcd_runtime.signatures import check_manifest, check_records
from lqcd_runtime.target import TARGETS

if TYPE_CHECKING:
    from lqcd_aot.ship.choose import Machine
    from lqcd_aot.store import Store
    from lqcd_aot.trust import Policy
    from lqcd_runtime.signatures import Signature

Variant = tuple[str, str]  # spec key, target


class Pulled(NamedTuple):
    """What was taken into the store; artifacts: of the bundle in all; bytes: fetched; manifest_sha256."""

    imported: Imported
    artifacts: int
    bytes: int
    manifest_sha256: str


def pull(
    remote: Remote,
    name: str,
    store: Store,
    policy: Policy,
    *,
    machine: Machine | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Pulled:
    """Take a bundle's artifacts into a store. machine: only what it would use (None: everything); out: a bundle file to
    write too; one of everything is, byte for byte and signatures included, the file that was pushed.

    Errors: RemoteError, CorruptError, TrustError, NoVariant, StoreError.
    """
    where = f"remote {remote.url}: {checked_name(name)}"
    raw = remote.read_ref(name)
    if raw is None:
        raise RemoteError(f"{where}: is not there", hint="lqcd-aot pull URL --list")
    ref = parse_reference(raw, where)
    head = _Head(remote, ref, where)
    verdict = policy.judge_signatures(head.signatures(), head.record_digests, where)
    rows = head.rows()
    needed = set(machine.best((key, target, (key, target)) for key, target in rows) if machine else rows)
    records = _records(remote, ref, head, needed, where)
    content = Content(
        str(head.manifest["name"]),
        head.manifest["recipe"],
        records,
        store.read_blob,
        head.documents() if len(needed) == len(rows) else {},
        head.signers(),
    )
    fetched = head.bytes + sum(ref.objects[f"records/{t}.jsonl"][1] for t in {target for _, target in needed})
    fetched += _blobs(remote, store, records.values(), progress) + len(raw)
    imported = take_in(content, store, verdict)
    if out is not None:
        _write(content, head, len(needed) == len(rows), out)
    return Pulled(imported, len(rows), fetched, ref.manifest_sha256)


class _Head:
    """What every reader fetches first, each part compared with the one before it."""

    def __init__(self, remote: Remote, ref: Reference, where: str) -> None:
        labels = [label for label in ref.objects if not label.startswith("records/")]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            data = pool.map(lambda label: fetch(remote, *ref.objects[label]), labels)
            self.parts = dict(zip(labels, data, strict=True))
        self.where, self.bytes = where, sum(map(len, self.parts.values()))
        self.manifest_sha256 = ref.manifest_sha256
        self.manifest = parse_object(self.parts["manifest.json"], f"{where}: manifest.json")
        check_schema(self.manifest.get("schema"), BUNDLE_SCHEMA, where)
        check_conventions(self.manifest.get("conventions"), where)
        for label in ("members.json", "index.bin"):
            self._same(label, self.manifest.get("members", {}))
        self.members = parse_object(self.parts["members.json"], f"{where}: members.json")
        try:
            self.record_digests = {n[8:-5]: str(f["sha256"]) for n, f in self.members.items() if n.startswith("records/")}
        except (KeyError, TypeError) as error:
            raise CorruptError(f"{where}: members.json does not describe its members") from error

    def _same(self, label: str, listed: Mapping[str, Any]) -> None:
        facts = listed.get(label)
        expected = facts.get("sha256") if isinstance(facts, dict) else None
        found = sha256_hex(self.parts[label])
        if found != expected:
            raise CorruptError(f"{self.where}: {label} is not what the manifest names", expected=expected, found=found)

    def signatures(self) -> list[Signature]:
        """Every signature, checked."""
        out = []
        for label, data in self._below("signatures/").items():
            where = f"{self.where}: {label}"
            if label.endswith(".records.json"):
                out.append(check_records(data, self.record_digests, where))
            else:
                out.append(check_manifest(data, self.manifest_sha256, where))
        return out

    def signers(self) -> dict[str, Signer]:
        """Signatures of records, to travel on."""
        found = {}
        for label, data in self._below("signatures/").items():
            if label.endswith(".records.json"):
                value = parse_object(data, label)
                lines = {k: (self.record_digests[k], s) for k, s in value["signatures"].items() if k in self.record_digests}
                found[str(value["key_id"])] = Signer(str(value["public_key"]), lines)
        return found

    def documents(self) -> dict[str, bytes]:
        """Provenance and the like, as the list of members names them."""
        found = self._below("documents/")
        for label in found:
            self._same(label, self.members)
        return found

    def rows(self) -> list[Variant]:
        """(spec key, target) of every artifact, from the index."""
        data = self.parts["index.bin"]
        magic, count, step = INDEX_HEAD.unpack_from(data) if len(data) >= INDEX_HEAD.size else (b"", 0, 0)
        if magic != INDEX_MAGIC or step != INDEX_RECORD.size or len(data) != INDEX_HEAD.size + count * step:
            raise CorruptError(f"{self.where}: index.bin is no index")
        rows = [(key.hex(), t) for key, _, _, _, t in INDEX_RECORD.iter_unpack(data[INDEX_HEAD.size :])]
        if any(t >= len(TARGETS) for _, t in rows):
            raise CorruptError(f"{self.where}: index.bin names a target that does not exist")
        return [(key, TARGETS[t]) for key, t in rows]

    def _below(self, folder: str) -> dict[str, bytes]:
        return {label: data for label, data in self.parts.items() if label.startswith(folder)}


def _records(remote: Remote, ref: Reference, head: _Head, needed: set[Variant], where: str) -> dict[str, Record]:
    """The records of the needed variants, each compared with the list of members."""
    found: dict[str, Record] = {}
    left = set(needed)
    for target in sorted({target for _, target in needed}):
        label = f"records/{target}.jsonl"
        if label not in ref.objects:
            raise CorruptError(f"{where}: has no {label}")
        for line in fetch(remote, *ref.objects[label]).splitlines():
            record = parse_object(line, f"{where}: {label}")
            key, variant = str(record.get("build_key")), (str(record.get("spec_key")), target)
            if head.record_digests.get(key) != sha256_hex(line) or record.get("target") != target:
                raise CorruptError(f"{where}: {label} holds a record that the manifest does not name", found=key[:80])
            if variant in left:
                left.discard(variant)
                found[key] = record
    if left:
        raise CorruptError(f"{where}: lacks the records of {len(left)} variants that its index names")
    return found


def _blobs(remote: Remote, store: Store, records: Iterable[Record], progress: Progress | None) -> int:
    """Fetch into the store what is absent there; the number of bytes."""
    outputs = {o["sha256"]: int(o["size"]) for r in records for o in r["outputs"].values()}
    absent = {digest: size for digest, size in outputs.items() if not store.blobs.renew(digest, size)}
    total, done = sum(absent.values()), 0

    def get(digest: str) -> str:
        store.put_blob(fetch(remote, digest, absent[digest]))
        return digest

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for digest in pool.map(get, absent):
            done += absent[digest]
            if progress is not None:
                progress(done, total, digest[:16])
    return total


def _write(content: Content, head: _Head, is_whole: bool, out: str | os.PathLike[str]) -> None:
    from lqcd_aot.ship.content import opened
    from lqcd_aot.trust.sign import with_signatures

    write_content(content, out)
    if is_whole:
        with opened(out) as bundle:
            if bundle.manifest_sha256 != head.manifest_sha256:
                raise CorruptError(f"{head.where}: does not give the bundle that its manifest names")
            with_signatures(bundle, {n: d for n, d in head.parts.items() if n.startswith("signatures/")}, out)
