"""Runs the command line: `python -m lqcd_aot.cli`."""

from lqcd_aot.cli import main

main()
