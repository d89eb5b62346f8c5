"""APE, stout and HYP smearing: in the group, gauge covariant, and against one link computed by walking."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.core.su_n import deviation
from lqcd_aot.observables import ape_smear, hyp_smear, plaquette, stout_smear, wilson_flow_step
from lqcd_runtime.errors import UsageError
from tests.physics.gauge_fields import random_links, transformed, walk
from tests.physics.torch_fields import synthetic as synthetic_links

SMEARINGS = {
    "ape": lambda u: ape_smear(u, 0.5, 2),
    "ape spatial": lambda u: ape_smear(u, 0.6, directions=(1, 2, 3)),
    "stout": lambda u: stout_smear(u, 0.1, 2),
    "stout spatial": lambda u: stout_smear(u, 0.1, directions=(1, 2, 3)),
    "hyp": lambda u: hyp_smear(u),
}


@pytest.mark.parametrize("name", SMEARINGS)
@pytest.mark.parametrize("nc", [2, 3])
def test_covariant_and_in_the_group(name, nc):
    links = random_links((3, 2, 4, 2), nc)
    other, g = transformed(links)
    smeared, smeared_other = SMEARINGS[name](links), SMEARINGS[name](other)
    expected = torch.stack([g @ smeared[..., mu, :, :] @ g.roll(-1, mu).mH for mu in range(4)], 4)
    # Projection of a random sum of matrices amplifies rounding by the inverse of its smallest singular value.
    assert float((smeared_other - expected).abs().max()) < 1e-10
    assert max(deviation(smeared)) < 1e-13
    assert float((smeared - links).abs().max()) > 0.1


@pytest.mark.parametrize("name", SMEARINGS)
def test_smooths_and_keeps_a_cold_field(name):
    links = synthetic_links((4, 4, 4, 4), 0.3)
    assert plaquette(SMEARINGS[name](links)) > plaquette(links)
    cold = GaugeField.cold(LatticeGeometry(T=2, Z=3, Y=2, X=2), dtype=torch.complex128)
    smeared = SMEARINGS[name](cold)
    assert isinstance(smeared, GaugeField)
    assert float((smeared.tensor - cold.tensor).abs().max()) < 1e-14


def staples_by_walking(links, x, mu, directions=(0, 1, 2, 3)):
    a = mu + 1
    paths = [(s * (nu + 1), a, -s * (nu + 1)) for nu in directions if nu != mu for s in (1, -1)]
    return sum(walk(links, x, path) for path in paths)


def polar(matrix):
    """The projection by eigenvectors of A^dag A, then the principal cube root of the determinant."""
    w, v = np.linalg.eigh(matrix.conj().T @ matrix)
    unitary = matrix @ (v / np.sqrt(w)) @ v.conj().T
    return unitary * np.exp(-1j * np.angle(np.linalg.det(unitary)) / len(matrix))


@pytest.mark.parametrize("directions", [(0, 1, 2, 3), (1, 2, 3)])
def test_one_link_by_walking(directions):
    links = random_links((3, 2, 4, 2))
    ape, stout = ape_smear(links, 0.4, directions=directions), stout_smear(links, 0.12, directions=directions)
    for x, mu in (((2, 1, 3, 0), 1), ((0, 0, 0, 1), 3)):
        u = links[x][mu].numpy()
        staples = staples_by_walking(links, x, mu, directions)
        fat = 0.6 * u + 0.4 / (2 * (len(directions) - 1)) * staples
        assert np.abs(ape[x][mu].numpy() - polar(fat)).max() < 1e-12
        omega = 0.12 * staples @ u.conj().T
        q = 0.5j * (omega.conj().T - omega)
        q = q - np.trace(q) / 3 * np.eye(3)
        w, v = np.linalg.eigh(q)
        expected = (v * np.exp(1j * w)) @ v.conj().T @ u
        assert np.abs(stout[x][mu].numpy() - expected).max() < 1e-12
    if 0 not in directions:
        assert torch.equal(ape[..., 0, :, :], links[..., 0, :, :])
        assert float((stout[..., 0, :, :] - links[..., 0, :, :]).abs().max()) < 1e-15


def test_stout_is_the_first_order_step_of_the_flow():
    links = synthetic_links((4, 2, 4, 2), 0.3)
    differences = [float((stout_smear(links, e) - wilson_flow_step(links, e)).abs().max()) for e in (0.01, 0.005)]
    assert 3.5 < differences[0] / differences[1] < 4.5


def test_hyp_without_inner_levels_is_ape():
    links = random_links((2, 3, 2, 4))
    assert float((hyp_smear(links, 0.7, 0.0, 0.0) - ape_smear(links, 0.7)).abs().max()) < 1e-12


def test_hyp_second_level_by_walking():
    """With a1 = 0 no level acts; with a3 = 0 a link mixes V_{mu;nu} whose staples leave out nu."""
    links = random_links((2, 3, 2, 4))
    assert float((hyp_smear(links, 0.0, 0.6, 0.3) - links).abs().max()) < 1e-12

    def level_two(x, mu, nu):
        around = [d for d in range(4) if d not in (mu, nu)]
        paths = [(s * (d + 1), mu + 1, -s * (d + 1)) for d in around for s in (1, -1)]
        return polar(0.4 * links[x][mu].numpy() + 0.15 * sum(walk(links, x, p) for p in paths))

    def moved(x, mu, n):
        return tuple((x[d] + (n if d == mu else 0)) % links.shape[d] for d in range(4))

    x, mu = (1, 2, 0, 3), 2
    total = np.zeros((3, 3), complex)
    for nu in (0, 1, 3):
        back = moved(x, nu, -1)
        side, far = level_two(x, nu, mu), level_two(moved(x, mu, 1), nu, mu)
        total += side @ level_two(moved(x, nu, 1), mu, nu) @ far.conj().T
        side, far = level_two(back, nu, mu), level_two(moved(back, mu, 1), nu, mu)
        total += side.conj().T @ level_two(back, mu, nu) @ far
    expected = polar(0.25 * links[x][mu].numpy() + 0.75 / 6 * total)
    assert np.abs(hyp_smear(links, 0.75, 0.6, 0.0)[x][mu].numpy() - expected).max() < 1e-11


def test_hyp_sees_its_hypercubes_only():
    """U_mu(x) mixes links within distance one in the other directions and none beyond its own ends along mu."""
    links = random_links((6, 6, 6, 6))
    changed = links.clone()
    changed[3, 3, 3, 3, 0] = random_links((2, 2, 2, 2), seed=4)[0, 0, 0, 0, 0]
    moved = (hyp_smear(changed) - hyp_smear(links)).abs().amax((-2, -1)) > 1e-12
    t, z, y, x, _ = torch.nonzero(moved, as_tuple=True)
    for axis in (z, y, x):
        assert {2, 3, 4} == set(axis.tolist())
    assert set(t[moved.nonzero()[:, 4] == 0].tolist()) == {3}
    assert set(t.tolist()) <= {3, 4}


def test_hyp_level_three_changes_the_result_and_stays_close_to_ape():
    links = synthetic_links((4, 4, 4, 4), 0.2)
    assert plaquette(hyp_smear(links)) > plaquette(hyp_smear(links, 0.75, 0.6, 0.0)) > plaquette(links)


def test_bad_arguments_are_refused():
    with pytest.raises(UsageError, match="no plane"):
        ape_smear(random_links((2, 2, 2, 2)), 0.5, directions=(1,))
    with pytest.raises(UsageError, match="no plane"):
        ape_smear(random_links((2, 2, 2, 2)), 0.5, directions=(1, 1, 2))
    for smear in (lambda u: ape_smear(u, 0.5, -1), lambda u: stout_smear(u, 0.1, 1.5), lambda u: hyp_smear(u, steps=-1)):
        with pytest.raises(UsageError, match="not a count"):
            smear(random_links((2, 2, 2, 2)))
