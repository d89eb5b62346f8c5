"""Gauge observables and maps in NumPy by following paths of links: the slow second derivation that judges the artifacts.

    path(U, steps)(x): product of the links met when walking from x; a step is (mu, +1) or (mu, -1)

Everything is a sum of closed paths, exponentials go through eigenvectors, and the charge sums all 24 permutations; none of the
artifact's formulas (staples, half of the permutations, power series) is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

PLANES = [(mu, nu) for mu in range(4) for nu in range(mu + 1, 4)]
Step = tuple[int, int]


def dagger(m: Any) -> Any:
    return m.conj().swapaxes(-1, -2)


def trace(m: Any) -> Any:
    return np.trace(m, axis1=-2, axis2=-1)


def path(links: Any, steps: Sequence[Step]) -> Any:
    """Ordered product of links along `steps`, for every starting site: [T,Z,Y,X,3,3]."""
    at = [0, 0, 0, 0]
    product = np.broadcast_to(np.eye(3, dtype=links.dtype), (*links.shape[:4], 3, 3))
    for mu, sign in steps:
        if sign < 0:
            at[mu] -= 1
        link = np.roll(links[:, :, :, :, mu], [-n for n in at], axis=(0, 1, 2, 3))
        product = product @ (link if sign > 0 else dagger(link))
        if sign > 0:
            at[mu] += 1
    return product


def loop(links: Any, a: Step, b: Step) -> Any:
    """The elementary square a, b, -a, -b."""
    return path(links, [a, b, (a[0], -a[1]), (b[0], -b[1])])


def plaquette_planes(links: Any) -> Any:
    return np.array([trace(loop(links, (mu, 1), (nu, 1))).real.mean() / 3 for mu, nu in PLANES])


def wilson_action(links: Any, beta: float) -> float:
    return float(beta * sum((1 - trace(loop(links, (mu, 1), (nu, 1))).real / 3).sum() for mu, nu in PLANES))


def polyakov_loop(links: Any) -> Any:
    """(re, im) per direction, interleaved: [8]."""
    loops = [trace(path(links, [(mu, 1)] * links.shape[mu])).mean() / 3 for mu in range(4)]
    return np.array(loops).view(float)


def field_strength(links: Any, mu: int, nu: int) -> Any:
    """F = (Q - Q^dag)/8 without trace, Q = the sum of the four squares met when turning from mu to nu around x."""
    turns = [((mu, 1), (nu, 1)), ((nu, 1), (mu, -1)), ((mu, -1), (nu, -1)), ((nu, -1), (mu, 1))]
    q = sum(loop(links, a, b) for a, b in turns)
    f = (q - dagger(q)) / 8
    return f - trace(f)[..., None, None] / 3 * np.eye(3)


def topological_charge(links: Any) -> float:
    """-1/(32 pi^2) sum over x and all permutations, eps_xyzt = +1; axes are numbered T, Z, Y, X = 0..3."""
    f = {(mu, nu): field_strength(links, mu, nu) for mu in range(4) for nu in range(4) if mu != nu}
    total = 0.0
    for order in permutations((3, 2, 1, 0)):  # x, y, z, t
        inversions = sum(order[i] < order[j] for i in range(4) for j in range(i + 1, 4))
        total += (-1) ** inversions * trace(f[order[0], order[1]] @ f[order[2], order[3]]).real.sum()
    return float(-total / (32 * np.pi**2))


def energy_density(links: Any) -> float:
    """1/4 G^a_{mu nu} G^a_{mu nu}, averaged; G^a = -2 tr(T^a F) with T^a = -i lambda_a / 2, both orders of (mu, nu) summed."""
    generators = -0.5j * gell_mann()
    total = 0.0
    for mu, nu in PLANES:
        components = -2 * np.einsum("aij,...ji->...a", generators, field_strength(links, mu, nu))
        total += 2 * 0.25 * float((components.real**2).sum(-1).mean())
    return total


def force(links: Any) -> Any:
    """Z_mu(x) = -P(sum of the six squares that begin with U_mu(x)): traceless anti-Hermitian [T,Z,Y,X,4,3,3]."""
    out = np.empty_like(links)
    for mu in range(4):
        squares = sum(loop(links, (mu, 1), (nu, sign)) for nu in range(4) if nu != mu for sign in (1, -1))
        p = (squares - dagger(squares)) / 2
        out[:, :, :, :, mu] = trace(p)[..., None, None] / 3 * np.eye(3) - p
    return out


def exponential(z: Any) -> Any:
    """exp of anti-Hermitian matrices through the eigenvectors of -i z."""
    values, vectors = np.linalg.eigh(-1j * z)
    return (vectors * np.exp(1j * values)[..., None, :]) @ dagger(vectors)


def wilson_flow_step(links: Any, epsilon: float) -> Any:
    z0 = epsilon * force(links)
    w1 = exponential(z0 / 4) @ links
    z1 = epsilon * force(w1)
    w2 = exponential(z1 * 8 / 9 - z0 * 17 / 36) @ w1
    z2 = epsilon * force(w2)
    return exponential(z2 * 3 / 4 - z1 * 8 / 9 + z0 * 17 / 36) @ w2


def stout_smear(links: Any, rho: float) -> Any:
    return exponential(rho * force(links)) @ links


def gell_mann() -> Any:
    """The eight matrices lambda_a: complex128 [8,3,3]."""
    out = np.zeros((8, 3, 3), np.complex128)
    for a, (i, j) in {0: (0, 1), 3: (0, 2), 5: (1, 2)}.items():
        out[a, i, j] = out[a, j, i] = 1
        out[a + 1, i, j], out[a + 1, j, i] = -1j, 1j
    out[2] = np.diag([1, -1, 0])
    out[7] = np.diag([1, 1, -2]) / np.sqrt(3)
    # The order is 1..8 with lambda_3 diagonal: (0,1) fills 0 and 1, (0,2) fills 3 and 4, (1,2) fills 5 and 6.
    return out


def synthetic_links(lattice: Sequence[int], eps: float) -> Any:
    """exp(i sum_k a_k lambda_k), a_k = eps cos(0.3 (8n+k) + 0.5 (k+1)), n = C-order index over [T,Z,Y,X,mu]."""
    n = np.arange(int(np.prod(lattice)) * 4)[:, None]
    k = np.arange(8)[None, :]
    a = eps * np.cos(0.3 * (8 * n + k) + 0.5 * (k + 1))
    return exponential(1j * np.einsum("nk,kij->nij", a, gell_mann())).reshape(*lattice, 4, 3, 3)


def random_links(lattice: Sequence[int], seed: int, shape: tuple[int, ...] = (4,)) -> Any:
    """SU(3) matrices from seeded Gaussian ones: [T,Z,Y,X,*shape,3,3]."""
    rng = np.random.default_rng(seed)
    size = (*lattice, *shape, 3, 3)
    q, _ = np.linalg.qr(rng.normal(size=size) + 1j * rng.normal(size=size))
    return q / np.linalg.det(q)[..., None, None] ** (1 / 3)


def gauge_transformed(links: Any, g: Any) -> Any:
    """g(x) U_mu(x) g(x+mu)^dagger."""
    return np.stack([g @ links[:, :, :, :, mu] @ dagger(np.roll(g, -1, axis=mu)) for mu in range(4)], axis=4)
