"""`HloProgram`: what a Neuron compiler gets and how the runtime calls the result. Refuses to know specs and compilers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lqcd_runtime.digest import sha256_hex, tagged_sha256

if TYPE_CHECKING:
    from lqcd_aot.program.hlo.estimate import Estimate

PROGRAM_TAG = "lqcd-aot/hlo-program/v1"


@dataclass(frozen=True, eq=False)
class HloProgram:
    """hlo: canonical HloModuleProto bytes, compiled as they are; binding: lqcd_runtime.split_binding.binding of the spec.

    identity: "<spec.name>@<target>", for logs and double checks; in no digest, as the bytes say everything.
    """

    hlo: bytes
    binding: dict[str, Any]
    identity: str

    @cached_property
    def digest(self) -> str:
        """tagged_sha256(PROGRAM_TAG, {"hlo": sha256, "binding": ...}): the binding is in it, because two parameters of one
        shape may change places without a byte of the program changing."""
        return tagged_sha256(PROGRAM_TAG, {"hlo": sha256_hex(self.hlo), "binding": self.binding})

    def estimate(self, target: str) -> Estimate:
        """What it will take of a core of that target, by hlo/estimate.py."""
        from lqcd_aot.program.hlo.estimates import remembered

        return remembered(self.hlo, target)
