"""The group SU(N): Haar samples, projection onto the group, distance from it.

Everything is computed in complex128 and rounded once at the end, so complex64 results are as good as complex64 can be.
"""

from __future__ import annotations

import math
import secrets

import torch

from lqcd_aot.core.checks import require_finite
from lqcd_runtime import noise as counter_noise
from lqcd_runtime.errors import UsageError


def random_su_n(
    shape: tuple[int, ...],
    nc: int,
    *,
    seed: int | None = None,
    dtype: torch.dtype = torch.complex128,
    device: torch.device | str | None = None,
) -> torch.Tensor:
    """SU(nc) matrices drawn from the Haar measure: tensor [*shape, nc, nc].

    A = QR of a complex Gaussian matrix; Q diag(R_ii / |R_ii|) is Haar on U(N) (Mezzadri, Notices AMS 54 (2007) 592); one N-th
    root of its determinant is taken out, which leaves Haar on SU(N). Same seed, same matrices, whatever the dtype or device;
    seed None draws a fresh one.
    """
    count = 2 * nc * nc * math.prod(shape)
    normal = counter_noise.gaussian(fresh_seed() if seed is None else int(seed), 0, count)
    gaussian = torch.from_numpy(normal.reshape(*shape, nc, nc, 2))
    q, r = torch.linalg.qr(torch.view_as_complex(gaussian))
    diagonal = torch.diagonal(r, dim1=-2, dim2=-1)
    unitary = q * (diagonal / diagonal.abs()).unsqueeze(-2)
    return without_determinant(unitary).to(dtype=dtype, device=device).contiguous()


def fresh_seed() -> int:
    """A seed nobody has chosen, from the operating system."""
    return secrets.randbits(63)


def without_determinant(unitary: torch.Tensor) -> torch.Tensor:
    """U -> U exp(-i arg(det U) / N) for unitary U [..., N, N]: unitary with det = 1."""
    angle = torch.linalg.det(unitary).angle() / unitary.shape[-1]
    return unitary * torch.polar(torch.ones_like(angle), -angle)[..., None, None]


def project_su_n(matrices: torch.Tensor) -> torch.Tensor:
    """The SU(N) matrix next to each of [..., N, N]: polar factor A (A^dag A)^(-1/2), then det = 1. Same dtype as the input.

    Errors: UsageError where a matrix is not finite, or singular (then no nearest one is defined).
    """
    require_finite(matrices, "links")
    u, s, vh = torch.linalg.svd(matrices.to(torch.complex128))
    epsilon = torch.finfo(matrices.dtype).eps
    if bool((s[..., -1] <= 10 * epsilon * s[..., 0]).any()):
        raise UsageError(
            "links: a matrix is singular, no nearest SU(N) matrix exists",
            expected=f"smallest / largest singular value > {10 * epsilon:.1e}",
            found=f"{float((s[..., -1] / s[..., 0].clamp_min(1e-300)).min()):.1e}",
        )
    # One Newton step after the SVD takes |U U^dag - 1| from 1e-15 N to the rounding of the last product.
    polar = u @ vh
    polar = 1.5 * polar - 0.5 * polar @ polar.mH @ polar
    return without_determinant(polar).to(matrices.dtype).contiguous()


def deviation(matrices: torch.Tensor) -> tuple[float, float]:
    """(max |U U^dag - 1|, max |det U - 1|) over [..., N, N], componentwise, evaluated in complex128."""
    u = matrices.to(torch.complex128)
    one = torch.eye(u.shape[-1], dtype=u.dtype, device=u.device)
    return float((u @ u.mH - one).abs().max()), float((torch.linalg.det(u) - 1).abs().max())
