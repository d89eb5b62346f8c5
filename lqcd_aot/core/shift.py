"""Moving a lattice field by one site, and multiplying by a complex number in either representation.

Shifts are slice + concatenate: a roll has no lowering on every target. Owns nothing else.
"""

from __future__ import annotations

import torch


def shifted(field: torch.Tensor, axis: int, step: int, wrap: complex = 1) -> torch.Tensor:
    """f(x + step mu), step = +-1, along tensor axis `axis`; the slice that wraps around is multiplied by `wrap`."""
    n = field.shape[axis]
    if step == 1:
        rest, edge = field.narrow(axis, 1, n - 1), field.narrow(axis, 0, 1)
        return torch.cat([rest, times(edge, wrap)], dim=axis)
    rest, edge = field.narrow(axis, 0, n - 1), field.narrow(axis, n - 1, 1)
    return torch.cat([times(edge, wrap), rest], dim=axis)


def times(x: torch.Tensor, factor: complex) -> torch.Tensor:
    """factor * x. In the split representation the colour axis is -2 and i (re, im) = (-im, re)."""
    factor = complex(factor)
    if factor.imag == 0:
        return x if factor.real == 1 else x * factor.real
    if x.is_complex():
        return x * factor
    half = x.shape[-2] // 2
    rotated = torch.cat([-x[..., half:, :], x[..., :half, :]], dim=-2) * factor.imag
    return rotated if factor.real == 0 else rotated + x * factor.real
