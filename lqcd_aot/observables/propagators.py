"""Quark propagators as tensors: from solved columns and back, smearing at the sink, projection to momentum and time.

Owns: the layout S[T,Z,Y,X, spin sink, spin source, colour sink, colour source] (Chroma's HDF5 order), and the projection shared
by mesons and baryons. Refuses to know: how a column was solved. DeGrand-Rossi basis throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lqcd_aot.observables.quark_smearing import gaussian_smear
from lqcd_runtime.errors import UsageError


def propagator_from_columns(columns: Tensor) -> Tensor:
    """S [T,Z,Y,X,4,4,Nc,Nc] from solutions [4 Nc,T,Z,Y,X,4,Nc]; column Nc*spin + colour belongs to that source component.

    Errors: UsageError for another shape.
    """
    if columns.dim() != 7 or columns.shape[5] != 4 or columns.shape[0] != 4 * columns.shape[6]:
        raise UsageError("propagator: has other columns", expected="[4 Nc,T,Z,Y,X,4,Nc]", found=list(columns.shape))
    nc = columns.shape[6]
    by_source = columns.reshape(4, nc, *columns.shape[1:])
    return by_source.permute(2, 3, 4, 5, 6, 0, 7, 1)


def columns_of(propagator: Tensor) -> Tensor:
    """Inverse of `propagator_from_columns`."""
    lattice, nc = check_propagator(propagator), propagator.shape[-1]
    return propagator.permute(5, 7, 0, 1, 2, 3, 4, 6).reshape(4 * nc, *lattice, 4, nc)


def check_propagator(propagator: Tensor) -> tuple[int, int, int, int]:
    """The lattice (T,Z,Y,X) of a propagator. Errors: UsageError where its shape is not one."""
    shape = tuple(propagator.shape)
    if len(shape) != 8 or shape[4:6] != (4, 4) or shape[6] != shape[7]:
        raise UsageError("propagator: has a wrong shape", expected="[T,Z,Y,X,4,4,Nc,Nc]", found=list(shape))
    return shape[0], shape[1], shape[2], shape[3]


def smear_sink(propagator: Tensor, field: Any, width: float, iterations: int) -> Tensor:
    """The propagator with Gaussian smearing (`quark_smearing.gaussian_smear`) applied to its sink indices."""
    smeared = gaussian_smear(columns_of(propagator), field, width, iterations)
    return propagator_from_columns(smeared)


def project(
    density: Tensor,
    momentum: Sequence[int] = (0, 0, 0),
    source: Sequence[int] = (0, 0, 0, 0),
    axis: int = 0,
    wrap: float = 1.0,
) -> Tensor:
    """C(t) = sum over the sites x with x_axis = source_axis + t of exp(-i p.(x - source)) density(x): complex [N_axis].

    density: [T,Z,Y,X,...] (further axes are kept behind t); momentum: integers n, p = 2 pi n / L, on the three axes other than
    `axis` in the order T, Z, Y, X; source: (t,z,y,x); axis: the direction of propagation, 0 is time; wrap: factor of the part
    that crossed the lattice's end (-1 for a baryon of quarks antiperiodic along `axis`). Errors: UsageError for wrong lengths.
    """
    if axis not in (0, 1, 2, 3) or len(momentum) != 3 or len(source) != 4:
        raise UsageError(
            "project: cannot read momentum, source or axis",
            expected="3 integers, 4 coordinates, axis in 0..3",
            found=f"{tuple(momentum)}, {tuple(source)}, {axis}",
        )
    extents = density.shape[:4]
    others = [mu for mu in range(4) if mu != axis]
    weighted = density.to(torch.complex128)
    for mu, n in zip(others, momentum, strict=True):
        angle = -2.0 * math.pi * n / extents[mu] * (torch.arange(extents[mu], dtype=torch.float64) - source[mu])
        shape = [extents[mu] if i == mu else 1 for i in range(weighted.dim())]
        weighted = weighted * torch.polar(torch.ones_like(angle), angle).reshape(shape)
    summed = weighted.sum(dim=others)
    start = source[axis] % extents[axis]
    return torch.cat((summed[start:], wrap * summed[:start]))
