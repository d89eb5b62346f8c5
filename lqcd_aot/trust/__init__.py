"""Who made this? Ed25519 keys, signatures of bundles and records, and the list of signers a user trusts.

    keys.py      key pairs and their files
    sign.py      signatures of a manifest and of records, and bundles with them added
    trusted.py   the folder of trusted public keys
    policy.py    what import and pull accept: one judgement, one sentence for each reason

The form of signatures and their arithmetic are lqcd_runtime.signatures and lqcd_runtime.ed25519. The threats this answers are in
artifacts/README.md, "Threats". Importing this package loads no cryptography.
"""

from lqcd_aot.trust.keys import PublicKey as PublicKey
from lqcd_aot.trust.keys import SigningKey as SigningKey
from lqcd_aot.trust.policy import Policy as Policy
from lqcd_aot.trust.trusted import Trusted as Trusted

__all__ = ["Policy", "PublicKey", "SigningKey", "Trusted"]
