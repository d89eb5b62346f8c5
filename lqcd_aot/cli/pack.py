"""`lqcd-aot pack`: the artifacts of a recipe as one bundle file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lqcd_aot.amounts import human_bytes
from lqcd_aot.cli.lock import hold_to, keep_locked, locked_option
from lqcd_aot.cli.output import console, print_json
from lqcd_aot.cli.planning import make_plan, open_folder, recipe_options
from lqcd_aot.cli.trusting import key_option, signing_key


@click.command("pack")
@recipe_options
@locked_option
@click.option("--provenance", is_flag=True, help="Put an in-toto statement into the bundle: recipe, commit, toolchains.")
@click.option("--sbom", is_flag=True, help="Put a CycloneDX bill of materials into the bundle.")
@click.option("--epoch", type=click.IntRange(min=0), default=None, help="Seconds since 1970 to state in both. [default: no time]")
@click.option("--sign", "signed", is_flag=True, help="Sign the bundle.")
@key_option
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="Bundle file. [default: NAME.lqcd]")
def command(
    recipe_path: Path, store_path: Path | None, cc: str | None, neuron: str | None, targets: tuple[str, ...], as_json: bool,
    lock_path: Path | None, provenance: bool, sbom: bool, epoch: int | None, signed: bool, key_path: Path | None,
    output: Path | None,
) -> None:  # fmt: skip
    """Write the artifacts of RECIPE as one file that the runtime maps. The same artifacts give the same bytes."""
    from lqcd_aot.build.pack import pack, recipe_facts, wanted
    from lqcd_aot.ship.lock import check_bytes

    key = signing_key(key_path) if signed or key_path else None
    planned = make_plan(recipe_path, store_path, cc, targets, False, neuron)
    recipe = planned.recipe
    lock = hold_to(lock_path, planned, recipe_path)
    path = output or Path(f"{recipe.name}.lqcd")
    store = open_folder(planned.store_path)
    if lock is not None:
        check_bytes(lock, store)
        keep_locked(lock, lock_path, store)
    facts = recipe_facts(recipe_path, recipe.name)
    documents = _documents(recipe_path, facts, provenance, sbom, epoch)
    packed = pack(store, wanted(planned.items), path, name=recipe.name, recipe=facts, documents=documents)
    if key is not None:
        from lqcd_aot.trust.sign import sign_bundle

        sign_bundle(path, key)
    if as_json:
        print_json({**packed._asdict(), "file": packed.path})
        return
    out = console()
    for reason in sorted(set(packed.unchecked.values())):
        names = [name for name, why in packed.unchecked.items() if why == reason]
        out.print(f"{len(names)} witnesses not replayed here: {reason}")
    out.print(f"{path}: {packed.artifacts} artifacts, {human_bytes(packed.size)}, manifest {packed.manifest_sha256[:16]}")


def _documents(
    recipe_path: Path, recipe: dict[str, str], provenance: bool, sbom: bool, epoch: int | None
) -> Callable[[dict[str, dict[str, Any]]], dict[str, bytes]]:
    """What makes the wanted documents from the records."""
    from importlib.metadata import version

    from lqcd_aot.ship import documents
    from lqcd_aot.ship.origin import origin_of

    def make(records: dict[str, dict[str, Any]]) -> dict[str, bytes]:
        out = {}
        if provenance:
            origin, release = origin_of(recipe_path), version("lqcd-aot")
            out[documents.PROVENANCE] = documents.provenance(records, recipe, origin, release, epoch=epoch)
        if sbom:
            out[documents.SBOM] = documents.sbom(records, recipe["name"], epoch=epoch)
        return out

    return make
