"""`lqcd-aot bundle create|inspect|extract|merge|slim`: bundles made of bundles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lqcd_aot.amounts import human_bytes
from lqcd_aot.cli.inspect import command as inspect
from lqcd_aot.cli.output import json_option, print_json, store_option
from lqcd_aot.cli.planning import open_folder

output_option = click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Bundle file to write.")
bundle_argument = click.argument("bundle_path", metavar="BUNDLE", type=click.Path(path_type=Path))


@click.group("bundle")
def command() -> None:
    """Make bundles of bundles. Equal inputs give equal bytes; signatures of records are kept, those of manifests are not."""


command.add_command(inspect)


@command.command("create")
@click.argument("patterns", metavar="[NAME...]", nargs=-1)
@store_option
@output_option
@click.option("--name", default=None, help="Name in the manifest. [default: of the file]")
@json_option
def create(patterns: tuple[str, ...], store_path: Path | None, output: Path, name: str | None, as_json: bool) -> None:
    """Pack what a store holds, whatever recipe it came from: all of it, or the artifacts NAME (*, ? and [] match)."""
    from lqcd_aot.ship.bundles import create as make

    facts = make(open_folder(store_path), output, name=name or output.stem, patterns=patterns)
    _tell(output, facts, as_json)


@command.command("extract")
@bundle_argument
@click.argument("patterns", metavar="NAME...", nargs=-1, required=True)
@output_option
@json_option
def extract(bundle_path: Path, patterns: tuple[str, ...], output: Path, as_json: bool) -> None:
    """Take the artifacts NAME (as `ls` prints them; *, ? and [] match) out of BUNDLE into another bundle."""
    from lqcd_aot.ship.bundles import extract as make

    _tell(output, make(bundle_path, output, patterns), as_json)


@command.command("merge")
@click.argument("bundles", metavar="BUNDLE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option
@click.option("--name", default=None, help="Name in the manifest. [default: of the file]")
@json_option
def merge(bundles: tuple[Path, ...], output: Path, name: str | None, as_json: bool) -> None:
    """Put the artifacts of several bundles into one."""
    from lqcd_aot.ship.bundles import merge as make

    _tell(output, make(bundles, output, name=name or output.stem), as_json)


@command.command("slim")
@bundle_argument
@output_option
@click.option("--target", default=None, help="For any machine of this target. [default: for this machine]")
@json_option
def slim(bundle_path: Path, output: Path, target: str | None, as_json: bool) -> None:
    """Keep only what one machine would use: of every spec the best target it can execute."""
    from lqcd_aot.ship.bundles import slim as make
    from lqcd_aot.ship.choose import Machine

    _tell(output, make(bundle_path, output, Machine(target)), as_json)


def _tell(output: Path, facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({"file": str(output), **facts})
    else:
        size = human_bytes(facts["size"])
        click.echo(f"{output}: {facts['count']} artifacts, {size}, manifest {facts['manifest_sha256'][:16]}")
