"""`lqcd-aot keygen`: make a key pair to sign with."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.cli.output import json_option, print_json
from lqcd_aot.cli.trusting import keys_folder, trusted_folder


@click.command("keygen")
@click.argument("name")
@click.option("-o", "--out", "folder", type=click.Path(path_type=Path), default=None, help="Folder. [default: in the settings]")
@click.option("--no-trust", is_flag=True, help="Do not add the new key to your own trusted signers.")
@json_option
def command(name: str, folder: Path | None, no_trust: bool, as_json: bool) -> None:
    """Make NAME.key (secret; keep it) and NAME.pub (hand it to those who shall trust you)."""
    from lqcd_aot.trust import SigningKey, Trusted

    key, trusted = SigningKey.generate(name), Trusted(trusted_folder())
    if not no_trust:
        trusted.check_name(key.public)  # before files are written that would then have to go again
    secret, public = key.save(folder or keys_folder())
    if not no_trust:
        trusted.add(key.public)
    if as_json:
        print_json({**key.public._asdict(), "secret_file": str(secret), "public_file": str(public), "trusted": not no_trust})
        return
    click.echo(f"key {key.public.name}: {key.public.key_id}")
    click.echo(f"secret: {secret}\npublic: {public}")
