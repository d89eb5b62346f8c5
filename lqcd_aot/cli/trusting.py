"""What the verbs share that must decide whom to trust: options, the policy, the verdict said loudly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lqcd_aot.settings import config_dir

if TYPE_CHECKING:
    from lqcd_aot.trust import Policy, SigningKey
    from lqcd_aot.trust.policy import Verdict

key_option = click.option(
    "--key", "key_path", type=click.Path(path_type=Path), default=None, help="Secret key file. [default: the one in the settings]"
)


def trust_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--allow-unsigned --allow-unknown-signer."""
    unsigned = click.option("--allow-unsigned", is_flag=True, help="Take what nobody has signed.")
    unknown = click.option("--allow-unknown-signer", is_flag=True, help="Take what only unknown keys have signed.")
    return unsigned(unknown(function))


def policy(allow_unsigned: bool, allow_unknown_signer: bool) -> Policy:
    """The user's trusted keys with what was allowed on the command line."""
    from lqcd_aot.trust import Policy, Trusted

    return Policy(Trusted(trusted_folder()), allow_unsigned, allow_unknown_signer)


def trusted_folder() -> Path:
    """Where the trusted public keys are."""
    return config_dir() / "trusted"


def keys_folder() -> Path:
    """Where the user's own keys are."""
    return config_dir() / "keys"


def signing_key(path: Path | None) -> SigningKey:
    """The key named, else the only one in the settings. Errors: TrustError, UsageError where there are several."""
    from lqcd_aot.trust import SigningKey
    from lqcd_runtime.errors import UsageError

    if path is not None:
        return SigningKey.load(path)
    own = sorted(keys_folder().glob("*.key")) if keys_folder().is_dir() else []
    if len(own) != 1:
        raise UsageError(
            f"key: there are {len(own)} in {keys_folder()}",
            found=", ".join(file.name for file in own) or None,
            hint="--key FILE names one" + ("" if own else "; lqcd-aot keygen NAME makes one"),
        )
    return SigningKey.load(own[0])


def say(verdict: Verdict) -> None:
    """The verdict on standard error; what passed without trust in red."""
    click.secho(verdict.fact, err=True, fg=None if verdict.trusted else "red", bold=not verdict.trusted)
