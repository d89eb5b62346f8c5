"""The artifacts of a plan as one bundle file.

Owns: what is refused (absent artifacts, witnesses that do not agree, bytes that are not what their record says), the atomic
writing, and the verification before the file gets its name. The bundle's bytes are lqcd_runtime.bundle_writer's business.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from lqcd_aot.build.check import PASSED
from lqcd_aot.store import Record, Store
from lqcd_aot.store.outfile import write_file
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CorruptError, StoreError, UsageError, WitnessMismatch

if TYPE_CHECKING:
    from lqcd_aot.build.plan import PlanItem

UNCHECKED = "unchecked: "
SHOWN = 5


class Wanted(NamedTuple):
    """A variant to pack: its name and build key (None: it was never built). PlanItems become these by `wanted`."""

    name: str
    build_key: str | None


class Packed(NamedTuple):
    """path; artifacts in it; size in bytes; manifest_sha256; unchecked: {name: reason} of what no machine has checked yet."""

    path: str
    artifacts: int
    size: int
    manifest_sha256: str
    unchecked: dict[str, str]


def wanted(items: Iterable[PlanItem]) -> list[Wanted]:
    """From the items of a plan."""
    return [Wanted(item.variant.name, item.build_key) for item in items]


def pack(
    store: Store,
    variants: Iterable[Wanted],
    out: str | os.PathLike[str],
    *,
    name: str,
    recipe: Mapping[str, str],
    documents: Callable[[dict[str, Record]], Mapping[str, bytes]] | None = None,
) -> Packed:
    """Write the bundle `out` with the artifacts of these variants; the same store gives the same bytes.

    name: of the bundle; recipe: {"name", "sha256"} of its recipe file; documents: from records by build key to further
    members (lqcd_aot.ship.documents). The file appears complete and verified or not at all; one
    that was there is replaced only then. Errors: UsageError for absent artifacts or none at all, WitnessMismatch for a witness
    that failed, CorruptError for bytes that are not what they should be (they are put aside, so that the next build makes them
    again), StoreError for a destination that cannot be written.
    """
    records = _records(store, list(variants), recipe.get("name", name))
    _refuse_failed(records)
    target = Path(out).absolute()
    from lqcd_runtime.bundle_writer import write_bundle

    def write(sink: BinaryIO) -> dict[str, Any]:
        facts: dict[str, Any] = write_bundle(
            sink,
            name=name,
            recipe=recipe,
            records=list(records.values()),
            read_blob=lambda digest: _blob(store, digest),
            documents=documents({r["build_key"]: r for r in records.values()}) if documents else None,
        )
        return facts

    facts = write_file(target, write, what="bundle", check=_verify, fs=store.fs)
    unchecked = {n: r["witness_status"].removeprefix(UNCHECKED) for n, r in records.items() if r["witness_status"] != PASSED}
    return Packed(str(target), facts["count"], facts["size"], facts["manifest_sha256"], unchecked)


def _records(store: Store, variants: list[Wanted], recipe: str) -> dict[str, Record]:
    found = {v.name: store.record(v.build_key) if v.build_key else None for v in variants}
    absent = [name for name, record in found.items() if record is None]
    if absent:
        more = [f"... and {len(absent) - SHOWN} more"] if len(absent) > SHOWN else []
        raise UsageError(
            f"bundle of {recipe}: {len(absent)} of {len(found)} artifacts are not in store {store.root}",
            details=[*absent[:SHOWN], *more],
            hint=f"lqcd-aot build RECIPE --store {store.root}",
        )
    return {name: record for name, record in found.items() if record is not None}


def _refuse_failed(records: dict[str, Record]) -> None:
    failed = {n: r["witness_status"] for n, r in records.items() if r["witness_status"] != PASSED}
    failed = {n: status for n, status in failed.items() if not status.startswith(UNCHECKED)}
    if failed:
        raise WitnessMismatch(
            f"bundle: {len(failed)} artifacts do not agree with their witness",
            details=[f"{name}: {status}" for name, status in list(failed.items())[:SHOWN]],
            hint="build them again; wrong machine code is never sealed",
        )


def _blob(store: Store, digest: str) -> bytes:
    try:
        return store.read_blob(digest)
    except CorruptError:
        # Packing is a writing command: put the bytes aside now, so that the advice to build again is enough.
        with contextlib.suppress(StoreError):
            store.blobs.put_aside(digest, "content does not match its name")
        raise


def _verify(path: str) -> None:
    import lqcd_runtime

    with lqcd_runtime.open(path) as bundle:
        bundle.verify()


def recipe_facts(path: str | os.PathLike[str], name: str) -> dict[str, str]:
    """{"name", "sha256"} of a recipe file, as the manifest holds it."""
    return {"name": name, "sha256": sha256_hex(Path(path).read_bytes())}
