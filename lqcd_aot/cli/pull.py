"""`lqcd-aot pull`: take a bundle's artifacts from a remote into the store, those that this machine would use."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.amounts import human_bytes
from lqcd_aot.cli.output import json_option, print_json, store_option
from lqcd_aot.cli.planning import store_folder
from lqcd_aot.cli.transfer import quiet_option, transfer
from lqcd_aot.cli.trusting import policy, say, trust_options
from lqcd_runtime.errors import UsageError


@click.command("pull")
@click.argument("url")
@click.argument("name", required=False)
@store_option
@click.option("--target", default=None, help="For any machine of this target. [default: for this machine]")
@click.option("--all", "everything", is_flag=True, help="All targets.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="Write a bundle file too.")
@click.option("--list", "listing", is_flag=True, help="Only list the names at the remote.")
@trust_options
@quiet_option
@json_option
def command(
    url: str, name: str | None, store_path: Path | None, target: str | None, everything: bool, output: Path | None,
    listing: bool, allow_unsigned: bool, allow_unknown_signer: bool, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Fetch the bundle NAME from URL into the store: verified, judged, and no more than one machine needs."""
    from lqcd_aot.ship.choose import Machine
    from lqcd_aot.ship.pull import pull
    from lqcd_aot.ship.remotes.locate import locate
    from lqcd_aot.store import open_store

    remote = locate(url)
    if listing:
        names = remote.names()
        print_json(names) if as_json else click.echo("\n".join(names))
        return
    if name is None:
        raise UsageError("pull: names no bundle", hint=f"lqcd-aot pull {url} --list")
    if everything and target:
        raise UsageError("pull: --all and --target exclude each other")
    store = open_store(store_folder(store_path), create=True)
    trust = policy(allow_unsigned, allow_unknown_signer)
    with transfer(quiet or as_json) as progress:
        machine = None if everything else Machine(target)
        done = pull(remote, name, store, trust, machine=machine, out=output, progress=progress)
    say(done.imported.verdict)
    taken = done.imported
    if as_json:
        print_json({**done._asdict(), "imported": {**taken._asdict(), "verdict": taken.verdict._asdict()}})
        return
    count = taken.published + taken.reused + taken.diverged
    click.echo(
        f"store {store.root}: {count} of {done.artifacts} artifacts, {taken.published} new, {human_bytes(done.bytes)} fetched"
    )
