"""Numbers of Chroma and lalibe: clover propagators; CG counts of the full and the even-odd anisotropic Wilson operator."""

from __future__ import annotations

import re
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.core.shift import shifted
from lqcd_aot.dirac import CloverWilsonDirac, WilsonDirac, WilsonSchur
from lqcd_aot.solvers import ConjugateGradient, SolveInfo
from tests.physics.torch_fields import C64, C128, weak_field_reference

GEOM = LatticeGeometry(8, 4, 4, 4)


def gaussian_shell(source: torch.Tensor, U: torch.Tensor, width: float, steps: int) -> torch.Tensor:
    """chi -> (1 + width^2/(4 steps) Laplace)^steps chi with the covariant spatial Laplacian (Chroma's GAUGE_INV_GAUSSIAN)."""
    for _ in range(steps):
        hops = -6 * source
        for mu in (1, 2, 3):
            link = U[..., mu, :, :].unsqueeze(-3)
            hops = hops + (link @ shifted(source, mu, 1).unsqueeze(-1)).squeeze(-1)
            hops = hops + shifted((link.mH @ source.unsqueeze(-1)).squeeze(-1), mu, -1)
        source = source + width**2 / (4 * steps) * hops
    return source


def shell_source(U: torch.Tensor, t: int, spin: int, colour: int) -> torch.Tensor:
    point = torch.zeros(GEOM.spinor_shape, dtype=U.dtype)
    point[t, 0, 0, 0, spin, colour] = 1
    return gaussian_shell(point, U, 2.0, 5)


@pytest.mark.data
@pytest.mark.parametrize(("name", "mass"), [("PS_up_4", 0.1), ("PS_dn_4", 0.2)])
def test_lalibe_clover_propagator_solves_our_operator(data_dir: Path, name: str, mass: float) -> None:
    """M S = source for all 12 columns: relative residual <= 1e-11; the file's own solves stopped at 1e-12 (normal equations)."""
    U = torch.from_numpy(weak_field_reference(data_dir)["U"])
    with h5py.File(data_dir / "lalibe" / "test_propagator_t4.h5") as f:
        raw = f[f"sh_sig2p0_n5/{name}"][()]
    # [t,z,y,x][spin_snk][spin_src][c_snk][c_src] -> columns (spin_src, c_src) of spinors [T,Z,Y,X,spin_snk,c_snk].
    S = np.frombuffer(raw.tobytes(), np.complex128).reshape(8, 4, 4, 4, 4, 4, 3, 3)
    columns = torch.from_numpy(S.transpose(5, 7, 0, 1, 2, 3, 4, 6).reshape(12, *GEOM.spinor_shape).copy())
    sources = torch.stack([shell_source(U, 4, spin, colour) for spin in range(4) for colour in range(3)])
    D = CloverWilsonDirac(mass, 1.17, t_boundary=-1)
    assert float((D(columns, U) - sources).norm() / sources.norm()) < 1e-11
    # The same number is far off for a periodic time, the other sign of the clover term, or the other mass.
    for wrong in (
        CloverWilsonDirac(mass, 1.17),
        CloverWilsonDirac(mass, -1.17, t_boundary=-1),
        CloverWilsonDirac(0.3 - mass, 1.17, t_boundary=-1),
    ):
        assert float((wrong(columns, U) - sources).norm() / sources.norm()) > 1e-2


def chroma_counts(path: Path) -> list[int]:
    """The published iteration counts of the 12 columns, colour by colour and spin by spin, at RsdCG 1e-8."""
    text = path.read_text()
    assert "<RsdCG>1.0e-8</RsdCG>" in text
    counts = [int(n) for n in re.findall(r"<n_count>(\d+)</n_count>", text)]
    assert len(counts) == 12
    return counts


def twelve_columns(U: torch.Tensor) -> torch.Tensor:
    """The shell sources in Chroma's order of solves."""
    return torch.stack([shell_source(U, 0, spin, colour) for colour in range(3) for spin in range(4)])


@pytest.fixture(scope="module")
def single_links(data_dir: Path) -> torch.Tensor:
    """Chroma's run was in single precision."""
    return torch.from_numpy(weak_field_reference(data_dir)["U"]).to(C64)


OPTIONS = {"kappa": 0.135, "anisotropy": {"xi0": 2.464, "nu": 0.95}, "t_boundary": -1}


@pytest.mark.data
@pytest.mark.parametrize("dtype", [C64, C128])
def test_unpreconditioned_cg_counts(data_dir: Path, single_links: torch.Tensor, dtype: torch.dtype) -> None:
    """77 for colour 0 and 78 for colours 1 and 2: CG on M^dag M at |r| <= 1e-8 |M^dag b|, all columns in one solve."""
    U, D = single_links.to(dtype), WilsonDirac(**OPTIONS)
    rhs = D.dagger(twelve_columns(U), U)
    _, info = ConjugateGradient(tol=1e-8, maxiter=90).solve(lambda v: D.normal(v, U), rhs, columns=True)
    assert crossings(info) == chroma_counts(data_dir / "chroma" / "unprec_wilson.out.xml")


@pytest.mark.data
def test_the_source_has_chromas_norm(data_dir: Path) -> None:
    """<source_corr> of the published output: the norm of all 12 columns, in single precision."""
    U = torch.from_numpy(weak_field_reference(data_dir)["U"])
    total = sum(float(shell_source(U, 0, s, c).norm() ** 2) for s in range(4) for c in range(3))
    published = re.search(r"<source_corr>([0-9.]+) ", (data_dir / "chroma" / "prec_wilson.out.xml").read_text())
    assert published is not None
    assert total == pytest.approx(float(published[1]), rel=1e-6)


@pytest.mark.data
def test_even_odd_cg_counts(data_dir: Path, single_links: torch.Tensor) -> None:
    """26 for all columns: CG on S^dag S. Chroma's S lives on the odd sites, so the lattice is moved by one site in x."""
    U, S = GaugeField(single_links, GEOM).shift(3).tensor, WilsonSchur(**OPTIONS)
    b = torch.stack([shifted(column, 3, 1) for column in twelve_columns(single_links)])
    rhs = S.dagger(S.even_source(b, U), U)
    _, info = ConjugateGradient(tol=1e-8, maxiter=40).solve(lambda v: S.normal(v, U), rhs, columns=True)
    assert crossings(info) == chroma_counts(data_dir / "chroma" / "prec_wilson.out.xml")


def crossings(info: SolveInfo) -> list[int]:
    """The iterations at which the recursive residuals first meet 1e-8: what Chroma counts."""
    return [next(i for i, r in enumerate(c.residual_history) if r <= 1e-8) for c in info.columns]
