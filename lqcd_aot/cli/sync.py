"""`lqcd-aot sync`: a folder of bundles and a remote, made to hold the same names."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.cli.output import json_option, print_json, store_option
from lqcd_aot.cli.planning import store_folder
from lqcd_aot.cli.transfer import quiet_option, transfer
from lqcd_aot.cli.trusting import policy, trust_options
from lqcd_runtime.errors import EXIT_FAILED, EXIT_OK


@click.command("sync")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("url")
@store_option
@trust_options
@quiet_option
@json_option
def command(
    folder: Path, url: str, store_path: Path | None, allow_unsigned: bool, allow_unknown_signer: bool, quiet: bool, as_json: bool
) -> int:
    """Push the bundles of FOLDER that URL lacks and pull those that FOLDER lacks. Exit code 1 where names are in conflict."""
    from lqcd_aot.ship.remotes.locate import locate
    from lqcd_aot.ship.sync import sync
    from lqcd_aot.store import open_store

    store = open_store(store_folder(store_path), create=True)
    with transfer(quiet or as_json) as progress:
        done = sync(folder, locate(url), store, policy(allow_unsigned, allow_unknown_signer), progress=progress)
    if as_json:
        print_json(done._asdict())
    else:
        for what, names in done._asdict().items():
            click.echo(f"{what:<10} {' '.join(names) or '-'}")
    return EXIT_FAILED if done.conflicts else EXIT_OK
