"""The Wilson operator in complex128 with dense gamma matrices and numpy.roll; shares nothing with templates or torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from lqcd_runtime.conventions import gamma_matrices


def dense_wilson(psi: Any, u: Any, diagonal: float, phases: Any = (-1, 1, 1, 1), ratio: float = 1.0, dagger: bool = False) -> Any:
    """diagonal psi + hop psi; spatial hops times `ratio`; `phases`: factors of the links of each last slice."""
    out = diagonal * psi
    sign = -1 if dagger else 1
    gamma, one = sign * gamma_matrices(), np.eye(4)
    for mu in range(4):
        v = np.moveaxis(u[..., mu, :, :] * (1.0 if mu == 0 else ratio), mu, 0).copy()
        v[-1] *= phases[mu]
        v = np.moveaxis(v, 0, mu)
        ahead = np.einsum("...ab,...sb->...sa", v, np.roll(psi, -1, mu))
        behind = np.roll(np.einsum("...ba,...sb->...sa", v.conj(), psi), 1, mu)
        out = out - 0.5 * (
            np.einsum("st,...ta->...sa", one - gamma[mu], ahead) + np.einsum("st,...ta->...sa", one + gamma[mu], behind)
        )
    return out
