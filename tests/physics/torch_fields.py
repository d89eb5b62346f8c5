"""Fields for the physics tests of the torch modules: formulas, published references, random fields. Imports no operator.

`synthetic` follows the formula of synthetic_reference.json: n = C-order index over [T,Z,Y,X,mu],
a_k = eps cos(0.3(8n+k)+0.5(k+1));
U = exp(i sum_k a_k lambda_k) with the Gell-Mann matrices.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lqcd_aot.core import ColorSpinorField, GaugeField, LatticeGeometry
from lqcd_aot.core.su_n import random_su_n

C64, C128 = torch.complex64, torch.complex128
SMALL = LatticeGeometry(4, 2, 2, 4)


def gell_mann() -> np.ndarray:
    """The eight Gell-Mann matrices: complex128 [8,3,3]."""
    m = np.zeros((8, 3, 3), np.complex128)
    # The off-diagonal pairs (lambda_1,2), (lambda_4,5), (lambda_6,7) at array positions 0, 3, 5.
    for k, (i, j) in {0: (0, 1), 3: (0, 2), 5: (1, 2)}.items():
        m[k, i, j] = m[k, j, i] = 1
        m[k + 1, i, j], m[k + 1, j, i] = -1j, 1j
    m[2] = np.diag([1, -1, 0])
    m[7] = np.diag([1, 1, -2]) / np.sqrt(3)
    return m


@lru_cache(maxsize=8)
def synthetic(dims: tuple[int, int, int, int], eps: float) -> torch.Tensor:
    """The formula's links [T,Z,Y,X,4,3,3]."""
    n = np.arange(np.prod(dims) * 4)[:, None]
    k = np.arange(8)[None, :]
    a = eps * np.cos(0.3 * (8 * n + k) + 0.5 * (k + 1))
    hermitian = torch.from_numpy(np.einsum("nk,kab->nab", a, gell_mann()))
    return torch.linalg.matrix_exp(1j * hermitian).reshape(*dims, 4, 3, 3)


def generic_source(shape: tuple[int, ...]) -> torch.Tensor:
    """cos(0.1(n+1)) + i sin(0.37(n+1)), n = C-order index."""
    n = np.arange(np.prod(shape)) + 1
    return torch.from_numpy((np.cos(0.1 * n) + 1j * np.sin(0.37 * n)).reshape(shape))


@lru_cache(maxsize=1)
def weak_field_reference(data_dir: Path) -> dict[str, Any]:
    """All arrays of wilson_reference_weakfield_4448.npz."""
    with np.load(data_dir / "wilson_reference_weakfield_4448.npz") as npz:
        return {k: npz[k] for k in npz.files}


@lru_cache(maxsize=1)
def synthetic_reference(data_dir: Path) -> list[dict[str, Any]]:
    """The five records of synthetic_reference.json."""
    records: list[dict[str, Any]] = json.loads((data_dir / "synthetic_reference.json").read_text())
    return records


def links(geom: LatticeGeometry = SMALL, seed: int = 1, dtype: torch.dtype = C128) -> torch.Tensor:
    """Haar links."""
    return GaugeField.random(geom, dtype=dtype, seed=seed).tensor


def spinor(geom: LatticeGeometry = SMALL, seed: int = 2, dtype: torch.dtype = C128) -> torch.Tensor:
    """A Gaussian spinor of norm 1."""
    return ColorSpinorField.gaussian(geom, dtype=dtype, seed=seed).tensor


def rotation(geom: LatticeGeometry = SMALL, seed: int = 3) -> torch.Tensor:
    """A random gauge transformation [T,Z,Y,X,Nc,Nc]."""
    return random_su_n(geom.shape, geom.nc, seed=seed)


def relative(a: Any, b: Any) -> float:
    """|a - b| / |b| in the Euclidean norm."""
    a, b = torch.as_tensor(a).to(C128), torch.as_tensor(b).to(C128)
    return float((a - b).norm() / b.norm())
