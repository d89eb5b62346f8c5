"""What a bundle holds as one value: name, recipe, records, bytes, documents, signatures of records.

Owns the way from a bundle file to that value and back. Signatures of records travel as long as their record does; a signature
of a manifest ends with its manifest, and only `lqcd_aot.trust.sign` makes a new one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.store.outfile import write_file
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.manifest import Entry, entry_dict, parse_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lqcd_aot.store.fs import FileSystem
    from lqcd_runtime.bundle_file import BundleFile

Record = dict[str, Any]


class Signer(NamedTuple):
    """Signatures of records by one key: {build key: (SHA-256 of the record, base64 of the signature)}."""

    public_key: str
    lines: Mapping[str, tuple[str, str]]


class Content(NamedTuple):
    """name and recipe as in the manifest; records by build key; read_blob: digest -> verified bytes; documents: member name ->
    bytes; signers: {key id: Signer}.
    """

    name: str
    recipe: Mapping[str, str]
    records: Mapping[str, Record]
    read_blob: Callable[[str], bytes]
    documents: Mapping[str, bytes]
    signers: Mapping[str, Signer]

    def entries(self) -> list[Entry]:
        """The entries of all records."""
        return [Entry.from_dict(entry_dict(r), f"record {key[:12]}") for key, r in self.records.items()]

    def only(self, build_keys: Iterable[str]) -> Content:
        """The same with these records alone; documents and signatures follow."""
        from lqcd_aot.ship.documents import for_records

        kept = {key: self.records[key] for key in sorted(build_keys)}
        return self._replace(records=kept, documents=for_records(self.documents, kept))


@contextmanager
def opened(path: str | os.PathLike[str], *, verify: bool = True) -> Iterator[BundleFile]:
    """A bundle file, verified whole unless `verify` is False. Errors: LqcdError, CorruptError, TooNewError."""
    from lqcd_runtime.bundle_file import BundleFile

    bundle = BundleFile(os.fspath(path))
    try:
        if verify:
            bundle.verify()
        yield bundle
    finally:
        bundle.close()


def content_of(bundle: BundleFile, build_keys: Iterable[str] | None = None) -> Content:
    """The content of a verified bundle, of these records alone where they are named. It reads from the bundle, which must stay
    open. Errors: CorruptError."""
    listed = bundle.members()
    wanted = [n[8:-5] for n in listed if n.startswith("records/")] if build_keys is None else sorted(build_keys)
    records = {key: parse_object(bundle.record(key), f"record {key[:12]}") for key in wanted}
    documents = {n: bundle.document(n) for n in listed if n.startswith("documents/")}
    manifest = bundle.manifest
    content = Content(manifest["name"], manifest["recipe"], records, bundle.read_blob, documents, signers_of(bundle))
    return content if build_keys is None else content.only(wanted)


def signers_of(bundle: BundleFile) -> dict[str, Signer]:
    """The signatures of records in a bundle, those that are right. Errors: CorruptError for ones that are not."""
    from lqcd_runtime.errors import CorruptError
    from lqcd_runtime.signatures import members, signatures

    for signature in signatures(bundle):
        if signature.problem is not None:
            raise CorruptError(f"{bundle.where}: {signature}", hint="fetch it again from its maker")
    digests = {n[8:-5]: f["sha256"] for n, f in bundle.members().items() if n.startswith("records/")}
    found = {}
    for name, data in members(bundle).items():
        if name.endswith(".records.json"):
            value = parse_object(data, name)
            lines = {key: (digests[key], sig) for key, sig in value["signatures"].items() if key in digests}
            found[str(value["key_id"])] = Signer(str(value["public_key"]), lines)
    return found


def write_content(content: Content, out: str | os.PathLike[str], *, fs: FileSystem | None = None) -> dict[str, Any]:
    """Write it as a bundle file; equal contents give equal bytes. Returns {"manifest_sha256", "size", "count"}.

    Errors: UsageError for no records or two of one variant, CorruptError, StoreError.
    """
    from lqcd_runtime.bundle_writer import write_bundle

    facts: dict[str, Any] = write_file(
        out,
        lambda sink: write_bundle(
            sink,
            name=content.name,
            recipe=content.recipe,
            records=list(content.records.values()),
            read_blob=content.read_blob,
            documents=content.documents,
            signatures=_record_signatures(content),
        ),
        what="bundle",
        check=_check,
        fs=fs,
    )
    return facts


def _record_signatures(content: Content) -> dict[str, bytes]:
    from lqcd_aot.trust.sign import records_member

    if not content.signers:
        return {}
    digests = {key: sha256_hex(canonical_json(record)) for key, record in content.records.items()}
    members = {}
    for key_id, signer in content.signers.items():
        lines = {key: sig for key, (digest, sig) in signer.lines.items() if digests.get(key) == digest}
        if lines:
            name, data = records_member(key_id, signer.public_key, lines)
            members[name] = data
    return members


def _check(path: str) -> None:
    with opened(path):
        pass
