"""How verbs print: JSON for programs, tables for people. Progress goes to standard error, results to standard output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object (or array) and nothing else.")
store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    default=None,
    help="Store folder. [default: $LQCD_AOT_STORE or the cache]",
)
cc_option = click.option("--cc", default=None, help="Compile with this clang or gcc in place of the pinned zig.")


def print_json(value: Any) -> None:
    """One line of JSON, spelled as `lqcd_runtime.json_output` says."""
    from lqcd_runtime.json_output import dumps

    click.echo(dumps(value))


def console(*, err: bool = False) -> Console:
    """A rich console; without a terminal it prints plain lines, never cut. Brackets in texts are text: `coloured` marks words."""
    from rich.console import Console

    made = Console(stderr=err, highlight=False, soft_wrap=True, markup=False)
    return made if made.is_terminal else Console(stderr=err, highlight=False, soft_wrap=True, markup=False, width=200)


def coloured(word: str, colour: str, rest: str) -> Text:
    """A line that begins with a coloured word."""
    from rich.text import Text

    return Text.assemble((word, colour), rest)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on standard output."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    console().print(table)
