"""Bundles made of bundles: create from a store, extract, merge, slim.

Owns what each verb keeps. Inputs are verified whole; outputs are verified before they get their name; equal inputs give equal
bytes. Every result keeps the record signatures of its records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from lqcd_aot.ship.choose import Machine
from lqcd_aot.ship.content import Content, Record, Signer, content_of, opened, write_content
from lqcd_aot.ship.documents import merged
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.signature import suggest
from lqcd_runtime.target import NEURON_TARGETS

if TYPE_CHECKING:
    from lqcd_aot.store import Store
    from lqcd_runtime.bundle_file import BundleFile
    from lqcd_runtime.manifest import Entry

Path = str | os.PathLike[str]


def create(store: Store, out: Path, *, name: str, patterns: Sequence[str] = ()) -> dict[str, Any]:
    """A bundle of what a store holds: of every spec and target the latest record, by name patterns where given.

    The recipe of such a bundle is {"name": name, "sha256": digest of its build keys}. Errors: NoVariant, UsageError, StoreError.
    """
    latest = {k: r for spec in store.spec_keys() for r in store.records_of_spec(spec).values() if (k := r["build_key"])}
    content = of_records(name, latest, store.read_blob)
    if patterns:
        content = content.only(_named({e.build_key: e.name for e in content.entries()}, patterns))
    return write_content(content, out, fs=store.fs)


def of_records(name: str, records: dict[str, Record], read_blob: Callable[[str], bytes]) -> Content:
    """Content made of records, named by what it holds."""
    if not records:
        raise NoVariant("store: holds no artifacts", hint="lqcd-aot build RECIPE")
    recipe = {"name": name, "sha256": sha256_hex("\n".join(sorted(records)).encode("ascii"))}
    return Content(name, recipe, dict(sorted(records.items())), read_blob, {}, {})


def extract(source: Path, out: Path, patterns: Sequence[str]) -> dict[str, Any]:
    """The artifacts whose names (spec@target) match one of the patterns, as a bundle. Errors: NoVariant, CorruptError."""
    with opened(source) as bundle:
        kept = _named({e.build_key: e.name for e in bundle.entries()}, patterns)
        return write_content(content_of(bundle, kept), out)


def slim(source: Path, out: Path, machine: Machine) -> dict[str, Any]:
    """Only what one machine would use: of each spec the best target it executes. Errors: NoVariant, CorruptError."""
    with opened(source) as bundle:
        rows = ((i, *bundle.row(i)) for i in range(bundle.count))
        usable = [(key.hex(), target, i) for i, key, _, _, _, target in rows if _is_for(machine, bundle, i, target)]
        kept = [bundle.entry(i).build_key for i in machine.best(usable)]
        return write_content(content_of(bundle, kept), out)


def _is_for(machine: Machine, bundle: BundleFile, i: int, target: str) -> bool:
    """Whether a machine may use an index row: of NeuronCores only the entry tells; `best` judges all other targets."""
    return target not in NEURON_TARGETS or machine.executes(bundle.entry(i))


def merge(sources: Sequence[Path], out: Path, *, name: str) -> dict[str, Any]:
    """All artifacts of several bundles. One variant built twice with equal code is taken once, from the first.

    Errors: UsageError where two bundles hold different machine code for one variant; CorruptError.
    """
    with ExitStack() as stack:
        contents = [content_of(stack.enter_context(opened(source))) for source in sources]
        records: dict[tuple[str, str], Record] = {}
        readers: dict[str, Callable[[str], bytes]] = {}
        for source, content in zip(sources, contents, strict=True):
            for entry in content.entries():
                record = content.records[entry.build_key]
                there = records.setdefault((entry.spec_key, entry.target), record)
                _same_code(there, record, entry, source)
                for output in record["outputs"].values():
                    readers.setdefault(output["sha256"], content.read_blob)
        made = of_records(name, {r["build_key"]: r for r in records.values()}, lambda digest: readers[digest](digest))
        documents = merged([content.documents for content in contents], made.records)
        return write_content(made._replace(documents=documents, signers=_joined(contents)), out)


def _same_code(there: Record, record: Record, entry: Entry, source: Path) -> None:
    mine, theirs = record["outputs"]["code"]["sha256"], there["outputs"]["code"]["sha256"]
    if mine != theirs:
        raise UsageError(
            f"bundle {os.fspath(source)}: has other machine code for {entry.name} than a bundle before it",
            expected=theirs,
            found=mine,
            hint="lqcd-aot diff tells the builds apart; lqcd-aot bundle extract leaves one of them out",
        )


def _joined(contents: Iterable[Content]) -> dict[str, Signer]:
    """All signatures; where two bundles hold a record of one build key, the record's own digest tells which one is signed."""
    joined: dict[str, Signer] = {}
    for content in contents:
        for key_id, signer in content.signers.items():
            before = joined.get(key_id, Signer(signer.public_key, {}))
            joined[key_id] = Signer(signer.public_key, {**signer.lines, **before.lines})
    return joined


def _named(names: dict[str, str], patterns: Sequence[str]) -> list[str]:
    """The build keys, of {build key: name}, whose names match one of the patterns. Errors: NoVariant if one matches none."""
    unused = [p for p in patterns if not any(fnmatchcase(n, p) for n in names.values())]
    if unused:
        raise NoVariant(f"artifact {unused[0]}: is not here{suggest(unused[0], names.values())}", hint="lqcd-aot ls BUNDLE")
    return [key for key, name in names.items() if any(fnmatchcase(name, p) for p in patterns)]
