"""Selection: which artifact of a spec this machine runs, with one decision for every candidate; and what is nearest on a miss.

Owns the order of targets (best target <= host), the sentences of refusal, the distance between specs. Reads no file and loads
nothing. There is no fallback: equality of the spec, then a target the host can execute, or `NoVariant`.
"""

from __future__ import annotations

from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.target import ENGINES, SIM_TARGET, engine_of, rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.signature import Spec
    from lqcd_runtime.target import Host

    Tag = TypeVar("Tag")

# What a user would rather give up last stands first; used only among candidates with equally many differing fields.
_WEIGHT = {
    "operator": 128.0, "lattice": 64.0, "nc": 32.0, "dtype": 16.0, "storage": 8.0,
    "constants": 4.0, "fused": 2.0, "shards": 1.0, "batch": 0.5, "iterations": 0.25,
}  # fmt: skip


class Accepted:
    """This host can run the candidate."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"{self.name}  accepted"


class Rejected:
    """This host cannot, or must not, run the candidate; `reason` is one sentence."""

    __slots__ = ("name", "reason")

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.name}  {self.reason}"


class Selection:
    """`choice`: the entry to load; `decisions`: one Accepted or Rejected per candidate, best target first."""

    __slots__ = ("choice", "decisions")

    def __init__(self, choice: Entry, decisions: tuple[Accepted | Rejected, ...]) -> None:
        self.choice = choice
        self.decisions = decisions


def select(
    spec: Spec,
    entries: Sequence[Entry],
    host: Host,
    *,
    rejected: Sequence[Rejected] = (),
    nearest: Callable[[], Entry | None] | None = None,
    where: str = "bundle",
    engine: str | None = None,
) -> Selection:
    """Choose among the entries of one spec.

    rejected: candidates that could not even be read; nearest: asked on a miss only; engine: "cpu", "neuron" or "sim" to accept
    no other; None: a NeuronCore where there is one, else the CPU, never a simulation.
    Errors: UsageError for an unknown engine; NoVariant with all decisions, the nearest candidate and
    {field: (asked, nearest has)}.
    """
    check_engine(engine)
    decisions: list[Accepted | Rejected] = []
    choice: Entry | None = None
    for entry in sorted(entries, key=lambda e: (*(-n for n in host.preference(e.target)), e.target)):
        reason = refusal(entry, host, engine)
        if reason is None:
            decisions.append(Accepted(entry.name))
            choice = choice or entry
        else:
            decisions.append(Rejected(entry.name, reason))
    decisions += rejected
    if choice is not None:
        return Selection(choice, tuple(decisions))
    if entries:
        raise _wrong_machine(spec, entries, host, tuple(decisions), where)
    raise _absent(spec, tuple(decisions), nearest() if nearest else None, where)


def check_engine(engine: str | None) -> None:
    """Errors: UsageError for a word that is no engine."""
    if engine is not None and engine not in ENGINES:
        raise UsageError(f"engine {engine!r}: is not known", expected=", ".join(ENGINES))


def refusal(entry: Entry, host: Host, engine: str | None = None) -> str | None:
    """None where a host runs an entry on the engine asked for, else one sentence why not."""
    if engine is not None and engine_of(entry.target) != engine:
        return f'runs on engine "{engine_of(entry.target)}", asked for is "{engine}"'
    return None if engine == "sim" else host.refusal_of(entry)


def _wrong_machine(
    spec: Spec, entries: Sequence[Entry], host: Host, decisions: tuple[Accepted | Rejected, ...], where: str
) -> NoVariant:
    from lqcd_runtime.expressible import why_not

    best = host.best_target()
    can_be = best is not None and why_not(spec, "cpu") is None
    hint = f'build a variant with target = "{best}"' if can_be else "run on another machine"
    if all(e.target == SIM_TARGET for e in entries):
        hint = 'engine="sim" runs the simulation; it proves a program and is no use for physics'
    # The one with the fewest unmet needs: the lowest target of the host's architecture, else the lowest of all.
    near = min(entries, key=lambda e: (not _same_architecture(e.target, host), rank(e.target), e.target))
    return NoVariant(
        f"no variant of {spec.name} in {where} runs on this machine",
        details=[str(d) for d in decisions],
        expected=f"a target that {best or host.architecture} can execute",
        found=", ".join(sorted(e.target for e in entries)),
        hint=hint,
        decisions=decisions,
        nearest=near.name,
        differing={"target": (best, near.target)},
    )


def _same_architecture(target: str, host: Host) -> bool:
    from lqcd_runtime.target import CPU_TARGETS

    return target in CPU_TARGETS and CPU_TARGETS[target][0] == host.architecture


def _absent(spec: Spec, decisions: tuple[Accepted | Rejected, ...], near: Entry | None, where: str) -> NoVariant:
    from lqcd_runtime.expressible import advice

    details = [str(d) for d in decisions]
    differing: dict[str, tuple[object, object]] = {}
    if near is not None:
        lines, differing = explain_nearest(spec, near)
        details += lines
    return NoVariant(
        f"no variant of {where} is {spec.name}",
        details=details,
        hint=advice(spec) if not decisions else "lqcd-aot store verify --repair",
        decisions=decisions,
        nearest=near.name if near else None,
        differing=differing,
    )


def explain_nearest(spec: Spec, near: Entry) -> tuple[list[str], dict[str, tuple[object, object]]]:
    """(lines that say which entry is nearest and in what it differs, {field: (asked, it has)}): one text for all who tell it."""
    # The digest in `constants` says nothing to a person; `baked` shows the values.
    differing = {k: v for k, v in spec.differs(near.spec).items() if k != "constants"}
    lines = [f"  {field}: asked {asked}, it has {has}" for field, (asked, has) in differing.items()]
    return [f"nearest: {near.name}", *lines], differing


def distance(asked: dict[str, Any], has: dict[str, Any]) -> tuple[int, float]:
    """(number of differing fields, how much they matter) between two `Spec.as_dict()`.

    What follows from another field is not counted: storage where it follows dtype on both sides, `baked` beside `constants`.
    """
    differ = [f for f in _WEIGHT if asked.get(f) != has.get(f)]
    if "dtype" in differ and "storage" in differ and asked["storage"] == asked["dtype"] and has["storage"] == has["dtype"]:
        differ.remove("storage")
    cost = sum(_WEIGHT[f] for f in differ)
    if "operator" in differ and asked["operator"].partition("_")[0] != has["operator"].partition("_")[0]:
        cost += 32.0  # wilson_dagger is nearer to wilson than to clover
    if "lattice" in differ:
        cost += min(sum(max(a, b) / min(a, b) - 1 for a, b in zip(asked["lattice"], has["lattice"], strict=True)), 31.0)
    for f in ("batch", "shards", "iterations"):
        if f in differ:
            cost += min(abs(asked[f] - has[f]), 64) / 256
    return len(differ), cost


def nearest_spec(asked: Spec, texts: Iterable[tuple[Tag, bytes]]) -> Tag | None:
    """The tag of the nearest among (tag, canonical JSON of a spec), the first of equals; None for no texts.

    Only those are parsed that can be nearest: canonical JSON falls into its members at ',"' (and a baked value into more), so the
    members of the asked spec that do not stand in a text as they are count the differing ones from below.
    """
    import json

    from lqcd_runtime.digest import canonical_json

    mine = asked.as_dict()
    # storage is left out: where it follows dtype it is not counted. The first member begins with the object's brace, not counted.
    members = {canonical_json({f: mine[f]})[2:-1] for f in _WEIGHT if f != "storage"}
    at_least: dict[int, list[tuple[int, Tag, bytes]]] = {}
    for place, (tag, text) in enumerate(texts):
        # The last member ends with the object's brace.
        differ = len(members.difference(text[:-1].split(b',"')))
        at_least.setdefault(differ, []).append((place, tag, text))
    best: Tag | None = None
    least: tuple[int, float, int] | None = None
    for differ in sorted(at_least):
        if least is not None and differ > least[0]:
            break
        for place, tag, text in at_least[differ]:
            far = (*distance(mine, json.loads(text)), place)
            if least is None or far < least:
                best, least = tag, far
    return best
