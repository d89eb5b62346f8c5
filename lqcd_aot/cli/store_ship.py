"""`lqcd-aot store export|import`: a store's artifacts out as a bundle, a bundle's artifacts in."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.cli.bundle import create, output_option
from lqcd_aot.cli.output import json_option, print_json, store_option
from lqcd_aot.cli.planning import store_folder
from lqcd_aot.cli.trusting import key_option, policy, say, signing_key, trust_options


@click.command("export")
@click.argument("patterns", metavar="[NAME...]", nargs=-1)
@store_option
@output_option
@click.option("--sign", "signed", is_flag=True, help="Sign the bundle; importing it elsewhere needs a signature.")
@key_option
@json_option
@click.pass_context
def export(
    context: click.Context, patterns: tuple[str, ...], store_path: Path | None, output: Path, signed: bool,
    key_path: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Write the latest artifact of every spec and target (or the artifacts NAME only) as one bundle file."""
    key = signing_key(key_path) if signed or key_path else None
    context.invoke(create, patterns=patterns, store_path=store_path, output=output, name=None, as_json=as_json)
    if key is not None:
        from lqcd_aot.trust.sign import sign_bundle

        sign_bundle(output, key)


@click.command("import")
@click.argument("bundle_path", metavar="BUNDLE", type=click.Path(path_type=Path))
@store_option
@trust_options
@json_option
def import_(bundle_path: Path, store_path: Path | None, allow_unsigned: bool, allow_unknown_signer: bool, as_json: bool) -> None:
    """Verify every byte of BUNDLE, judge its signatures, and take its artifacts into the store."""
    from lqcd_aot.ship.closure import import_bundle
    from lqcd_aot.store import open_store

    store = open_store(store_folder(store_path), create=True)
    done = import_bundle(bundle_path, store, policy(allow_unsigned, allow_unknown_signer))
    say(done.verdict)
    if as_json:
        print_json({**done._asdict(), "verdict": done.verdict._asdict(), "store": store.root})
    else:
        other = f", {done.diverged} differ from what is here (kept; divergences recorded)" if done.diverged else ""
        click.echo(f"store {store.root}: {done.published} artifacts imported, {done.reused} were there{other}")
