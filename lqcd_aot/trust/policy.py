"""What import and pull accept. One judgement for every way in, and one sentence for each refusal.

    accepted    the manifest, or every single record, is signed by a trusted key
    refused     a signature that is not right (always: no flag allows it), no signature, signatures by unknown keys only

`allow_unsigned` and `allow_unknown` let the last two pass; the verdict then says so, and whoever asked must print it. What was
built here is trusted: whoever may write the store may also replace the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lqcd_aot.trust.trusted import Trusted
from lqcd_runtime.errors import TrustError

if TYPE_CHECKING:
    from lqcd_runtime.bundle_file import BundleFile
    from lqcd_runtime.signatures import Signature


class Verdict(NamedTuple):
    """trusted: whether a trusted key vouches for all of it. by: names of those keys. fact: one sentence to print."""

    trusted: bool
    by: tuple[str, ...]
    fact: str


class Policy(NamedTuple):
    """The keys trusted, and what passes without one."""

    trusted: Trusted
    allow_unsigned: bool = False
    allow_unknown: bool = False

    def judge(self, bundle: BundleFile) -> Verdict:
        """The verdict on a bundle file. Errors: TrustError where it is refused, CorruptError for signatures that are none."""
        from lqcd_aot.trust.sign import record_digests
        from lqcd_runtime.signatures import signatures

        return self.judge_signatures(signatures(bundle), record_digests(bundle), bundle.where)

    def judge_signatures(self, found: Sequence[Signature], records: Mapping[str, str], where: str) -> Verdict:
        """The verdict on checked signatures; records: {build key: digest} of all that must be vouched for."""
        wrong = [str(s) for s in found if s.problem is not None]
        if wrong:
            raise TrustError(
                f"{where}: has {len(wrong)} signatures that are not right",
                details=wrong,
                hint="do not use it; fetch it again from its maker",
            )
        names = {key.key_id: key.name for key in self.trusted.all()}
        whole = sorted(names[s.key_id] for s in found if s.kind == "manifest" and s.key_id in names)
        if whole:
            return Verdict(True, tuple(whole), f"{where}: signed by {', '.join(whole)}")
        vouched: set[str] = set()
        by = sorted({names[s.key_id] for s in found if s.key_id in names and s.covers & records.keys()})
        for signature in found:
            if signature.key_id in names:
                vouched |= signature.covers
        left = sorted(records.keys() - vouched)
        if not left:
            return Verdict(True, tuple(by), f"{where}: every record signed by {', '.join(by)}")
        return self._without(found, left, len(records), where)

    def _without(self, found: Sequence[Signature], left: list[str], count: int, where: str) -> Verdict:
        if not found:
            if self.allow_unsigned:
                return Verdict(False, (), f"{where}: IS NOT SIGNED; accepted because unsigned was allowed")
            raise TrustError(
                f"{where}: is not signed",
                expected=f"a signature by a key in {self.trusted.folder}",
                hint="lqcd-aot sign BUNDLE at its maker; or --allow-unsigned here, if you know where it comes from",
            )
        ids = ", ".join(sorted({s.key_id[:16] for s in found}))
        if self.allow_unknown:
            return Verdict(False, (), f"{where}: SIGNED BY UNKNOWN KEYS ONLY ({ids}); accepted because unknown was allowed")
        raise TrustError(
            f"{where}: no trusted key vouches for {len(left)} of its {count} records",
            expected=f"a signature by a key in {self.trusted.folder}",
            found=f"signatures by {ids}",
            hint="lqcd-aot trust add SIGNER.pub, if you know the signer; or --allow-unknown-signer for this once",
        )
