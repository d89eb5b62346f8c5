"""`lqcd-aot lock`: pin the exact artifacts of a recipe; what `build --locked` and `pack --locked` hold to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lqcd_aot.cli.output import print_json
from lqcd_aot.cli.planning import make_plan, open_folder, recipe_options
from lqcd_runtime.errors import StoreError

if TYPE_CHECKING:
    from lqcd_aot.cli.planning import Planned
    from lqcd_aot.ship.lock import Lock
    from lqcd_aot.store import Store

locked_option = click.option(
    "--locked", "lock_path", type=click.Path(path_type=Path), default=None, help="Refuse anything but what this lock file pins."
)


@click.command("lock")
@recipe_options
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="Lock file. [default: RECIPE.lock.toml]")
def command(
    recipe_path: Path,
    store_path: Path | None,
    cc: str | None,
    neuron: str | None,
    targets: tuple[str, ...],
    as_json: bool,
    output: Path | None,
) -> None:
    """Pin build key and SHA-256 of every artifact of RECIPE; all of them must be in the store."""
    from lqcd_aot.ship.lock import make_lock, write_lock

    planned = make_plan(recipe_path, store_path, cc, targets, False, neuron)
    store = open_folder(planned.store_path)
    lock = make_lock(planned.items, store, recipe_path, planned.recipe.name)
    path = output or recipe_path.with_suffix(".lock.toml")
    write_lock(lock, path)
    keep_locked(lock, path, store)
    if as_json:
        print_json({"file": str(path), "recipe": lock.recipe_name, "artifacts": [p._asdict() for p in lock.pins.values()]})
    else:
        click.echo(f"{path}: {len(lock.pins)} artifacts pinned")


def keep_locked(lock: Lock, path: Path | None, store: Store) -> None:
    """Register a lock file with the store. One that cannot be written says so. Errors: UsageError where something is absent."""
    from lqcd_aot.ship.lock import keep

    try:
        keep(lock, str(path), store)
    except StoreError as error:
        click.echo(f"the lock's artifacts were not registered for gc: {error.fact}", err=True)


def hold_to(lock_path: Path | None, planned: Planned, recipe_path: Path) -> Lock | None:
    """The lock, where one was named; the plan agrees with it. Errors: LockError, CorruptError."""
    from lqcd_aot.ship.lock import check_plan, read_lock

    if lock_path is None:
        return None
    lock = read_lock(lock_path)
    check_plan(lock, planned.items, recipe_path)
    return lock
