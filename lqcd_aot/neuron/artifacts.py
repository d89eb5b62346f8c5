"""Artifacts of specs, through program, key and store: reused where the store has them, built where it has not, and said so.

Owns one store and toolchain, and the bundle over exactly the build keys that were planned here: a later build of the same spec
with other flags does not change what an operator of this compiler runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lqcd_runtime.bundle import Bundle
from lqcd_runtime.errors import CompileError, StoreError
from lqcd_runtime.manifest import Entry, entry_dict
from lqcd_runtime.store_reader import StoreFolder

if TYPE_CHECKING:
    from lqcd_aot.build.plan import PlanItem
    from lqcd_aot.compilers import Toolchain
    from lqcd_aot.store import Store
    from lqcd_runtime.select import Rejected
    from lqcd_runtime.signature import Spec

Say = Callable[[str], None]


class ChosenRecords(StoreFolder):
    """A store of which only the records in `build_keys` are seen."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.build_keys: set[str] = set()

    def candidates(self, spec: Spec) -> tuple[list[Entry], list[Rejected]]:
        """As StoreFolder's, of the chosen records."""
        found = [entry for key in sorted(self.build_keys) if (entry := self._chosen(key)).spec_key == spec.key]
        return found, []

    def _chosen(self, build_key: str) -> Entry:
        return Entry.from_dict(entry_dict(json.loads(self.record(build_key))), f"record {build_key[:12]}")


class Artifacts:
    """What a NeuronCompiler has built or found, as one open bundle. program_for: None for this project's own programs."""

    def __init__(
        self,
        folder: Path,
        target: str,
        toolchain: Toolchain | None,
        say: Say,
        program_for: Callable[[Spec, str], Any] | None = None,
    ) -> None:
        self.folder, self.target = folder, target
        self._toolchain, self._say, self._program_for = toolchain, say, program_for
        self._chosen: ChosenRecords | None = None
        self._bundle: Bundle | None = None

    def provide(self, specs: Sequence[Spec]) -> Bundle:
        """The bundle, with the specs in it for the target.

        Errors: UsageError where no program can express a spec; CompileError, StoreError, WitnessMismatch.
        """
        from lqcd_aot import program
        from lqcd_aot.build.plan import plan
        from lqcd_aot.recipe import Variant
        from lqcd_aot.store import open_store

        make = self._program_for or program.program_for
        for spec in specs:
            make(spec, self.target)  # its refusal speaks of the call, plan's of a recipe
        store = open_store(self.folder, create=True)
        items = plan([Variant(spec, self.target) for spec in specs], store, self._toolchain, program_for=make)
        blocked = next((item for item in items if item.decision == "blocked"), None)
        if blocked is not None:
            raise CompileError(f"artifact {blocked.variant.name}: {blocked.reason}", hint="lqcd-aot doctor")
        self._build(items, store)
        store.used(str(item.build_key) for item in items)
        return self._opened({str(item.build_key) for item in items})

    def _build(self, items: list[PlanItem], store: Store) -> None:
        from lqcd_aot.build.event_log import EventLog
        from lqcd_aot.build.execute import build

        names = ", ".join(item.variant.name for item in items if item.decision == "build")
        if names:
            self._say(f"building {names} into {self.folder}")
        log = EventLog("NeuronCompiler", len(items))
        try:
            results = build(items, store, self._toolchain, observer=log.observe)
        finally:
            log.write(store)
        for result in results:
            if result.error is not None:
                raise result.error
            if result.outcome == "failed":
                raise StoreError(f"artifact {result.item.variant.name}: was not built", found=result.failure_class)

    def _opened(self, build_keys: set[str]) -> Bundle:
        if self._chosen is None or self._bundle is None:
            self._chosen = ChosenRecords(str(self.folder))
            self._bundle = Bundle(self._chosen)
        self._chosen.build_keys |= build_keys
        return self._bundle
