"""`Variant`: one thing to build = a spec for one target, with the parameters of the build.

Owns the pair and its readable name. Knows nothing of recipes, programs, compilers or stores.
"""

from __future__ import annotations

from typing import NamedTuple

from lqcd_runtime.signature import Spec

DEFAULT_TIMEOUT_S = 300.0
DEFAULT_MEMORY_BYTES = 2 * 1024**3


class Variant(NamedTuple):
    """A spec for one target.

    spec: what a user can ask for; target: a name of lqcd_runtime.target.TARGETS; timeout_s: seconds one compile may take;
    memory_bytes: memory to reserve for one compile; salt: disowns earlier builds where it is not empty. Of these only
    spec, target and salt reach a key.
    """

    spec: Spec
    target: str
    timeout_s: float = DEFAULT_TIMEOUT_S
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    salt: str = ""

    @property
    def name(self) -> str:
        """Readable and unique within a recipe: wilson-8x4x4x4-f64-b12@x86-64-v3."""
        return f"{self.spec.name}@{self.target}"
