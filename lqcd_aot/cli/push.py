"""`lqcd-aot push`: send a bundle to a remote."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.amounts import human_bytes
from lqcd_aot.cli.output import json_option, print_json
from lqcd_aot.cli.transfer import quiet_option, transfer


@click.command("push")
@click.argument("bundle_path", metavar="BUNDLE", type=click.Path(path_type=Path))
@click.argument("url")
@click.option("--name", default=None, help="Name at the remote. [default: the bundle's own]")
@click.option("--replace", is_flag=True, help="Replace another bundle of that name.")
@quiet_option
@json_option
def command(bundle_path: Path, url: str, name: str | None, replace: bool, quiet: bool, as_json: bool) -> None:
    """Verify BUNDLE and send what URL lacks of it: a folder, file://, s3://, oci://host/repo or oci-layout:// URL."""
    from lqcd_aot.ship.push import push
    from lqcd_aot.ship.remotes.locate import locate

    with transfer(quiet or as_json) as progress:
        done = push(bundle_path, locate(url), name=name, replace=replace, progress=progress)
    if as_json:
        print_json(done._asdict())
    else:
        click.echo(
            f"{url}: {done.name} is there; {done.sent} objects ({human_bytes(done.bytes)}) sent, {done.skipped} were there"
        )
