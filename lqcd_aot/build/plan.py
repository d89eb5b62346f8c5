"""What a build would do: per variant reuse, build or blocked, each with a reason that shows both values.

Owns the decision and its explanation. Starts no compiler and writes nothing. Bytes are reused where the store's journal knows
their file, or where they were hashed now (store/inventory.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lqcd_aot.build.explain import Explainer
from lqcd_aot.build.inexpressible import refuse_inexpressible
from lqcd_aot.keys import Change, Key, both_keys
from lqcd_aot.recipe.variant import Variant
from lqcd_runtime.errors import UsageError

if TYPE_CHECKING:
    from lqcd_aot.compilers import Toolchain
    from lqcd_aot.program import Program
    from lqcd_aot.recipe import Recipe
    from lqcd_aot.store import Inventory, Store
    from lqcd_runtime.signature import Spec

Decision = Literal["reuse", "build", "blocked"]
HISTORY_RECORDS = 64


class PlanItem(NamedTuple):
    """The decision on one variant.

    variant: its memory_bytes raised to what the toolchain guesses where it is to be built. key, program: None where there is no
    compiler for the target. changes: the components that differ from the latest record of the same spec and target. estimate:
    seconds one compile took in earlier builds like this one, None where unknown or where nothing is to be compiled. reused: the
    build key reused where, without a compiler, no key can be made.
    """

    variant: Variant
    spec_key: str
    key: Key | None
    program: Program | None
    decision: Decision
    reason: str
    changes: tuple[Change, ...] = ()
    estimate: float | None = None
    reused: str | None = None

    @property
    def build_key(self) -> str | None:
        """64 hex digits: the key to build, or of the record reused; None where there is neither."""
        return self.key.hex if self.key is not None else self.reused

    def as_json(self) -> dict[str, Any]:
        """What `plan --json` prints of it."""
        return {
            "name": self.variant.name,
            "target": self.variant.target,
            "spec_key": self.spec_key,
            "build_key": self.build_key,
            "decision": self.decision,
            "reason": self.reason,
            "changes": [change._asdict() for change in self.changes],
            "estimate_seconds": self.estimate,
        }


def plan(
    variants: Iterable[Variant],
    store: Store | None,
    toolchain: Toolchain | None,
    *,
    retry_failed: bool = False,
    program_for: Callable[[Spec, str], Program] | None = None,
    inventory: Inventory | None = None,
    recipe: Recipe | None = None,
) -> list[PlanItem]:
    """Decide on every variant, in order.

    store: None where there is none yet; toolchain: None where no compiler was found (what is in the store is reused, the rest is
    blocked); retry_failed: build what failed deterministically before; program_for: lqcd_aot.program.program_for if None;
    inventory: of this store, where the caller has it already; recipe: where the variants come from, for messages.
    Errors: RecipeError where a program cannot express some variants, with one [[exclude]] to add for each kind of them.
    """
    if program_for is None:
        from lqcd_aot import program

        program_for = program.program_for
    return _Planner(store, toolchain, retry_failed, program_for, inventory).run(list(variants), recipe)


def predicted_seconds(items: Iterable[PlanItem]) -> float | None:
    """Compile seconds of all items to build, one after the other; None where the history knows nothing of one of them."""
    known = [item.estimate for item in items if item.decision == "build"]
    return None if None in known else sum(seconds for seconds in known if seconds is not None)


class _Planner:
    def __init__(
        self,
        store: Store | None,
        toolchain: Toolchain | None,
        retry_failed: bool,
        program_for: Callable[[Spec, str], Program],
        inventory: Inventory | None,
    ) -> None:
        self.program_for = program_for
        self.store, self.toolchain, self.retry_failed = store, toolchain, retry_failed
        # One walk over each folder; asking the store once a variant would take as many file operations as there are variants.
        self.inventory = inventory or (store.inventory() if store else None)
        self.usable = frozenset(self.inventory.where if self.inventory else ())
        self.failed = frozenset(store.failures.all_keys() if store else ())
        self.explainer = Explainer(store, self.usable)
        self.refusals: dict[str, str | None] = {}
        self.compiler: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {}

    def run(self, variants: list[Variant], recipe: Recipe | None) -> list[PlanItem]:
        items, inexpressible = [], {}
        for variant in variants:
            try:
                items.append(self.decide(variant))
            except UsageError as why:
                inexpressible[variant] = why
        refuse_inexpressible(variants, inexpressible, recipe)
        return self.estimated(items)

    def decide(self, variant: Variant) -> PlanItem:
        spec, target = variant.spec, variant.target
        if self.toolchain is None:
            return self.without_compiler(variant, "there is no compiler here")
        refusal = self.refusal(self.toolchain, target)
        if refusal is not None:
            return self.without_compiler(variant, f"no compiler for target {target}: {refusal}")
        program = self.program_for(spec, target)
        spec_key, key = both_keys(spec, program.digest, *self.compiler[target], target, variant.salt)
        wrong = None
        if key.hex in self.usable and self.inventory is not None:
            wrong = self.inventory.wrong(key.hex)
            if wrong is None:
                reason = f"artifact {key.hex[:12]} is in {self.where(key.hex)}"
                return PlanItem(variant, spec_key, key, program, "reuse", reason)
        failed = self.failed_before(key.hex) if key.hex in self.failed and not self.retry_failed else None
        if failed is not None:
            return PlanItem(variant, spec_key, key, program, "blocked", failed)
        guess = self.toolchain.memory(program, target)
        if guess is not None:
            variant = variant._replace(memory_bytes=max(guess, variant.memory_bytes))
        if wrong is not None:
            reason = f"artifact {key.hex[:12]} is in {self.where(key.hex)}, but {wrong}"
            return PlanItem(variant, spec_key, key, program, "build", reason)
        reason, changes = self.explainer.explain(spec_key, key, target)
        return PlanItem(variant, spec_key, key, program, "build", reason, changes)

    def refusal(self, toolchain: Toolchain, target: str) -> str | None:
        if target not in self.refusals:
            self.refusals[target] = toolchain.refusal(target)
            if self.refusals[target] is None:
                self.compiler[target] = toolchain.identity(target), toolchain.flags(target)
        return self.refusals[target]

    def without_compiler(self, variant: Variant, why: str) -> PlanItem:
        spec_key = variant.spec.key
        found = self.store.spec_index(spec_key).get(variant.target) if self.store else None
        if found is not None and found in self.usable and self.inventory is not None:
            there = f"artifact {found[:12]} is in {self.where(found)}"
            wrong = self.inventory.wrong(found)
            if wrong is not None:
                return PlanItem(variant, spec_key, None, None, "blocked", f"{there}, but {wrong}, and {why}")
            reason = f"{there}; whether it is current cannot be told: {why}"
            return PlanItem(variant, spec_key, None, None, "reuse", reason, reused=found)
        return PlanItem(variant, spec_key, None, None, "blocked", f"not in the store, and {why}")

    def where(self, build_key: str) -> str:
        """The store, or the layer below it, that has an artifact."""
        assert self.inventory is not None
        root = self.inventory.where[build_key].root
        return "the store" if self.store is None or root == self.store.root else f"the store {root} below it"

    def failed_before(self, build_key: str) -> str | None:
        failure = self.store.failure(build_key) if self.store else None
        if failure is None or not failure.sticks:
            return None
        log = failure.log_sha256[:12] if failure.log_sha256 else "not kept"
        return f"failed before ({failure.failure_class}, log {log}); use --retry-failed"

    def estimated(self, items: list[PlanItem]) -> list[PlanItem]:
        """The items with the median compile time of records of the same operator and target, else operator, else any."""
        if self.store is None or not any(item.decision == "build" for item in items):
            return items
        history: dict[tuple[str, ...], list[float]] = defaultdict(list)
        # Keys are digests in sorted order, so the first ones are a fair sample of all.
        for build_key in sorted(self.usable)[:HISTORY_RECORDS]:
            record = self.store.record(build_key)
            spent = record["provenance"].get("compile_ms") if record else None
            if record and spent is not None:
                operator = record["spec"]["operator"]
                for group in ((operator, record["target"]), (operator,), ()):
                    history[group].append(spent / 1000)
        typical = {group: median(seconds) for group, seconds in history.items()}

        def guess(variant: Variant) -> float | None:
            operator = variant.spec.operator
            return typical.get((operator, variant.target), typical.get((operator,), typical.get(())))

        return [item._replace(estimate=guess(item.variant)) if item.decision == "build" else item for item in items]
