"""Another program's benchmark, run in turns with ours, and the ratio of each row.

The protocol: COMMAND is run by the shell, pinned as our rows are. It prints one JSON object a line for each of its rows:

    {"operator": "wilson_hop", "dtype": "float32", "lattice": "8x8x8x8", "batch": 1, "threads": 1, "seconds": 1.3e-4}

seconds: of one application to all right-hand sides (of a solver, one iteration). Optional: "storage" (dtype by default), "peer"
(its name). Lines that do not begin with { are its own business. Words in braces are filled in from our row, {operator} {dtype}
{storage} {lattice} {batch} {threads} {T} {Z} {Y} {X}: COMMAND is then run once for each different text, else once for all rows,
in each of ROUNDS rounds, right before our rows that it is for.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from lqcd_aot.bench import rows as rows_
from lqcd_aot.bench.machine import pinned
from lqcd_aot.bench.rows import Row
from lqcd_runtime.errors import LqcdError, UsageError
from lqcd_runtime.geometry import format_extents, parse_extents
from lqcd_runtime.signature import Spec

ROUNDS = 3
TIMEOUT = 3600
NEEDED = ("operator", "dtype", "lattice", "batch", "threads", "seconds")
Question = tuple[Spec, int]  # and the number of threads
Key = tuple[str, str, str, tuple[int, ...], int, int]


class PeerRow(NamedTuple):
    """key: what was timed; seconds; name: of the peer, "" where it gives none."""

    key: Key
    seconds: float
    name: str


def key_of(spec: Spec, threads: int) -> Key:
    """What a peer's row is found by."""
    return spec.operator, spec.dtype, spec.storage, tuple(spec.lattice), spec.batch, threads


def parse(text: str) -> list[PeerRow]:
    """The rows in a peer's output. Errors: UsageError for a row that is none, with its line."""
    return [_row(line) for line in map(str.strip, text.splitlines()) if line.startswith("{")]


def _row(line: str) -> PeerRow:
    try:
        found = json.loads(line)
        absent = [name for name in NEEDED if name not in found]
        if absent:
            raise ValueError(f"it lacks {', '.join(absent)}")
        seconds = float(found["seconds"])
        if not 0 < seconds < float("inf"):
            raise ValueError(f"seconds = {seconds}")
        key = (
            str(found["operator"]), str(found["dtype"]), str(found.get("storage", found["dtype"])),
            tuple(parse_extents(found["lattice"])), int(found["batch"]), int(found["threads"]),
        )  # fmt: skip
        return PeerRow(key, seconds, str(found.get("peer", "")))
    except (ValueError, TypeError, LqcdError) as error:
        raise UsageError(
            "peer: printed a row that cannot be read", expected=f"a JSON object with {', '.join(NEEDED)}", found=line[:200],
            details=[str(error)],
        ) from error  # fmt: skip


def filled(command: str, spec: Spec, threads: int) -> str:
    """COMMAND for a row. Other braces stay, they may be the shell's."""
    t, z, y, x = spec.lattice
    values = {
        "operator": spec.operator, "dtype": spec.dtype, "storage": spec.storage, "lattice": format_extents(spec.lattice),
        "batch": spec.batch, "threads": threads, "T": t, "Z": z, "Y": y, "X": x,
    }  # fmt: skip
    for name, value in values.items():
        command = command.replace("{" + name + "}", str(value))
    return command


def call(command: str, cpus: Sequence[int]) -> list[PeerRow]:
    """Run a filled COMMAND. Errors: UsageError where it fails, with the end of what it said."""
    with pinned(cpus):
        try:
            done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired as error:
            raise UsageError(f"peer {command!r}: ran for more than {TIMEOUT} s") from error
    if done.returncode != 0:
        raise UsageError(
            f"peer {command!r}: failed", found=f"exit code {done.returncode}", details=done.stderr.splitlines()[-5:]
        )  # fmt: skip
    return parse(done.stdout)


def interleaved(
    questions: Sequence[Question], command: str, own: Callable[[Question], Row], cpus_of: Callable[[int], Sequence[int]],
    run: Callable[[str, Sequence[int]], Iterable[PeerRow]] = call,
) -> tuple[list[Row], list[str]]:  # fmt: skip
    """Our rows with the peer in their place of `peer`, and sentences on rows that only one side has.

    own: measures one question; run: `call`. The row is our median round; the ratio is the median of the rounds' ratios.
    """
    groups: dict[str, list[Question]] = {}
    for spec, threads in questions:
        groups.setdefault(filled(command, spec, threads), []).append((spec, threads))
    ours: dict[Question, list[Row]] = {q: [] for q in questions}
    theirs: dict[Key, list[PeerRow]] = {}
    for _ in range(ROUNDS):
        for text, members in groups.items():
            for found in run(text, cpus_of(max(threads for _, threads in members))):
                theirs.setdefault(found.key, []).append(found)
            for question in members:
                ours[question].append(own(question))
    asked = {key_of(*q): q for q in questions}
    notes = [f"the peer has no row for {spec.name}, {n} threads" for (spec, n) in questions if key_of(spec, n) not in theirs]
    notes += [f"the peer timed {key[0]} {format_extents(key[3])} {key[1]} batch {key[4]}, {key[5]} threads, which we did not"
              for key in theirs if key not in asked]  # fmt: skip
    return [_joined(ours[q], theirs.get(key_of(*q), []), command) for q in questions], notes


def _joined(ours: list[Row], theirs: list[PeerRow], command: str) -> Row:
    middle = dict(sorted(ours, key=lambda row: row["seconds"])[len(ours) // 2])
    middle |= {"fastest": min(r["fastest"] for r in ours), "slowest": max(r["slowest"] for r in ours)}
    if not theirs:
        return middle | {"peer": None}
    ratios = [b.seconds / a["seconds"] for a, b in zip(ours, theirs, strict=False)]
    name = theirs[0].name or command.split()[0]
    seconds = statistics.median(b.seconds for b in theirs)
    return middle | {
        "peer": rows_.peer(name, seconds, middle["seconds"]) | {"ratio": statistics.median(ratios), "ratios": ratios}
    }
