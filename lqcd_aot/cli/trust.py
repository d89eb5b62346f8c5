"""`lqcd-aot trust add|list|remove`: whose signatures import and pull accept."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.cli.output import json_option, print_json, print_table
from lqcd_aot.cli.trusting import trusted_folder


@click.group("trust")
def command() -> None:
    """Whose signatures are accepted on import and pull."""


@command.command("add")
@click.argument("path", metavar="SIGNER.pub", type=click.Path(path_type=Path))
@json_option
def add(path: Path, as_json: bool) -> None:
    """Trust a signer. Compare the key id with what the signer tells you by another way first."""
    from lqcd_aot.trust import Trusted
    from lqcd_aot.trust.keys import read_public_key

    key = read_public_key(path)
    Trusted(trusted_folder()).add(key)
    _tell("trusted", key._asdict(), as_json)


@command.command("remove")
@click.argument("which", metavar="NAME|KEY-ID")
@json_option
def remove(which: str, as_json: bool) -> None:
    """No longer trust a signer. What was imported before stays."""
    from lqcd_aot.trust import Trusted

    _tell("no longer trusted", Trusted(trusted_folder()).remove(which)._asdict(), as_json)


@command.command("list")
@json_option
def show(as_json: bool) -> None:
    """The trusted signers."""
    from lqcd_aot.trust import Trusted

    keys = Trusted(trusted_folder()).all()
    if as_json:
        print_json([key._asdict() for key in keys])
    else:
        print_table(("name", "key id"), [(key.name, key.key_id) for key in keys])


def _tell(what: str, facts: dict[str, str], as_json: bool) -> None:
    if as_json:
        print_json(facts)
    else:
        click.echo(f"{what}: {facts['name']} {facts['key_id']}")
