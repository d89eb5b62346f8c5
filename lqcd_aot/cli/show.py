"""`lqcd-aot show`: the whole record of one artifact, found by name or by the start of its build key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lqcd_aot.cli.output import json_option, print_json
from lqcd_aot.cli.planning import store_folder
from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.signature import suggest

if TYPE_CHECKING:
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.manifest import Entry


@click.command("show")
@click.argument("artifact", metavar="NAME|KEY")
@click.argument("path", metavar="[STORE|BUNDLE]", required=False, type=click.Path(path_type=Path))
@json_option
def command(artifact: str, path: Path | None, as_json: bool) -> None:
    """Print the record of the artifact NAME (as `ls` prints it) or of the build key that starts with KEY."""
    import lqcd_runtime

    with lqcd_runtime.open(str(path or store_folder(None))) as bundle:
        record = bundle.record(find_entry(bundle, artifact).build_key)
    if as_json:
        print_json(record)
    else:
        click.echo(json.dumps(record, indent=2, sort_keys=True))


def find_entry(bundle: Bundle, artifact: str) -> Entry:
    """The entry of a name or key prefix. Errors: NoVariant with the nearest name, UsageError where a prefix is ambiguous."""
    entries = list(bundle.entries())
    found = [e for e in entries if e.name == artifact] or [e for e in entries if e.build_key.startswith(artifact)]
    if not found:
        near = suggest(artifact, [e.name for e in entries])
        raise NoVariant(f"artifact {artifact}: is not in {bundle.path}{near}", hint=f"lqcd-aot ls {bundle.path}")
    if len({e.build_key for e in found}) > 1:
        raise UsageError(
            f"artifact {artifact}: names {len(found)} artifacts",
            details=[f"{e.build_key[:16]}  {e.name}" for e in found[:10]],
            hint="give more digits of the key",
        )
    return found[0]
