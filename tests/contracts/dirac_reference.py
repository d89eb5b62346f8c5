"""Naive numpy forms of every dirac operator, written from lqcd_runtime.conventions alone; the judge of the artifacts here.

Nothing is shared with the C++ templates: dense gamma matrices, np.roll, dense clover blocks. complex128 throughout.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lqcd_runtime.conventions import gamma5, gamma_matrices

GAMMA = gamma_matrices()
UNIT = np.eye(4)


def random_fields(lattice: tuple[int, ...], batch: int, seed: int = 7) -> tuple[Any, Any]:
    """Unitary links [T,Z,Y,X,4,3,3] and spinors [batch,T,Z,Y,X,4,3] of normal numbers."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(2, *lattice, 4, 3, 3))
    links = np.linalg.qr(normal[0] + 1j * normal[1])[0]
    spinors = rng.normal(size=(2, batch, *lattice, 4, 3))
    return links, spinors[0] + 1j * spinors[1]


class Reference:
    """Operators on one gauge field. scale: factor of the hop per direction; phase: complex factor on the last slice."""

    def __init__(self, links: Any, *, mass: float, csw: float, mu: float, scale: Any, phase: Any) -> None:
        self.links, self.diagonal, self.csw, self.mu = links, 4 + mass, csw, mu
        self.scale, self.phase = scale, phase
        lattice = links.shape[:4]
        parity = sum(np.ogrid[tuple(slice(n) for n in lattice)]) % 2
        self.even = np.broadcast_to(parity == 0, lattice)[..., None, None]

    def hop(self, psi: Any, dagger: bool) -> Any:
        out = np.zeros_like(psi)
        sign = -1 if dagger else 1
        for mu in range(4):
            factor = np.ones(self.links.shape[mu], complex)
            factor[-1] = self.phase[mu]
            v = self.links[..., mu, :, :] * self.scale[mu] * factor.reshape([-1 if i == mu else 1 for i in range(6)])
            forward = np.einsum("...ab,...sb->...sa", v, np.roll(psi, -1, mu + 1))
            backward = np.roll(np.einsum("...ba,...sb->...sa", v.conj(), psi), 1, mu + 1)
            out -= 0.5 * np.einsum("st,...ta->...sa", UNIT - sign * GAMMA[mu], forward)
            out -= 0.5 * np.einsum("st,...ta->...sa", UNIT + sign * GAMMA[mu], backward)
        return out

    def clover_term(self) -> Any:
        """C with M = diagonal + csw C + hop: [T,Z,Y,X,12,12]."""
        out = np.zeros((*self.links.shape[:4], 4, 3, 4, 3), complex)
        step = np.eye(4, dtype=int)
        for m in range(4):
            for n in range(m + 1, 4):
                q = self._leaves(m, n, step[m], step[n])
                f = (q - _adjoint(q)) / 8
                sigma = 0.5j * (GAMMA[m] @ GAMMA[n] - GAMMA[n] @ GAMMA[m])
                out += 0.5j * np.einsum("st,...ab->...satb", sigma, f)
        return out.reshape(*self.links.shape[:4], 12, 12)

    def _leaves(self, m: int, n: int, em: Any, en: Any) -> Any:
        def u(mu: int, offset: Any) -> Any:
            return np.roll(self.links[..., mu, :, :], tuple(-int(o) for o in offset), (0, 1, 2, 3))

        o, d = 0 * em, _adjoint
        return (
            u(m, o) @ u(n, em) @ d(u(m, en)) @ d(u(n, o))
            + u(n, o) @ d(u(m, en - em)) @ d(u(n, -em)) @ u(m, -em)
            + d(u(m, -em)) @ d(u(n, -em - en)) @ u(m, -em - en) @ u(n, -en)
            + d(u(n, -en)) @ u(m, -en) @ u(n, em - en) @ d(u(m, o))
        )

    def apply(self, operator: str, psi: Any) -> Any:
        """The operator of the table in lqcd_runtime.signature on spinors [batch,T,Z,Y,X,4,3]."""
        family = operator.removesuffix("_dagger").removesuffix("_normal")
        if operator.endswith("_normal"):
            return self._once(family, self._once(family, psi, False), True)
        return self._once(family, psi, operator.endswith("_dagger"))

    def _once(self, family: str, psi: Any, dagger: bool) -> Any:
        hop = self.hop(psi, dagger)
        if family == "wilson_hop":
            return hop
        if family == "wilson":
            return self.diagonal * psi + hop
        if family == "twisted":
            return self.diagonal * psi + (-1j if dagger else 1j) * self.mu * np.einsum("st,...tc->...sc", gamma5(), psi) + hop
        site = self.diagonal * np.eye(12) + (self.csw * self.clover_term() if family.startswith("clover") else 0)
        if family == "clover":
            return _at_site(site, psi) + hop
        psi = psi * self.even
        odd = _at_site(np.linalg.inv(site), self.hop(psi, dagger)) * ~self.even
        return (_at_site(site, psi) - self.hop(odd, dagger)) * self.even


def _adjoint(m: Any) -> Any:
    return m.conj().swapaxes(-1, -2)


def _at_site(matrix: Any, psi: Any) -> Any:
    flat = psi.reshape(*psi.shape[:-2], 12)
    return np.einsum("...ij,...j->...i", matrix, flat).reshape(psi.shape)


def formula_spinor(lattice: tuple[int, ...]) -> Any:
    """cos(0.1(n+1)) + i sin(0.37(n+1)), n the C-order index: [1,T,Z,Y,X,4,3]."""
    n = np.arange(1, 12 * np.prod(lattice) + 1)
    return (np.cos(0.1 * n) + 1j * np.sin(0.37 * n)).reshape(1, *lattice, 4, 3)


def formula_links(lattice: tuple[int, ...], eps: float) -> Any:
    """exp(i sum_k a_k lambda_k), a_k = eps cos(0.3(8n+k)+0.5(k+1)), Gell-Mann lambda_k, n the C-order index over [T,Z,Y,X,mu]."""
    n, k = np.arange(4 * np.prod(lattice))[:, None], np.arange(8)
    a = eps * np.cos(0.3 * (8 * n + k) + 0.5 * (k + 1))
    generators = np.zeros((8, 3, 3), complex)
    for index, (i, j) in zip((0, 3, 5), ((0, 1), (0, 2), (1, 2)), strict=True):
        generators[index, i, j] = generators[index, j, i] = 1
        generators[index + 1, i, j], generators[index + 1, j, i] = -1j, 1j
    generators[2] = np.diag([1, -1, 0])
    generators[7] = np.diag([1, 1, -2]) / np.sqrt(3)
    values, vectors = np.linalg.eigh(np.einsum("nk,kab->nab", a, generators))
    links = np.einsum("nab,nb,ncb->nac", vectors, np.exp(1j * values), vectors.conj())
    return links.reshape(*lattice, 4, 3, 3)
