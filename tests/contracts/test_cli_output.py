"""What verbs print: texts as they are, whatever brackets they hold."""

from __future__ import annotations

import pytest

from lqcd_aot.cli.output import coloured, console, print_table

TEXT = "needs jaxlib; pip install 'lqcd-aot[sim]' [bold]x[/bold] [/]"


def test_brackets_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Rich takes [sim] for markup and would print a command that installs something else."""
    console().print(TEXT)
    console().print(coloured("failed", "red", f" {TEXT}"))
    print_table(("what",), [(TEXT,)])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [TEXT, f"failed {TEXT}", "what", TEXT]
