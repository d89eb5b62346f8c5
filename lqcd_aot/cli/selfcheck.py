"""`lqcd-aot selfcheck FILE`: replay every witness this machine can run."""

from __future__ import annotations

from pathlib import Path

import click

from lqcd_aot.cli.output import coloured, console, json_option, print_json
from lqcd_runtime.target import ENGINES


@click.command("selfcheck")
@click.argument("path", metavar="BUNDLE|STORE", type=click.Path(path_type=Path))
@click.option(
    "--threads", type=click.IntRange(min=1), multiple=True, help="Number of threads; may be repeated.  [default: 1, 2 and 3]"
)
@click.option("--engine", type=click.Choice(ENGINES), default=None, help="Only artifacts of this engine; sim runs only if named.")
@json_option
def command(path: Path, threads: tuple[int, ...], engine: str | None, as_json: bool) -> int:
    """Replay every witness of BUNDLE on this machine, with each number of threads; all must give the same bits.

    Exit code 21 where one does not agree, 12 for damaged bytes, 20 where this machine could check nothing.
    """
    import lqcd_runtime
    from lqcd_runtime.self_check import FAILED, PASSED, exit_code, verdict
    from lqcd_runtime.witness import THREADS

    with lqcd_runtime.open(str(path)) as bundle:
        if bundle.source.kind == "bundle":
            bundle.verify()
        checks = lqcd_runtime.selfcheck(bundle, threads=threads or THREADS, engine=engine)
    line, advice = verdict(checks)
    if as_json:
        print_json([check.as_dict() for check in checks])
    else:
        out = console()
        for check in checks:
            colour = {PASSED: "green", FAILED: "red"}.get(check.status, "yellow")
            out.print(coloured(f"{check.status:<8}", colour, f" {check.name}  {check.reason}"))
        out.print(line)
    if advice:
        click.echo(f"hint: {advice}", err=True)
    return exit_code(checks)
