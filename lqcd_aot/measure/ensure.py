"""The artifacts a measurement needs: from a bundle, from the store, or built now and said so in one line.

Owns the rule: a named bundle or `offline` is never added to; a store is, for the best target of this machine. The runtime
itself never builds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import lqcd_runtime
from lqcd_runtime.errors import CompileError, LqcdError, StoreError
from lqcd_runtime.target import this_host

if TYPE_CHECKING:
    from lqcd_aot.build.plan import PlanItem
    from lqcd_aot.compilers import Toolchain
    from lqcd_aot.store import Store
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.signature import Spec


class Origin(NamedTuple):
    """Where artifacts come from: a bundle, else a store that may be added to with the compiler `cc` unless `offline`."""

    bundle: Path | None
    store: Path
    cc: str | None = None
    offline: bool = False


@contextlib.contextmanager
def with_artifacts(specs: Sequence[Spec], origin: Origin, say: Callable[[str], None]) -> Iterator[Bundle]:
    """An open bundle or store that has the specs for this machine, building what is missing where the origin allows it.

    say: takes the one line on what is built. Errors: StoreError, CompileError; what is still missing is NoVariant at its use.
    """
    if origin.bundle is None and not origin.offline:
        build_missing(specs, origin, say)
    with lqcd_runtime.open(str(origin.bundle or origin.store)) as bundle:
        yield bundle


def build_missing(specs: Sequence[Spec], origin: Origin, say: Callable[[str], None]) -> None:
    """Build those of the specs for which the store has no artifact that this machine can run.

    Nothing happens where there is no compiler: the artifacts may be there all the same. Errors: StoreError, CompileError.
    """
    target = this_host().best_target()
    found = {spec: _there(spec, origin.store) for spec in specs}
    _say_used(origin.store, [build_key for build_key in found.values() if build_key is not None])
    absent = [spec for spec, build_key in found.items() if build_key is None]
    if absent and target is not None:
        build_for(absent, target, origin, say)


def build_for(
    specs: Sequence[Spec], target: str, origin: Origin, say: Callable[[str], None], neuron: str | None = None
) -> list[str] | None:
    """The build keys, spec by spec, of exactly what today's templates and compiler make for a target; what is missing is built.

    neuron: a neuronx-cc by path, or "sim". None where there is no compiler. Errors: StoreError, CompileError.
    """
    from lqcd_aot.build.plan import plan
    from lqcd_aot.recipe import Variant

    toolchain = _toolchain(origin.cc, say, neuron)
    if toolchain is None:
        return None
    from lqcd_aot.store import open_store

    store = open_store(origin.store, create=True)
    items = plan([Variant(spec, target) for spec in specs], store, toolchain)
    todo = [item for item in items if item.decision == "build"]
    if todo:
        names = ", ".join(item.variant.name for item in todo)
        say(f"building {len(todo)} missing artifact{'s' if len(todo) > 1 else ''} into {origin.store}: {names}")
        _build(items, store, toolchain)
    for item in items:
        if item.decision == "blocked":
            raise CompileError(f"artifact {item.variant.name}: {item.reason}", hint="lqcd-aot build RECIPE --retry-failed")
    build_keys = [item.build_key for item in items if item.build_key is not None]
    store.used(build_keys)
    return build_keys


def _there(spec: Spec, folder: Path) -> str | None:
    """The build key of what this machine would run, None where there is nothing."""
    try:
        with lqcd_runtime.open(str(folder)) as bundle:
            return bundle.select(spec).choice.build_key
    except LqcdError:
        return None


def _say_used(folder: Path, build_keys: Sequence[str]) -> None:
    if build_keys:
        from lqcd_aot.store import open_store

        with contextlib.suppress(StoreError):
            open_store(folder).used(build_keys)


def _toolchain(cc: str | None, say: Callable[[str], None], neuron: str | None = None) -> Toolchain | None:
    from lqcd_aot.compilers import find_toolchain
    from lqcd_aot.settings import default_compiler

    wanted = cc or default_compiler()
    try:
        return find_toolchain(wanted, neuron)
    except CompileError as error:
        if wanted or neuron:
            raise
        say(f"not building: {error.fact}")
        return None


def _build(items: list[PlanItem], store: Store, toolchain: Toolchain) -> None:
    from lqcd_aot.build.execute import build

    for result in build(items, store, toolchain):
        if result.error is not None:
            raise result.error
        if result.outcome == "failed":
            raise StoreError(f"artifact {result.item.variant.name}: was not built", found=result.failure_class)
