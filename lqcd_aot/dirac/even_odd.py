"""Even-odd (red-black) form: the hop between parities, and the Schur complement of Wilson on the even sites.

A site is even when t+z+y+x is even. All arrays are full-lattice; the sites of the other parity are zero. Odd extents are refused:
around them the hop joins equal parities.
"""

from __future__ import annotations

from typing import Any

import torch

from lqcd_aot.core.spinor_field import ColorSpinorField
from lqcd_aot.dirac.wilson import LatticeOperator, Links, Spinor, WilsonDirac, link_tensor
from lqcd_runtime.errors import UsageError
from lqcd_runtime.geometry import format_extents

EVEN, ODD = 0, 1


def require_even_extents(shape: tuple[int, ...]) -> None:
    """Errors: UsageError where an extent is odd."""
    if any(n % 2 for n in shape):
        raise UsageError(
            f"lattice {format_extents(shape)}: has an odd extent, even-odd operators do not exist on it",
            expected="four even extents",
            found=format_extents(shape),
            hint="use the full operator",
        )


def parity_mask(shape: tuple[int, ...], parity: int, device: torch.device | str | None = None) -> torch.Tensor:
    """True where (t+z+y+x) mod 2 == parity: bool [T,Z,Y,X,1,1], to be multiplied with spinors. Odd extents are refused."""
    require_even_extents(shape)
    index = torch.zeros((), dtype=torch.int64, device=device)
    for axis, n in enumerate(shape):
        index = index + torch.arange(n, device=device).reshape([n if a == axis else 1 for a in range(4)])
    return (index % 2 == parity)[..., None, None]


def on_parity(psi: torch.Tensor, parity: int) -> torch.Tensor:
    """psi on the sites of one parity, zero on the others; [..., T,Z,Y,X,4,C]."""
    mask = parity_mask(tuple(psi.shape[-6:-2]), parity, psi.device)
    return torch.where(mask, psi, torch.zeros((), dtype=psi.dtype, device=psi.device))


class EvenOddWilsonDslash(LatticeOperator):
    """The hop split by parity: hop = H_eo + H_oe. Keywords as LatticeOperator.

    hop_eo(psi, U): even sites of the result, from odd sites; hop_oe(psi, U): odd sites, from even sites. forward: their sum.
    """

    def hop_eo(self, psi: Spinor, U: Links) -> Spinor:
        """H_eo psi: zero on odd sites; only odd sites of psi are read."""
        return self._half(psi, U, EVEN)

    def hop_oe(self, psi: Spinor, U: Links) -> Spinor:
        """H_oe psi: zero on even sites; only even sites of psi are read."""
        return self._half(psi, U, ODD)

    def _half(self, psi: Spinor, U: Links, parity: int) -> Spinor:
        result = self.forward(psi, U)
        if isinstance(result, ColorSpinorField):
            return ColorSpinorField(on_parity(result.tensor, parity), result.geom)
        return on_parity(result, parity)

    def act(self, psi: torch.Tensor, links: torch.Tensor, dagger: bool, prepared: Any) -> torch.Tensor:
        require_even_extents(tuple(links.shape[:4]))
        return super().act(psi, links, dagger, prepared)


class WilsonSchur(WilsonDirac):
    """S psi = d psi_e - H_eo H_oe psi_e / d, d = 4+m (or the anisotropic diagonal), on the even sites.

    Odd sites of psi are not read; those of the result are zero. det M = d^(12 V/2) det S; `even_source` and `full_solution`
    reduce M x = b to S x_e = b' and back. Keywords as WilsonDirac. Errors: UsageError for d = 0 or an odd extent.
    """

    def __init__(self, mass: float | None = None, **options: Any) -> None:
        super().__init__(mass, **options)
        self._require_invertible_diagonal()

    def _require_invertible_diagonal(self) -> None:
        if abs(self.diagonal) < 1e-14:
            raise UsageError(
                f"mass {self.mass}: the even-odd diagonal 4+m vanishes",
                expected="4+m != 0",
                found=self.diagonal,
                hint="use the full operator",
            )

    def even_source(self, b: torch.Tensor, U: Links) -> torch.Tensor:
        """b' = b_e - H_eo A_oo^-1 b_o, the right-hand side of S x_e = b'."""
        links = link_tensor(U)
        odd = self._odd_inverse(on_parity(b, ODD), self._prepared(links))
        return on_parity(b, EVEN) - on_parity(self._hop(odd, links, False), EVEN)

    def full_solution(self, x: torch.Tensor, b: torch.Tensor, U: Links) -> torch.Tensor:
        """The solution of M x = b from that of S x_e = b': x_o = A_oo^-1 (b_o - H_oe x_e)."""
        links = link_tensor(U)
        even = on_parity(x, EVEN)
        odd = on_parity(b - self._hop(even, links, False), ODD)
        return even + self._odd_inverse(odd, self._prepared(links))

    def _diagonal_times(self, psi: torch.Tensor, prepared: Any) -> torch.Tensor:
        return psi * self.diagonal

    def _odd_inverse(self, psi: torch.Tensor, prepared: Any) -> torch.Tensor:
        return psi / self.diagonal

    def act(self, psi: torch.Tensor, links: torch.Tensor, dagger: bool, prepared: Any) -> torch.Tensor:
        even = on_parity(psi, EVEN)
        odd = self._odd_inverse(on_parity(self._hop(even, links, dagger), ODD), prepared)
        back = on_parity(self._hop(odd, links, dagger), EVEN)
        return self._diagonal_times(even, prepared) - back
