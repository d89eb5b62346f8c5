"""Exact gauge fields, transformations, and loops walked one site at a time: second derivations for the tests of observables."""

from __future__ import annotations

import numpy as np
import torch

from lqcd_aot.core.su_n import random_su_n


def random_links(lattice, nc=3, seed=1):
    """Haar-random links."""
    return random_su_n((*lattice, 4), nc, seed=seed)


def transformed(links, seed=2):
    """(U^g, g): a random gauge transformation g(x) U_mu(x) g(x+mu)^dag, by roll."""
    g = random_su_n(tuple(links.shape[:4]), links.shape[-1], seed=seed)
    out = [g @ links[..., mu, :, :] @ g.roll(-1, mu).mH for mu in range(4)]
    return torch.stack(out, 4), g


def reflected(links):
    """Parity x -> -x: U'_T(t,x) = U_T(t,-x), U'_k(t,x) = U_k(t,-x-k)^dag."""
    minus = links.flip(1, 2, 3).roll((1, 1, 1), (1, 2, 3))
    out = [minus[..., 0, :, :]]
    out += [minus[..., k, :, :].roll(-1, k).mH for k in (1, 2, 3)]
    return torch.stack(out, 4)


def walk(links, x, path):
    """Product of links along `path` (steps +-(mu+1)) from site x, one site at a time, in numpy."""
    u = links.numpy()
    at, product = list(x), np.eye(u.shape[-1], dtype=complex)
    for step in path:
        mu = abs(step) - 1
        if step < 0:
            at[mu] = (at[mu] - 1) % u.shape[mu]
            product = product @ u[tuple(at)][mu].conj().T
        else:
            product = product @ u[tuple(at)][mu]
            at[mu] = (at[mu] + 1) % u.shape[mu]
    return product


def abelian_flux(lattice, n_tz, n_yx):
    """SU(3) field diag(e^{i a}, e^{-i a}, 1) with constant flux 2 pi n/(T Z) in the TZ plane and 2 pi n/(Y X) in the YX plane."""
    t, z, y, x = np.meshgrid(*[np.arange(n) for n in lattice], indexing="ij")
    angle = np.zeros((*lattice, 4))
    phi, chi = 2 * np.pi * n_tz / (lattice[0] * lattice[1]), 2 * np.pi * n_yx / (lattice[2] * lattice[3])
    angle[..., 1] = phi * t
    angle[-1, ..., 0] = -phi * lattice[0] * z[-1]
    angle[..., 3] = chi * y
    angle[:, :, -1, :, 2] = -chi * lattice[2] * x[:, :, -1, :]
    u = np.zeros((*lattice, 4, 3, 3), complex)
    u[..., 0, 0], u[..., 1, 1], u[..., 2, 2] = np.exp(1j * angle), np.exp(-1j * angle), 1
    return torch.from_numpy(u), phi, chi


def plane_wave(extent, amplitude):
    """Weak transverse wave on [extent,2,2,2]: U_Y(t) = diag(e^{i a}, e^{-i a}, 1), a = amplitude cos(2 pi t / extent)."""
    angle = amplitude * np.cos(2 * np.pi * np.arange(extent) / extent)
    u = np.zeros((extent, 2, 2, 2, 4, 3, 3), complex)
    u[...] = np.eye(3)
    u[..., 2, 0, 0], u[..., 2, 1, 1] = np.exp(1j * angle)[:, None, None, None], np.exp(-1j * angle)[:, None, None, None]
    return torch.from_numpy(u)
