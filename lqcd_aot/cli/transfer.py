"""Progress of transfers: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from lqcd_aot.cli.output import console

quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress.")


@contextmanager
def transfer(quiet: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """A progress(bytes done, bytes in all, what) that draws."""
    out = console(err=True)
    if quiet or not out.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)
