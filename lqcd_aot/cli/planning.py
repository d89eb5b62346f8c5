"""What the verbs that start from a recipe share: arguments, opening things that may be absent, and the plan itself."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from lqcd_aot.settings import default_compiler, default_neuron_compiler, default_store, system_stores
from lqcd_runtime.errors import CompileError, StoreError, UsageError

if TYPE_CHECKING:
    from lqcd_aot.build.plan import PlanItem
    from lqcd_aot.compilers import Toolchain
    from lqcd_aot.recipe import Recipe
    from lqcd_aot.store import Inventory, Store

MANY = 1000

recipe_argument = click.argument("recipe_path", metavar="RECIPE", type=click.Path(path_type=Path))
target_option = click.option("--target", "targets", multiple=True, help="Only variants of this target; may be repeated.")
compiler_option = click.option(
    "--compiler", "neuron", metavar="sim|PATH", default=None,
    help="neuronx-cc at PATH for Neuron targets; sim: its double, which builds the target sim in their place.",
)  # fmt: skip
retry_option = click.option("--retry-failed", is_flag=True, help="Compile again what failed before.")


class Planned(NamedTuple):
    """A recipe with the decision on each of its variants, and what was needed to decide; root: its name in the store's roots.

    notes: what was decided on the way from the recipe to its variants, one line each. inventory: of the store that was planned
    against, None where there is none.
    """

    recipe: Recipe
    items: list[PlanItem]
    store_path: Path
    toolchain: Toolchain | None
    no_toolchain: str | None
    root: str
    notes: tuple[str, ...] = ()
    inventory: Inventory | None = None


def store_folder(given: Path | None) -> Path:
    """The folder a verb works in: --store, else the default. Errors: StoreError where a file stands there."""
    folder = given or default_store()
    if folder.is_file():
        raise StoreError(
            f"store {folder}: is a file", expected="a folder", hint="a bundle is given by its name alone, without --store"
        )
    return folder


def open_if_there(folder: Path) -> Store | None:
    """The store over the system's, or None where none was made yet, or where another process is making it at this moment.

    Errors: StoreError where the folder holds something else.
    """
    from lqcd_aot.store import Store, open_store

    layers = system_stores()
    if (folder / "VERSION").exists() or (folder.is_dir() and Store(folder).is_foreign()):
        return open_store(folder, layers=layers)
    return open_store(layers[0], layers=layers[1:]) if layers else None


def open_folder(given: Path | None) -> Store:
    """The store of --store, else the default, over the system's. Errors: StoreError where there is none."""
    from lqcd_aot.store import open_store

    return open_store(store_folder(given), layers=system_stores())


def toolchain_if_there(cc: str | None, neuron: str | None) -> tuple[Toolchain | None, str | None]:
    """(toolchain, None) or (None, why there is none). A compiler that was named but is absent is an error, not None."""
    from lqcd_aot.compilers import find_toolchain

    wanted = cc or default_compiler()
    try:
        return find_toolchain(wanted, neuron), None
    except CompileError as error:
        if wanted or neuron:
            raise
        return None, error.fact


def make_plan(
    recipe_path: Path,
    store_path: Path | None,
    cc: str | None,
    targets: tuple[str, ...],
    retry_failed: bool,
    neuron: str | None = None,
) -> Planned:
    """Load, expand and decide. Starts no compiler. neuron: of --compiler. Errors: RecipeError, StoreError, CompileError."""
    from lqcd_aot.build.plan import plan
    from lqcd_aot.build.simulate import simulated
    from lqcd_aot.compilers import SIM
    from lqcd_aot.recipe import expand, load

    folder = store_folder(store_path)
    recipe = load(recipe_path)
    neuron = neuron or default_neuron_compiler()
    toolchain, absent = toolchain_if_there(cc, neuron)
    notes: list[str] = []
    # Ten thousand variants, keys and decisions live to the end of the command: looking for garbage among them costs a fifth.
    gc.disable()
    variants = list(expand(recipe, only_targets=[_resolved(t, recipe) for t in targets] or None, say=notes.append))
    if neuron == SIM:
        variants = simulated(variants, notes.append)
    store = open_if_there(folder)
    inventory = store.inventory() if store else None
    items = plan(variants, store, toolchain, retry_failed=retry_failed, inventory=inventory, recipe=recipe)
    if len(items) > MANY:
        gc.freeze()  # nor at any later time
    gc.enable()
    narrowed = [*(f"--target {target}" for target in sorted(targets)), *(["--compiler sim"] if neuron == SIM else [])]
    root = " ".join([str(recipe_path.resolve()), *narrowed])
    return Planned(recipe, items, folder, toolchain, absent, root, tuple(notes), inventory)


def _resolved(target: str, recipe: Recipe) -> str:
    """`--target host`: the best target of the recipe that this machine can execute. Errors: UsageError where there is none."""
    if target != "host":
        return target
    from lqcd_runtime.target import CPU_TARGETS, rank, this_host

    included = (t for rule in recipe.include for t in rule.target or ())
    declared = {str(t) for t in (*recipe.axes.target, *included) if t in CPU_TARGETS}
    runnable = [t for t in declared if this_host().refusal(t) is None]
    if not runnable:
        best = this_host().best_target()
        raise UsageError(
            "--target host: the recipe has no target this machine can execute", expected=best, found=sorted(declared)
        )
    return max(runnable, key=rank)


def say_notes(planned: Planned, *, every: bool = False) -> None:
    """The notes of a plan, on standard error; those that are alike in one line unless `every`."""
    from lqcd_aot.cli.alike import merged_notes

    for note in planned.notes if every else merged_notes(planned.notes):
        click.echo(note, err=True)


def recipe_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """RECIPE --store --cc --compiler --target --json, in that order: the shape of plan, build and pack."""
    from lqcd_aot.cli.output import cc_option, json_option, store_option

    for decorate in (json_option, target_option, compiler_option, cc_option, store_option, recipe_argument):
        function = decorate(function)
    return function
