"""The Wilson operator in plain numpy, written from lqcd_runtime.conventions: the slow judge of solver and correlator tests."""

from __future__ import annotations

import numpy as np

from lqcd_runtime.conventions import gamma_matrices


class NumpyWilson:
    """M = (4+m) + hop on numpy columns [.., T,Z,Y,X,4,3], with the interface of a DiracOperator that solvers use."""

    def __init__(self, links, mass, t_boundary=1, dtype="float64", sign=1, square=False):
        self.lattice = links.shape[:4]
        self.flops = 1320.0 * np.prod(self.lattice)
        self.dtype, self.mass, self.sign, self.square = dtype, mass, sign, square
        self.periodic_links, self.t_boundary = links, t_boundary
        kind = np.complex64 if dtype == "float32" else np.complex128
        u = links.astype(kind).copy()
        u[-1, :, :, :, 0] *= t_boundary
        self.links = [np.ascontiguousarray(u[..., mu, :, :]) for mu in range(4)]
        # x-mu neighbour's link, daggered: U_mu(x-mu)^dag.
        self.back = [np.roll(v, 1, mu).conj().swapaxes(-1, -2).copy() for mu, v in enumerate(self.links)]
        one = np.eye(4)
        self.forward_spin = [(one - sign * g).astype(kind) for g in gamma_matrices()]
        self.backward_spin = [(one + sign * g).astype(kind) for g in gamma_matrices()]

    def _again(self, **changes):
        now = {"mass": self.mass, "t_boundary": self.t_boundary, "dtype": self.dtype, "sign": self.sign, "square": self.square}
        return NumpyWilson(self.periodic_links, **{**now, **changes})

    @property
    def dagger(self):
        """M^dag: gamma5-hermiticity turns every g into -g."""
        return self._again(sign=-self.sign)

    @property
    def normal(self):
        return self._again(square=True)

    def apply(self, psi):
        if self.square:
            once = self._again(square=False)
            return once.dagger.apply(once.apply(psi))
        out = (4.0 + self.mass) * psi
        for mu in range(4):
            axis = psi.ndim - 6 + mu
            ahead = np.roll(psi, -1, axis) @ self.links[mu].swapaxes(-1, -2)
            behind = np.roll(psi, 1, axis) @ self.back[mu].swapaxes(-1, -2)
            out = out - 0.5 * (self.forward_spin[mu] @ ahead + self.backward_spin[mu] @ behind)
        return out.astype(psi.dtype)
