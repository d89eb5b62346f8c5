"""`lqcd-aot verify`: every byte of a bundle or store, and who signed it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lqcd_aot.amounts import human_bytes
from lqcd_aot.cli.output import json_option, print_json
from lqcd_aot.cli.trusting import policy, trust_options
from lqcd_runtime.errors import EXIT_OK, EXIT_UNTRUSTED, TrustError

if TYPE_CHECKING:
    from lqcd_aot.trust.policy import Verdict
    from lqcd_runtime.bundle_file import BundleFile


@click.command("verify")
@click.argument("path", metavar="BUNDLE|STORE", type=click.Path(path_type=Path))
@trust_options
@json_option
def command(path: Path, allow_unsigned: bool, allow_unknown_signer: bool, as_json: bool) -> int:
    """Compare every byte with its digest, then judge the signatures. Exit code 12: wrong bytes; 13: no trusted signature."""
    import lqcd_runtime
    from lqcd_runtime.bundle_file import BundleFile

    with lqcd_runtime.open(str(path)) as bundle:
        size = bundle.verify()
        if not isinstance(bundle.source, BundleFile):
            facts = {"path": str(path), "bytes": size, "trusted": True, "fact": f"store {path}: local stores are trusted"}
        else:
            verdict = _judged(bundle.source, allow_unsigned, allow_unknown_signer)
            facts = {"path": str(path), "bytes": size, "trusted": verdict.trusted, "by": verdict.by, "fact": verdict.fact}
            facts["signatures"] = _signatures(bundle.source)
    if as_json:
        print_json(facts)
    else:
        click.echo(f"{path}: every one of {size} bytes ({human_bytes(size)}) verified")
        click.echo(facts["fact"])
    allowed = allow_unsigned or allow_unknown_signer
    return EXIT_OK if facts["trusted"] or allowed else EXIT_UNTRUSTED


def _judged(bundle: BundleFile, allow_unsigned: bool, allow_unknown_signer: bool) -> Verdict:
    """The verdict; what the policy refuses for want of trust is a verdict here, what is wrong remains an error."""
    from lqcd_aot.trust.policy import Verdict
    from lqcd_runtime.signatures import signatures

    try:
        return policy(allow_unsigned, allow_unknown_signer).judge(bundle)
    except TrustError as refusal:
        if any(signature.problem for signature in signatures(bundle)):
            raise
        return Verdict(False, (), str(refusal))


def _signatures(bundle: BundleFile) -> list[dict[str, object]]:
    from lqcd_runtime.signatures import signatures

    return [signature.as_dict() for signature in signatures(bundle)]
