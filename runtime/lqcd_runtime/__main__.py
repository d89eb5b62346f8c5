"""`python -m lqcd_runtime FILE {list,verify,selfcheck} [--json]`: look at a bundle or store on a machine without the build side.

Owns argument parsing and printing. One clean message and the exit code of `errors` on failure, never a traceback for bad input.
"""

from __future__ import annotations

import argparse
import os
import sys

from lqcd_runtime.bundle import Bundle, open_bundle
from lqcd_runtime.bundle_file import BundleFile
from lqcd_runtime.errors import EXIT_CORRUPT, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, LqcdError
from lqcd_runtime.json_output import dumps
from lqcd_runtime.target import this_host


def _list(bundle: Bundle, as_json: bool) -> int:
    host = this_host()
    rows = [
        {
            "name": e.name,
            "spec_key": e.spec_key,
            "build_key": e.build_key,
            "target": e.target,
            "bytes": e.code["size"],
            "witness": e.witness_status,
            "refusal": host.refusal_of(e),
        }
        for e in bundle.entries()
    ]
    if as_json:
        _print_json({"path": bundle.path, "entries": rows})
    else:
        width = max((len(str(r["name"])) for r in rows), default=0)
        for r in rows:
            _print(f"{r['name']:<{width}}  {r['bytes']:>8} bytes  {r['witness']}  {r['refusal'] or 'runs here'}")
    return EXIT_OK


def _verify(bundle: Bundle, as_json: bool) -> int:
    size = bundle.verify()
    found = []
    if isinstance(bundle.source, BundleFile):
        from lqcd_runtime.signatures import signatures

        found = signatures(bundle.source)
    if as_json:
        _print_json({"path": bundle.path, "bytes": size, "verified": True, "signatures": [s.as_dict() for s in found]})
    else:
        _print(f"{bundle.source.where}: every one of {size} bytes verified")
        for signature in found:
            _print(str(signature))
        _print("who the signers are is not known here" if found else "nobody has signed it")
    return EXIT_CORRUPT if any(s.problem for s in found) else EXIT_OK


def _selfcheck(bundle: Bundle, as_json: bool) -> int:
    from lqcd_runtime.self_check import FAILED, PASSED, SKIPPED, exit_code, selfcheck, verdict

    if isinstance(bundle.source, BundleFile):
        bundle.verify()  # of a store, each artifact's bytes are compared when it is loaded
    checks = selfcheck(bundle)
    if as_json:
        count = {status: sum(c.status == status for c in checks) for status in (PASSED, FAILED, SKIPPED)}
        _print_json({"path": bundle.path, **count, "checks": [c.as_dict() for c in checks]})
    else:
        for check in checks:
            _print(str(check))
    line, advice = verdict(checks)
    if not as_json:
        _print(line)
    if advice:
        _complain(f"hint: {advice}")
    return exit_code(checks)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


def _complain(text: str) -> None:
    sys.stderr.write(text + "\n")


def _print_json(value: object) -> None:
    _print(dumps(value, indent=1))


VERBS = {"list": _list, "verify": _verify, "selfcheck": _selfcheck}


def main(argv: list[str] | None = None) -> int:
    """Run one verb; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lqcd_runtime", description="Look at a bundle file or a store folder.")
    parser.add_argument("file", metavar="FILE", help="bundle file or store folder")
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, for errors too")
    arguments = parser.parse_args(argv)
    try:
        with open_bundle(arguments.file) as bundle:
            code = VERBS[arguments.verb](bundle, arguments.json)
        sys.stdout.flush()
        return code
    except LqcdError as err:
        if arguments.json:
            _print_json(err.as_json())
        else:
            _complain(str(err))
        return err.exit_code
    except BrokenPipeError:
        # The reader has seen enough; Python must not complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_FAILED
    except KeyboardInterrupt:
        _complain("interrupted")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
