"""`lqcd-aot sign`: add a signature to a bundle."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.cli.output import json_option, print_json
from lqcd_aot.cli.trusting import key_option, signing_key


@click.command("sign")
@click.argument("bundle_path", metavar="BUNDLE", type=click.Path(path_type=Path))
@key_option
@click.option("-o", "--out", type=click.Path(path_type=Path), default=None, help="Write another file. [default: in place]")
@click.option("--manifest-only", is_flag=True, help="Do not sign the records one by one: faster, but lost by slim and merge.")
@json_option
def command(bundle_path: Path, key_path: Path | None, out: Path | None, manifest_only: bool, as_json: bool) -> None:
    """Verify every byte of BUNDLE and sign it. Equal bundles and keys give equal bytes."""
    from lqcd_aot.trust.sign import sign_bundle

    key = signing_key(key_path)
    sign_bundle(bundle_path, key, records=not manifest_only, out=out)
    if as_json:
        print_json({"path": str(out or bundle_path), **key.public._asdict()})
    else:
        click.echo(f"bundle {out or bundle_path}: signed by {key.public.name} ({key.public.key_id[:16]})")
