"""`lqcd-aot selfcheck FILE`: replay every witness this machine can run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from lqcd_aot.cli.output import console, json_option, print_json
from lqcd_runtime.errors import EXIT_OK, EXIT_WITNESS


@click.command("selfcheck")
@click.argument("path", metavar="BUNDLE|STORE", type=click.Path(path_type=Path))
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@json_option
def command(path: Path, threads: int, as_json: bool) -> int:
    """Replay every witness of BUNDLE on this machine. Exit code 21 where one does not agree."""
    import lqcd_runtime
    from lqcd_runtime.self_check import FAILED, PASSED

    with lqcd_runtime.open(str(path)) as bundle:
        if bundle.source.kind == "bundle":
            bundle.verify()
        checks = lqcd_runtime.selfcheck(bundle, threads=threads)
    count = Counter(check.status for check in checks)
    if as_json:
        print_json([check.as_dict() for check in checks])
    else:
        out = console()
        for check in checks:
            colour = {PASSED: "green", FAILED: "red"}.get(check.status, "yellow")
            out.print(f"[{colour}]{check.status:<8}[/] {check.name}  {check.reason}")
        out.print(", ".join(f"{n} {status}" for status, n in sorted(count.items())) or "no artifacts")
    return EXIT_WITNESS if count[FAILED] else EXIT_OK
