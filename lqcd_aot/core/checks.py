"""The questions asked of every tensor before physics starts: shape, dtype, device, finite values, group membership.

Owns the wording of these refusals. Every function raises UsageError, or returns what it was given.
"""

from __future__ import annotations

import torch

from lqcd_runtime.errors import UsageError

COMPLEX_DTYPES = (torch.complex64, torch.complex128)


def require_complex_dtype(dtype: torch.dtype, what: str) -> torch.dtype:
    """`dtype` if it is complex64 or complex128."""
    if dtype not in COMPLEX_DTYPES:
        raise UsageError(f"{what}: has dtype {dtype}", expected="torch.complex64 or torch.complex128", found=dtype)
    return dtype


def require_shape(tensor: torch.Tensor, shape: tuple[int, ...], what: str) -> torch.Tensor:
    """`tensor` if it is a tensor of exactly this shape."""
    if not isinstance(tensor, torch.Tensor):
        raise UsageError(f"{what}: is no tensor", expected="a torch.Tensor", found=type(tensor).__name__)
    if tuple(tensor.shape) != tuple(shape):
        raise UsageError(f"{what}: has the wrong shape", expected=list(shape), found=list(tensor.shape))
    return tensor


def require_same(a: torch.Tensor, b: torch.Tensor, names: str) -> None:
    """Two tensors that meet in one formula live on one device in one dtype; nothing is converted behind the caller's back."""
    if a.dtype != b.dtype:
        raise UsageError(
            f"{names}: differ in dtype", expected="one dtype", found=f"{a.dtype} and {b.dtype}", hint=".to(dtype=...)"
        )
    if a.device != b.device:
        raise UsageError(
            f"{names}: live on different devices",
            expected="one device",
            found=f"{a.device} and {b.device}",
            hint=".to(device=...)",
        )


def require_pair(psi: torch.Tensor, links: torch.Tensor, nc: int | None = None, dtype: torch.dtype | None = None) -> None:
    """Spinors [...,T,Z,Y,X,4,Nc] fit links [T,Z,Y,X,4,Nc,Nc]; `nc`, `dtype`: what the operator was made for, if given."""
    if not isinstance(psi, torch.Tensor) or not isinstance(links, torch.Tensor):
        raise UsageError(
            "operator: needs a spinor and links",
            expected="torch tensors, ColorSpinorField or GaugeField",
            found=f"{type(psi).__name__} and {type(links).__name__}",
        )
    shape = tuple(links.shape)
    if len(shape) != 7 or shape[4] != 4 or shape[5] != shape[6] or shape[6] < 2:
        raise UsageError("links: have the wrong shape", expected="[T,Z,Y,X,4,Nc,Nc], Nc >= 2", found=list(shape))
    if tuple(psi.shape[-6:]) != (*shape[:4], 4, shape[6]):
        raise UsageError(
            "spinor: does not fit the links",
            expected=f"[..., {', '.join(map(str, (*shape[:4], 4, shape[6])))}]",
            found=list(psi.shape),
        )
    require_complex_dtype(psi.dtype, "spinor")
    require_same(psi, links, "spinor and links")
    if nc is not None and shape[6] != nc:
        raise UsageError(
            f"links: have {shape[6]} colours", expected=f"the {nc} colours the operator was made for", found=shape[6]
        )
    if dtype is not None and psi.dtype != dtype:
        raise UsageError(
            f"spinor: has dtype {psi.dtype}",
            expected=f"{dtype}, which the operator was made for",
            found=psi.dtype,
            hint=".to(dtype=...)",
        )


def require_finite(tensor: torch.Tensor, what: str) -> torch.Tensor:
    """`tensor` if every component is finite."""
    if not bool(torch.isfinite(torch.view_as_real(tensor) if tensor.is_complex() else tensor).all()):
        raise UsageError(f"{what}: holds NaN or infinity", expected="finite numbers")
    return tensor
