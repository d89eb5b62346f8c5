"""The physics conventions, once: axes, gamma matrices, operator normalisation, sign of the topological charge.

    U[T,Z,Y,X,mu,a,b], mu: 0=T 1=Z 2=Y 3=X, U_mu(x) joins x to x+mu;   psi[T,Z,Y,X,spin,colour]; C order, X fastest
    hop psi(x) = -1/2 sum_mu [(1-g_mu) U_mu(x) psi(x+mu) + (1+g_mu) U_mu(x-mu)^dag psi(x-mu)]
    M = (4+m) + hop,  kappa = 1/(8+2m)
    g5 = g_X g_Y g_Z g_T = diag(1,1,-1,-1)   (DeGrand-Rossi, as Chroma, QDP++, QUDA and PyQUDA use it)

Every artifact's manifest carries `CONVENTIONS`; the runtime refuses one that differs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AXES = ("T", "Z", "Y", "X")
PLANES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
FLOPS_WILSON_HOP = 1320
FLOPS_CLOVER = 504

CONVENTIONS = {
    "axis_order": "TZYX",
    "gamma_basis": "degrand-rossi",
    "hop": "-1/2 sum (1-g)U psi(+) + (1+g)U^dag psi(-)",
    "diagonal": "4+m",
    "clover": "csw i/2 sum_{mu<nu} sigma F, sigma=i/2[g,g], F=(Q-Q^dag)/8 with trace",
    "topological_charge": "-1/(32 pi^2) eps tr FF, traceless F, eps_xyzt=+1",
    "even": "(t+z+y+x) even",
}

# Each gamma matrix has one non-zero entry a row: GAMMA_COLUMN[mu][row] is its column, GAMMA_VALUE[mu][row] its value.
GAMMA_COLUMN = ((2, 3, 0, 1), (2, 3, 0, 1), (3, 2, 1, 0), (3, 2, 1, 0))
GAMMA_VALUE = ((1, 1, 1, 1), (1j, -1j, -1j, 1j), (-1, 1, 1, -1), (1j, 1j, -1j, -1j))


def gamma_matrices() -> NDArray[np.complex128]:
    """The four gamma matrices in axis order T, Z, Y, X: complex128 [4,4,4]."""
    import numpy as np

    g = np.zeros((4, 4, 4), np.complex128)
    for mu in range(4):
        for row in range(4):
            g[mu, row, GAMMA_COLUMN[mu][row]] = GAMMA_VALUE[mu][row]
    return g


def gamma5() -> NDArray[np.complex128]:
    """g_X g_Y g_Z g_T = diag(1, 1, -1, -1): complex128 [4,4]."""
    import numpy as np

    return np.diag(np.array([1, 1, -1, -1], np.complex128))
