"""Every numbered example runs as a user would run it, and prints numbers that hold."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest


def run(repo_root, name, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(repo_root / "examples" / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def test_no_numbered_example_is_left_out(repo_root):
    tested = {"01_plaquette.py", "02_wilson_dslash.py", "03_cg_inversion.py", "04_pion_mass.py"}
    assert {p.name for p in (repo_root / "examples").glob("0*.py")} == tested


def test_plaquette(repo_root):
    values = dict(re.findall(r"^(\w+) +plaquette ([+-][\d.]+)", run(repo_root, "01_plaquette.py"), re.M))
    assert float(values["cold"]) == 1.0
    # Haar links: 3072 plaquettes of variance 1/18 each.
    assert abs(float(values["random"])) < 4 / (18 * 3072) ** 0.5
    # 8x4^3 at beta = 6: 0.594 and some 0.003 of fluctuation and finite size.
    assert abs(float(values["heatbath"]) - 0.594) < 0.02


def test_wilson_dslash(repo_root):
    out = run(repo_root, "02_wilson_dslash.py")
    differences = [float(v) for v in re.findall(r"(?:difference|psi\|) =? ?(\d\.\de[+-]\d+)", out)]
    assert len(differences) == 2
    assert max(differences) < 1e-5
    assert float(re.search(r"D\^dag D psi> = ([\d.]+)", out)[1]) > 0


def test_cg_inversion(repo_root):
    out = run(repo_root, "03_cg_inversion.py")
    residuals = [float(v) for v in re.findall(r"= (\d\.\d\de[+-]\d+)$", out, re.M)]
    assert len(residuals) == 4
    assert max(residuals[0], residuals[2], residuals[3]) <= 1e-8
    assert residuals[1] < 1e-7


def correlators(out):
    rows = re.findall(r"^ *(\d+)   ([\d.e+-]+) +([+-][\d.e+-]+) *([\d.]*)$", out, re.M)
    return [float(row[1]) for row in rows], [float(row[3]) for row in rows if row[3]]


def test_pion_mass_of_the_default_configuration(repo_root):
    pion, masses = correlators(run(repo_root, "04_pion_mass.py"))
    assert len(pion) == 8
    assert all(value > 0 for value in pion)
    assert all(pion[t] > pion[t + 1] for t in range(4))
    assert len(masses) == 4
    # Excited states only add: m_eff falls towards the pion's mass.
    assert masses[0] > masses[1] > masses[2] > 0.3


@pytest.mark.data
def test_pion_mass_of_a_file(repo_root, data_dir):
    """On the unity configuration the correlator is the free one, here the square of a momentum sum."""
    out = run(repo_root, "04_pion_mass.py", data_dir / "lyncs_io" / "unity.lime", "--mass", 0.5, "--tol", 1e-10)
    assert "plaquette 1.00000000" in out
    pion, _ = correlators(out)
    from tests.physics.test_correlators import free_propagator

    s = free_propagator((4, 4, 4, 4), 0.5, (-1, 1, 1, 1))
    expected = s.abs().square().sum((1, 2, 3, 4, 5, 6, 7)).tolist()
    assert pion == pytest.approx(expected, rel=1e-8)
