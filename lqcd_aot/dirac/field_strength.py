"""The clover-leaf field strength, used by the clover term here and by the topological charge and energy density in observables.

Q_{mu nu}(x) = sum of the four plaquette leaves that start and end at x, counter-clockwise in the mu-nu plane
F_{mu nu}(x) = (Q - Q^dag) / 8          anti-Hermitian, trace kept (Chroma)
"""

from __future__ import annotations

import torch

from lqcd_aot.core.shift import shifted
from lqcd_aot.dirac.stencil import adjoint
from lqcd_runtime.conventions import PLANES


def clover_leaves(links: torch.Tensor, mu: int, nu: int) -> torch.Tensor:
    """Q_{mu nu}(x): tensor [T,Z,Y,X,C,C]. Every leaf is based at x, so Q(x) -> g(x) Q(x) g(x)^dag.

    With L the leaf in the (+mu,+nu) quadrant: U_mu(x) U_nu(x+mu) U_mu(x+nu)^dag U_nu(x)^dag; the other three turn the same way.
    """
    u, v = links[:, :, :, :, mu], links[:, :, :, :, nu]
    v_mu, u_nu = shifted(v, mu, 1), shifted(u, nu, 1)
    # Half plaquettes around the corner x, x+mu, x+nu, x+mu+nu; shifting whole corners moves the base, not the links.
    upper = v_mu @ adjoint(u_nu)  # from x+mu over x+mu+nu to x+nu
    vd = adjoint(v)
    leaf_1 = u @ upper @ vd  # based at x
    leaf_2 = shifted(upper @ vd @ u, mu, -1)  # based at x+mu: quadrant (-mu,+nu) of that site
    leaf_3 = shifted(shifted(adjoint(u_nu) @ vd @ u @ v_mu, mu, -1), nu, -1)  # based at x+mu+nu
    leaf_4 = shifted(vd @ u @ v_mu @ adjoint(u_nu), nu, -1)  # based at x+nu
    return leaf_1 + leaf_2 + leaf_3 + leaf_4


def field_strength(links: torch.Tensor, mu: int, nu: int) -> torch.Tensor:
    """F_{mu nu} = (Q - Q^dag)/8: tensor [T,Z,Y,X,C,C]."""
    leaves = clover_leaves(links, mu, nu)
    return (leaves - adjoint(leaves)) / 8


def compute_field_strength(links: torch.Tensor) -> torch.Tensor:
    """F of the six planes in the order TZ, TY, TX, ZY, ZX, YX: tensor [T,Z,Y,X,6,Nc,Nc], anti-Hermitian."""
    return torch.stack([field_strength(links, mu, nu) for mu, nu in PLANES], dim=4)
