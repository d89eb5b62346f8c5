"""`lqcd-aot pack`: the artifacts of a recipe as one bundle file."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.cli.output import console, human_bytes, print_json
from lqcd_aot.cli.planning import make_plan, recipe_options


@click.command("pack")
@recipe_options
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="Bundle file. [default: NAME.lqcd]")
def command(
    recipe_path: Path, store_path: Path | None, cc: str | None, targets: tuple[str, ...], as_json: bool, output: Path | None
) -> None:
    """Write the artifacts of RECIPE as one file that the runtime maps. The same artifacts give the same bytes."""
    from lqcd_aot.build.pack import pack, recipe_facts, wanted
    from lqcd_aot.store import open_store

    planned = make_plan(recipe_path, store_path, cc, targets, False)
    recipe = planned.recipe
    path = output or Path(f"{recipe.name}.lqcd")
    store = open_store(planned.store_path)
    packed = pack(store, wanted(planned.items), path, name=recipe.name, recipe=recipe_facts(recipe_path, recipe.name))
    if as_json:
        print_json({**packed._asdict(), "file": packed.path})
        return
    out = console()
    for reason in sorted(set(packed.unchecked.values())):
        names = [name for name, why in packed.unchecked.items() if why == reason]
        out.print(f"{len(names)} witnesses not replayed here: {reason}")
    out.print(f"{path}: {packed.artifacts} artifacts, {human_bytes(packed.size)}, manifest {packed.manifest_sha256[:16]}")
