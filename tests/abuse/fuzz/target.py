"""One parser under atheris: python -m tests.abuse.fuzz.target PARSER [libFuzzer options]. Started by __main__.py."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import atheris  # type: ignore[import-untyped, unused-ignore]


def main() -> None:
    """Instrument, then fuzz."""
    name, options = sys.argv[1], sys.argv[2:]
    with atheris.instrument_imports(include=["lqcd_aot", "lqcd_runtime"]):
        from tests.abuse.fuzz.parsers import PARSERS, answers, clean
        from tests.abuse.fuzz.seeds import SEEDS

        # Once with sound inputs, so that what the parser imports lazily is instrumented too.
        for seed in SEEDS[name]():
            with contextlib.suppress(*answers(name)):
                PARSERS[name](seed)
    parser, good = PARSERS[name], answers(name)

    def one(data: Any) -> None:
        with contextlib.suppress(*good):
            parser(bytes(data))

    atheris.Setup([sys.argv[0], *options], one)
    try:
        atheris.Fuzz()
    finally:
        clean()


if __name__ == "__main__":
    main()
