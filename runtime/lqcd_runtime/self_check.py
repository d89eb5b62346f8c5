"""Replays every witness of a bundle or store that this machine can run, and says why the others were not.

Owns the report and its exit code. A builder of fused blocks has no answer of its own: it passes with the fused artifacts that use
its blocks. An artifact that cannot be read or loaded has failed; the others are checked all the same.
"""

from __future__ import annotations

from lqcd_runtime.errors import EXIT_NO_VARIANT, EXIT_OK, EXIT_WITNESS, LqcdError, NoVariant
from lqcd_runtime.memory_use import available, replay_bytes
from lqcd_runtime.operator_choice import builder_entry
from lqcd_runtime.target import engine_of, this_host
from lqcd_runtime.witness import THREADS, question, replay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.target import Host

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Check:
    """name of the variant; status: "passed", "failed" or "skipped"; reason: one sentence; worst, bound: relative or None; error:
    what kept a failed one from being run at all.
    """

    __slots__ = ("bound", "error", "name", "reason", "status", "worst")

    def __init__(
        self, name: str, status: str, reason: str, worst: float | None = None, bound: float | None = None,
        error: LqcdError | None = None,
    ) -> None:  # fmt: skip
        self.name, self.status, self.reason, self.worst, self.bound, self.error = name, status, reason, worst, bound, error

    def as_dict(self) -> dict[str, Any]:
        """For `--json`; the error is infinite where the result holds NaN."""
        return {"name": self.name, "status": self.status, "reason": self.reason, "worst": self.worst, "bound": self.bound}

    def __str__(self) -> str:
        return f"{self.status}  {self.name}  {self.reason}"


def selfcheck(
    bundle: Bundle, host: Host | None = None, threads: Sequence[int] = THREADS, engine: str | None = None
) -> list[Check]:
    """One Check per entry, in the order of `bundle.entries()`. Raises nothing for a wrong number, nor for an artifact that cannot
    be read or loaded: that is a `failed` check. threads: each number is run, and all must give the same bits. engine: "cpu",
    "neuron" or "sim" to replay nothing else; "sim" is run only if it is named.
    """
    entries = list(bundle.entries())
    # By lattice, because entries of one lattice share the input links of their witnesses.
    by_lattice = sorted((e for e in entries if e.spec.kind != "builder"), key=lambda e: e.spec.lattice)
    done = {e.build_key: _check(bundle, e, host or this_host(), threads, engine) for e in by_lattice}
    users = _users_of_builders(bundle, entries)
    for entry in entries:
        if entry.spec.kind == "builder":
            done[entry.build_key] = _check_builder(
                entry, [done[k] for k in users.get(entry.build_key, [])], host or this_host(), engine
            )
    return [done[e.build_key] for e in entries]


def _check(bundle: Bundle, entry: Entry, host: Host, threads: Sequence[int], engine: str | None) -> Check:
    refusal = _refusal(entry, host, engine)
    if refusal is not None:
        return Check(entry.name, SKIPPED, refusal)
    if entry.witness is None:
        return Check(entry.name, SKIPPED, entry.witness_status)
    needed, free = replay_bytes(question(entry.spec)), available()
    if free is not None and needed > free:
        return Check(entry.name, SKIPPED, f"its replay needs {needed / 2**30:.1f} GiB, this machine has {free / 2**30:.1f} GiB")
    try:
        builder = bundle.load(builder_entry(bundle, entry)) if entry.spec.fused else None
        outcome = replay(entry, bundle.load(entry), builder, threads)
    except NoVariant as miss:
        return Check(entry.name, SKIPPED, miss.fact)
    except LqcdError as error:
        reason = error.fact if error.found is None else f"{error.fact} ({error.found})"
        return Check(entry.name, FAILED, reason, error=error)
    return Check(entry.name, PASSED if outcome.passed else FAILED, str(outcome), outcome.worst, outcome.bound)


def _refusal(entry: Entry, host: Host, engine: str | None) -> str | None:
    """None where the entry is to be replayed here. The simulator is no machine: it runs only what it is asked for by name."""
    if engine is not None and engine_of(entry.target) != engine:
        return f"runs on the {engine_of(entry.target)} engine, {engine} was asked for"
    if engine != "sim":
        return host.refusal_of(entry)
    from lqcd_runtime.engines.sim import refusal

    return refusal()


def _users_of_builders(bundle: Bundle, entries: list[Entry]) -> dict[str, list[str]]:
    """{build key of a builder: build keys of the fused entries that use it}."""
    users: dict[str, list[str]] = {}
    for entry in entries:
        if entry.spec.fused:
            try:
                users.setdefault(builder_entry(bundle, entry).build_key, []).append(entry.build_key)
            except NoVariant:
                continue
    return users


def _check_builder(entry: Entry, users: list[Check], host: Host, engine: str | None) -> Check:
    refusal = _refusal(entry, host, engine)
    if refusal is not None:
        return Check(entry.name, SKIPPED, refusal)
    ran = [c for c in users if c.status != SKIPPED]
    if not ran:
        return Check(entry.name, SKIPPED, "no fused operator beside it that could be replayed")
    failed = [c for c in ran if c.status == FAILED]
    # Blocks are shared: where one user is right and another wrong, the user is at fault, but nobody should rely on either.
    shown = (failed or ran)[0]
    status = FAILED if failed else PASSED
    return Check(entry.name, status, f"by {shown.name}: {shown.reason}", shown.worst, shown.bound, shown.error)


def exit_code(checks: list[Check]) -> int:
    """21 where a number was wrong, else that of the first error, else 20 where nothing at all could be checked, else 0."""
    failed = [c for c in checks if c.status == FAILED]
    if any(c.error is None for c in failed):
        return EXIT_WITNESS
    for check in failed:
        if check.error is not None:
            return check.error.exit_code
    return EXIT_OK if any(c.status == PASSED for c in checks) else EXIT_NO_VARIANT


def verdict(checks: list[Check]) -> tuple[str, str]:
    """(one line that counts, what to do about it or "")."""
    counts = ", ".join(f"{sum(c.status == status for c in checks)} {status}" for status in (PASSED, FAILED, SKIPPED))
    code = exit_code(checks)
    if code == EXIT_NO_VARIANT:
        return (
            f"NOTHING WAS CHECKED: {counts}",
            "none of these artifacts could be replayed on this machine; the reasons are above",
        )
    if code == EXIT_WITNESS:
        return counts, "these artifacts compute wrong numbers on this machine; do not use their results"
    return counts, "" if code == EXIT_OK else "these artifacts cannot be read or loaded; build or fetch them again"
