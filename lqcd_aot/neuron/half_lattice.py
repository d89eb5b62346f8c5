"""Even-odd hops on half lattices, and the layout they share with lqcd-neuron.

    half [..., T,Z,Y,X/2,4,Nc]: the sites with (t+z+y+x) mod 2 == parity, x ascending in every row

Owns packing and `CompiledHop`. The hop between parities is run by the artifact of the full hop.
"""

from __future__ import annotations

from typing import Any

import torch

from lqcd_aot.neuron.compiled import CompiledOperator
from lqcd_runtime.errors import UsageError


def pack_checkerboard(psi_full: torch.Tensor, parity: int) -> torch.Tensor:
    """The sites of one parity (0 even, 1 odd) of [..., T,Z,Y,X,S,C] as [..., T,Z,Y,X/2,S,C]. Errors: UsageError."""
    if psi_full.dim() < 6:
        raise UsageError("spinor: has the wrong shape", expected="[..., T,Z,Y,X,4,Nc]", found=list(psi_full.shape))
    t, z, y, x = psi_full.shape[-6:-2]
    index = _columns((t, z, y, x), parity, psi_full.device)
    return torch.gather(psi_full, -3, index.expand(*psi_full.shape[:-3], x // 2, *psi_full.shape[-2:]))


def unpack_checkerboard(psi_half: torch.Tensor, parity: int, T: int, Z: int, Y: int, X: int) -> torch.Tensor:
    """[..., T,Z,Y,X/2,S,C] on its sites of [..., T,Z,Y,X,S,C]; the sites of the other parity are zero. Errors: UsageError."""
    if psi_half.dim() < 6 or tuple(psi_half.shape[-6:-2]) != (T, Z, Y, X // 2):
        raise UsageError(
            "half spinor: has the wrong shape", expected=f"[..., {T},{Z},{Y},{X // 2},4,Nc]", found=list(psi_half.shape)
        )
    index = _columns((T, Z, Y, X), parity, psi_half.device)
    full = psi_half.new_zeros(*psi_half.shape[:-3], X, *psi_half.shape[-2:])
    return full.scatter(-3, index.expand(psi_half.shape), psi_half)


def require_parity(parity: int) -> None:
    """Errors: UsageError for what is neither 0 nor 1."""
    if parity not in (0, 1):
        raise UsageError(f"parity {parity!r}: does not exist", expected="0 (even) or 1 (odd)", found=repr(parity))


def _columns(shape: tuple[int, int, int, int], parity: int, device: torch.device) -> torch.Tensor:
    """x of every half-lattice site: [T,Z,Y,X/2,1,1]."""
    t, z, y, x = shape
    require_parity(parity)
    if x % 2:
        raise UsageError(f"extent {x} of X: is odd, its rows hold more sites of one parity", expected="an even extent", found=x)
    axes = [torch.arange(n, device=device).reshape([n if a == axis else 1 for a in range(3)]) for axis, n in enumerate((t, z, y))]
    start = (axes[0] + axes[1] + axes[2] + parity) % 2
    return (start[..., None] + 2 * torch.arange(x // 2, device=device))[..., None, None]


class CompiledHop:
    """The hop from the sites of one parity to those of the other: `H(psi_half)` or `H(psi_half, U)`.

    psi_half: [T,Z,Y,X/2,4,Nc] or with leading columns, on the sites of parity 1 - out_parity; the result on those of out_parity.
    engine, note, spec: as CompiledOperator; full: the operator that runs.
    """

    def __init__(self, full: CompiledOperator, out_parity: int) -> None:
        self.full, self.out_parity = full, out_parity
        self.engine, self.spec = full.engine, full.spec
        self.note = f"{full.note}; by the hop on all sites"

    def __call__(self, psi_half: torch.Tensor, U: Any = None) -> torch.Tensor:
        """H psi. Errors: UsageError as CompiledOperator's."""
        if not isinstance(psi_half, torch.Tensor):
            raise UsageError("half spinor: is no tensor", expected="a torch.Tensor", found=type(psi_half).__name__)
        whole = unpack_checkerboard(psi_half, 1 - self.out_parity, *self.spec.lattice)
        return pack_checkerboard(self.full(whole, U), self.out_parity)

    forward = __call__

    def __repr__(self) -> str:
        return f"CompiledHop({self.spec.name}, out_parity {self.out_parity}, engine {self.engine})"
