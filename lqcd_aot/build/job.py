"""Building one variant: lease, look again, compile, check, publish; and what is remembered of a failure.

Owns the order of these steps and the record. Deterministic failures stick; interruptions and timeouts are never recorded.
"""

from __future__ import annotations

import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lqcd_aot.build.check import Checked, Checker
from lqcd_aot.build.events import Progress
from lqcd_aot.build.plan import PlanItem
from lqcd_aot.compilers.base import SHARED_LIBRARY, Artifact
from lqcd_aot.store import Failure, Record, Store
from lqcd_runtime.conventions import CONVENTIONS
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CompileError, LqcdError, WitnessMismatch

if TYPE_CHECKING:
    from lqcd_aot.compilers import Toolchain

Outcome = Literal["reused", "built", "shared", "failed", "blocked"]
NEVER_RECORDED = frozenset({"interrupted", "timeout"})
# A lease covers one compile at its time limit, its witness and the writing.
LEASE_MARGIN_SECONDS = 120.0
LONGEST_LOG = 1 << 20


class Result(NamedTuple):
    """What became of one variant.

    outcome: reused (was in the store), built, shared (came meanwhile: another process built it, or the same bytes), failed,
    blocked (by the plan). record: of what was built or shared. error: what went wrong. failure_class: of a failed compile, or
    "witness".
    """

    item: PlanItem
    outcome: Outcome
    record: Record | None = None
    error: LqcdError | None = None
    failure_class: str | None = None
    attempts: int = 0

    def as_json(self) -> dict[str, Any]:
        """What `build --json` prints of it."""
        return {
            "name": self.item.variant.name,
            "spec_key": self.item.spec_key,
            "build_key": self.item.build_key,
            "decision": self.item.decision,
            "outcome": self.outcome,
            "witness_status": self.record["witness_status"] if self.record else None,
            "compile_ms": self.record["provenance"].get("compile_ms") if self.record else None,
            "failure_class": self.failure_class,
            "error": self.error.as_json() if self.error else None,
        }


class Builder:
    """Builds single items into one store. Safe for several threads."""

    def __init__(self, store: Store, toolchain: Toolchain, checker: Checker, progress: Progress, workdir: Path | None) -> None:
        self._store, self._toolchain, self._checker = store, toolchain, checker
        self._progress, self._workdir = progress, workdir

    def build(self, item: PlanItem, attempt: int) -> Result | None:
        """The result, or None while another live process builds the same key. attempt: 1 for the first.

        Errors: StoreError where the store cannot be written; KeyboardInterrupt.
        """
        variant, build_key = item.variant, _key(item)
        shared = self._shared(item)
        if shared is not None:
            return shared
        lease = self._store.lease(build_key, seconds=variant.timeout_s + LEASE_MARGIN_SECONDS)
        if lease is None:
            return None
        try:
            # Whoever held the lease a moment ago may have published.
            return self._shared(item) or self._compile(item, attempt)
        finally:
            lease.release()

    def _shared(self, item: PlanItem) -> Result | None:
        record = self._store.sound_record(_key(item))
        if record is None:
            return None
        self._progress.tell("shared", item.variant.name, "it is there by now")
        return Result(item, "shared", record)

    def _compile(self, item: PlanItem, attempt: int) -> Result:
        name, timeout = item.variant.name, item.variant.timeout_s
        self._progress.tell("started", name)
        started = time.monotonic()
        assert item.program is not None
        try:
            code = self._toolchain.compile(item.program, item.variant.target, timeout=timeout, workdir=self._workdir)
            compiled = time.monotonic()
            self._progress.tell("compiled", name, f"{compiled - started:.2f} s")
            made = self._toolchain.artifact(item.program, code, item.variant.target)
            record = new_record(item, code, made, compile_ms=round(1000 * (compiled - started)))
            checked = self._checker.check(item.variant.spec, record, code, timeout)
        except CompileError as error:
            return Result(item, "failed", None, error, error.failure_class, attempt)
        except WitnessMismatch as error:
            return Result(item, "failed", None, error, "witness", attempt)
        self._progress.tell("verified", name, checked.text)
        self._store.put_blob(code)
        published = self._store.publish(with_witness(record, checked))
        detail = "other bytes were there already; a divergence is recorded" if published.outcome == "diverged" else ""
        self._progress.tell("published", name, detail)
        return Result(item, "built", published.record, attempts=attempt)

    def finish_failed(self, result: Result) -> None:
        """Remember a failure that is final, as far as it is worth remembering, and tell it."""
        error, failure_class, key = result.error, result.failure_class or "unknown", result.item.key
        assert error is not None and key is not None
        if failure_class not in NEVER_RECORDED:
            log = getattr(error, "log", "") or str(error)
            digest = self._store.put_blob(log.encode("utf-8", "replace")[-LONGEST_LOG:])
            failure = Failure(
                build_key=_key(result.item),
                name=result.item.variant.name,
                failure_class=failure_class,
                attempts=result.attempts,
                fact=error.fact,
                log_sha256=digest,
                toolchain=dict(key.components["toolchain"]),
            )
            self._store.record_failure(failure)
        self._progress.tell("failed", result.item.variant.name, f"{failure_class}: {error.fact}")


def new_record(item: PlanItem, code: bytes, made: Artifact = SHARED_LIBRARY, *, compile_ms: int) -> Record:
    """The build record of an artifact, still without its witness. made: what its toolchain says of the bytes."""
    assert item.key is not None
    return {
        "schema": "lqcd-aot/record/v1",
        "build_key": item.key.hex,
        "spec_key": item.spec_key,
        "spec": item.variant.spec.as_dict(),
        "target": item.variant.target,
        "components": item.key.components,
        "conventions": CONVENTIONS,
        "outputs": {"code": {"sha256": sha256_hex(code), "size": len(code), "media_type": made.media_type}},
        **made.members,
        "witness": None,
        "witness_status": "unchecked: not yet",
        "provenance": {"compile_ms": compile_ms, "machine": platform.machine(), "python": platform.python_version()},
    }


def with_witness(record: Record, checked: Checked) -> Record:
    """The record as it is published."""
    return {**record, "witness": checked.witness, "witness_status": checked.status}


def _key(item: PlanItem) -> str:
    assert item.build_key is not None
    return item.build_key
