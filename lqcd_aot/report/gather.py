"""What a report says, as plain values: one row for each artifact, failures, divergences, builds.

Owns the reading, made for stores of 10,000 records: of each record only the part that a report needs is parsed. A record that is
not intact is counted, never hidden.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from lqcd_aot.build.event_log import Build, read_logs
from lqcd_aot.store.sealed import is_intact
from lqcd_runtime.errors import LqcdError
from lqcd_runtime.geometry import format_extents
from lqcd_runtime.signature import DTYPES

if TYPE_CHECKING:
    from lqcd_aot.store import Failure, Store

LONGEST_LOG = 20_000
PASSED = "passed"


class Row(NamedTuple):
    """One artifact. compile_ms: None where its record does not tell; checked: its witness passed."""

    operator: str
    lattice: str
    dtype: str
    batch: int
    fused: bool
    shards: int
    target: str
    build_key: str
    sha256: str
    size: int
    compile_ms: int | None
    checked: bool
    status: str

    @property
    def name(self) -> str:
        """As the variant is called, nearly: fields that are rarely used are left out."""
        more = ("-fused" if self.fused else "") + (f"-s{self.shards}" if self.shards != 1 else "")
        return f"{self.operator}-{self.lattice}-{DTYPES.get(self.dtype, self.dtype)}-b{self.batch}{more}@{self.target}"


class Failed(NamedTuple):
    """A remembered failure with its log, the last LONGEST_LOG characters."""

    failure: Failure
    log: str


class Facts(NamedTuple):
    """Everything a report says. unreadable: records that are not intact."""

    root: str
    rows: list[Row]
    failures: list[Failed]
    divergences: list[str]
    builds: list[Build]
    unreadable: int


def gather(store: Store) -> Facts:
    """The facts of a store and the layers below it. Writes nothing."""
    rows: dict[str, Row] = {}
    unreadable = 0
    for layer in (store, *store.lower):
        for build_key in layer.records.all_keys():
            row = _row(layer, build_key)
            if row is None:
                unreadable += 1
            else:
                rows.setdefault(build_key, row)
    failures = [store.failure(key) for key in store.failures.all_keys()]
    return Facts(
        store.root,
        sorted(rows.values()),
        [Failed(f, _log(store, f.log_sha256)) for f in failures if f is not None],
        store.records.divergences(),
        list(read_logs(store)),
        unreadable,
    )


def _row(store: Store, build_key: str) -> Row | None:
    """A row from a record, or None where it is not intact.

    Canonical JSON has its members sorted, so what stands before "outputs" (the pre-image of the key, the conventions) and the
    witness are cut out before parsing.
    """
    try:
        data = store.fs.read(store.layout.entry("records", build_key))
        if not is_intact(data):
            return None
        start = data.index(b'"outputs":')
        witness, status = data.rindex(b',"witness":'), data.rindex(b',"witness_status":')
        value = json.loads(b"{" + data[start:witness] + data[status:])
        spec, code = value["spec"], value["outputs"]["code"]
        return Row(
            str(spec["operator"]),
            format_extents(spec["lattice"]),
            str(spec["dtype"]),
            int(spec["batch"]),
            bool(spec["fused"]),
            int(spec["shards"]),
            str(value["target"]),
            build_key,
            str(code["sha256"]),
            int(code["size"]),
            value["provenance"].get("compile_ms"),
            value["witness_status"] == PASSED,
            str(value["witness_status"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _log(store: Store, digest: str | None) -> str:
    if digest is None:
        return "(no log was kept)"
    try:
        return store.read_blob(digest).decode("utf-8", "replace")[-LONGEST_LOG:]
    except LqcdError as error:
        return f"({error.fact})"
