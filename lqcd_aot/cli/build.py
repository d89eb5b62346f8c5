"""`lqcd-aot build`: compile what is missing of a recipe, in parallel, with progress and ETA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lqcd_aot.amounts import human_seconds
from lqcd_aot.cli.lock import hold_to, keep_locked, locked_option
from lqcd_aot.cli.output import coloured, console, print_json
from lqcd_aot.cli.planning import Planned, make_plan, open_folder, recipe_options, retry_option, say_notes
from lqcd_aot.settings import system_stores
from lqcd_runtime.errors import EXIT_FAILED, EXIT_OK, EXIT_WITNESS, CompileError, StoreError

if TYPE_CHECKING:
    from lqcd_aot.build.events import Event
    from lqcd_aot.build.job import Result
    from lqcd_aot.store import Store


@click.command("build")
@recipe_options
@retry_option
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=None, help="Compiles at once. [default: processors]")
@locked_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    recipe_path: Path, store_path: Path | None, cc: str | None, neuron: str | None, targets: tuple[str, ...], as_json: bool,
    retry_failed: bool, jobs: int | None, lock_path: Path | None, quiet: bool,
) -> int:  # fmt: skip
    """Compile what is missing of RECIPE into the store. Exit code 1 where something failed, 21 for a wrong witness."""
    planned = make_plan(recipe_path, store_path, cc, targets, retry_failed, neuron)
    say_notes(planned, every=as_json)
    from lqcd_aot.ship.lock import check_bytes

    lock = hold_to(lock_path, planned, recipe_path)
    with progress(len(planned.items), quiet or as_json) as observer:
        results = execute(planned, jobs, observer)
    if lock is not None and all(result.record or result.outcome == "reused" for result in results):
        check_bytes(lock, open_folder(planned.store_path))
        keep_locked(lock, lock_path, open_folder(planned.store_path))
    if as_json:
        print_json([result.as_json() for result in results])
    else:
        _summary(results, planned)
    return _exit_code(results)


def execute(planned: Planned, jobs: int | None, observer: Callable[[Event], None] | None) -> list[Result]:
    """Run a plan. Errors: CompileError where something must be built and there is no compiler; StoreError."""
    from lqcd_aot.build.event_log import EventLog
    from lqcd_aot.build.execute import build
    from lqcd_aot.store import open_store

    if planned.toolchain is None and any(item.decision == "blocked" for item in planned.items):
        raise CompileError(
            f"build {planned.recipe.name}: {planned.no_toolchain}", hint="pip install ziglang, or --cc /path/to/clang++"
        )
    store = open_store(planned.store_path, create=True, layers=system_stores())
    if planned.inventory is not None:
        planned.inventory.remember(store)
    reused = [str(item.build_key) for item in planned.items if item.decision == "reuse"]
    if len(reused) < len(planned.items):
        before = store.roots.get("recipe", planned.root)
        _keep(store, planned, [*reused, *(before.build_keys if before else ())])
    log = EventLog(planned.recipe.name, len(planned.items))

    def watch(event: Event) -> None:
        log.observe(event)
        if observer is not None:
            observer(event)

    try:
        results = build(planned.items, store, planned.toolchain, jobs=jobs, observer=watch)
    finally:
        log.write(store)
    _keep(store, planned, [str(r.item.build_key) for r in results if r.outcome in ("reused", "built", "shared")])
    return results


def _keep(store: Store, planned: Planned, keys: list[str]) -> None:
    """Register the recipe's artifacts, so that garbage collection keeps them while the recipe is there. A store that cannot be
    written says so."""
    try:
        store.roots.put("recipe", planned.root, keys, file=str(Path(planned.recipe.path).resolve()))
    except StoreError as error:
        click.echo(f"the recipe's artifacts were not registered for gc: {error.fact}", err=True)


@contextmanager
def progress(total: int, quiet: bool) -> Iterator[Callable[[Event], None] | None]:
    """An observer that draws a bar with ETA on a terminal and prints one line per built variant elsewhere."""
    if quiet:
        yield None
        return
    out = console(err=True)
    if not out.is_terminal:
        yield lambda event: _line(event)
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.completed}/{task.total}"),
        BarColumn(),
        TextColumn("{task.fields[eta]}"),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("", total=total, eta="")

        def draw(event: Event) -> None:
            eta = "" if event.eta is None else f"{human_seconds(event.eta)} left"
            bar.update(task, completed=event.done, description=f"{event.kind} {event.name}", eta=eta)
            if event.kind == "failed":
                out.print(coloured("failed", "red", f" {event.name}  {event.detail}"))

        yield draw


def _line(event: Event) -> None:
    if event.kind in ("published", "failed", "retrying", "waiting", "shared"):
        eta = f", {human_seconds(event.eta)} left" if event.eta else ""
        click.echo(f"[{event.done}/{event.total}{eta}] {event.kind} {event.name} {event.detail}".rstrip(), err=True)


def _summary(results: list[Result], planned: Planned) -> None:
    from lqcd_aot.cli.alike import counted_reasons

    counts = Counter(result.outcome for result in results)
    out = console()
    for result in results:
        if result.outcome == "failed":
            why = str(result.error or result.item.reason)
            out.print(coloured("failed", "red", f" {result.item.variant.name}: {why}"))
    blocked = [result.item for result in results if result.outcome == "blocked"]
    names = {item.reason: item.variant.name for item in blocked}
    for reason, n in counted_reasons(item.reason for item in blocked):
        out.print(coloured("blocked", "red", f" {names[reason] if n == 1 else f'{n} variants'}: {reason}"))
    unchecked = Counter(str(r.record["witness_status"]) for r in results if r.record and r.record["witness_status"] != "passed")
    for status, n in sorted(unchecked.items()):
        out.print(f"{n} witnesses {status}")
    what = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())) or "no variants"
    out.print(f"{planned.recipe.name}: {what}; store {planned.store_path}")


def _exit_code(results: list[Result]) -> int:
    if any(result.failure_class == "witness" for result in results):
        return EXIT_WITNESS
    return EXIT_FAILED if any(result.outcome in ("failed", "blocked") for result in results) else EXIT_OK
