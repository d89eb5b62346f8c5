"""Level-1 linear algebra of fields as pure functions of torch tensors: nothing is changed in place.

Reductions run over all indices, in the tensors' own dtype, except where stated. Shapes must agree; scalars broadcast.
"""

from __future__ import annotations

import torch

Scalar = complex | torch.Tensor

__all__ = ["axpby", "axpy", "caxpby", "dot_many", "inner", "norm", "norm2", "xpay"]


def inner(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """<x|y> = sum conj(x) y: a scalar tensor, linear in y."""
    return torch.vdot(x.reshape(-1), y.reshape(-1)) if x.shape == y.shape else _refuse(x, y)


def norm2(x: torch.Tensor) -> torch.Tensor:
    """<x|x> = sum |x|^2: a real scalar tensor."""
    parts = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
    return parts.square().sum()


def norm(x: torch.Tensor) -> torch.Tensor:
    """sqrt(<x|x>): a real scalar tensor."""
    return norm2(x).sqrt()


def axpy(a: Scalar, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """a x + y."""
    return a * x + y


def xpay(x: torch.Tensor, a: Scalar, y: torch.Tensor) -> torch.Tensor:
    """x + a y."""
    return x + a * y


def axpby(a: Scalar, x: torch.Tensor, b: Scalar, y: torch.Tensor) -> torch.Tensor:
    """a x + b y."""
    return a * x + b * y


def caxpby(a: complex, x: torch.Tensor, b: complex, y: torch.Tensor) -> torch.Tensor:
    """a x + b y with complex numbers a, b."""
    return complex(a) * x + complex(b) * y


def dot_many(basis: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """<basis_i|v> for every vector of `basis` [k, *shape]: complex tensor [k]."""
    if tuple(basis.shape[1:]) != tuple(v.shape):
        _refuse(basis[0], v)
    return basis.reshape(basis.shape[0], -1).conj() @ v.reshape(-1)


def _refuse(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    from lqcd_runtime.errors import UsageError

    raise UsageError("inner product: the fields differ in shape", expected=list(x.shape), found=list(y.shape))
