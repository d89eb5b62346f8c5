"""Thick-restart Lanczos: the lowest eigenpairs of a Hermitian operator, each with its true residual.

Every new direction is orthogonalised against the whole basis, twice, and the projected matrix is taken from those inner
products, so no ghost eigenvalues appear. Source: K. Wu, H. Simon, SIAM J. Matrix Anal. Appl. 22 (2000) 602.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from lqcd_aot.core.checks import require_complex_dtype, require_finite
from lqcd_runtime.errors import UsageError


@dataclass(frozen=True)
class EigenInfo:
    """converged: every residual met the tolerance; restarts, applications: what it took; residuals: |A v - lambda v| / |A| of
    every pair, recomputed, with |A| estimated by the largest Ritz value."""

    converged: bool
    restarts: int
    applications: int
    residuals: list[float]


class Lanczos:
    """The n_ev lowest eigenpairs from a basis of n_kr > n_ev + 1 vectors; maxiter: restarts; tol: on the relative residuals."""

    def __init__(self, n_ev: int = 16, n_kr: int = 64, tol: float = 1e-6, maxiter: int = 500) -> None:
        if not (n_ev >= 1 and n_ev + 2 <= n_kr and 0 < tol < 1 and maxiter >= 1):
            raise UsageError(
                "Lanczos: the sizes are out of range",
                expected="n_ev >= 1, n_kr >= n_ev + 2, 0 < tol < 1, maxiter >= 1",
                found=f"n_ev={n_ev}, n_kr={n_kr}, tol={tol}, maxiter={maxiter}",
            )
        self.n_ev, self.n_kr, self.tol, self.maxiter = n_ev, n_kr, tol, maxiter

    def solve(
        self, A: Callable[[torch.Tensor], torch.Tensor], start: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, EigenInfo]:
        """(eigenvalues [n_ev] ascending, eigenvectors [n_ev, ...], info) from a start vector with a share in each of them.

        Errors: UsageError for a real, zero or non-finite start, or more basis vectors than dimensions.
        """
        require_finite(start, "start vector")
        require_complex_dtype(start.dtype, "start vector")
        if start.numel() < self.n_kr or float(start.norm()) == 0:
            raise UsageError("start vector: spans too little", expected=f"non-zero, {self.n_kr} components", found=start.numel())
        with torch.no_grad():
            return self._solve(lambda v: A(v.reshape(start.shape)).reshape(-1), start)

    def _solve(
        self, A: Callable[[torch.Tensor], torch.Tensor], start: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, EigenInfo]:
        basis = (start / start.norm()).reshape(1, -1)
        projected = torch.zeros(0, 0, dtype=start.dtype, device=start.device)
        applications = 0
        for restart in range(1, self.maxiter + 1):
            while True:
                image = A(basis[-1])
                applications += 1
                column, image = _orthogonalised(image, basis)
                projected = _bordered(projected, column)
                length = float(image.norm())
                # An invariant subspace: nothing is left to add, its Ritz pairs are exact.
                exact = length <= 10 * torch.finfo(start.dtype).eps * float(torch.linalg.matrix_norm(projected))
                if exact or len(basis) == self.n_kr:
                    break
                basis = torch.cat([basis, (image / length)[None]])
            values, vectors = torch.linalg.eigh(projected)
            count = min(self.n_ev, len(values))
            ritz = vectors[:, :count].T @ basis
            coupling = length * vectors[-1, :count].abs() / values.abs().max()
            if exact or float(coupling.max()) <= self.tol or restart == self.maxiter:
                break
            kept = min(count + (self.n_kr - count) // 3, self.n_kr - 2)
            basis = torch.cat([vectors[:, :kept].T @ basis, (image / length)[None]])
            projected = torch.diag(values[:kept]).to(start.dtype)
        scale = float(values.abs().max())
        residuals = [float((A(v) - value * v).norm()) / scale for value, v in zip(values[:count], ritz, strict=True)]
        converged = count == self.n_ev and max(residuals) <= self.tol
        info = EigenInfo(converged, restart, applications + count, residuals)
        return values[:count], ritz.reshape(count, *start.shape), info


def _orthogonalised(image: torch.Tensor, basis: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(overlaps with the basis, rest), by two passes of Gram-Schmidt."""
    column = torch.zeros(len(basis), dtype=image.dtype, device=image.device)
    for _ in range(2):
        overlap = basis.conj() @ image
        image = image - overlap @ basis
        column = column + overlap
    return column, image


def _bordered(matrix: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
    """The Hermitian matrix with one more row and column."""
    n = len(column)
    out = torch.zeros(n, n, dtype=column.dtype, device=column.device)
    out[: n - 1, : n - 1] = matrix
    out[:, n - 1], out[n - 1, :] = column, column.conj()
    out[n - 1, n - 1] = column[-1].real
    return out
