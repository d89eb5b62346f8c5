"""`make demo` and `make bench` as they stand in the Makefile, on small lattices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.commands import environment


def _make(arguments: list[str], repo_root: Path, tmp_path: Path) -> str:
    """Run make in this environment: its stamp counts as up to date, so nothing is installed."""
    where = [f"VENV={sys.prefix}", "-o", f"{sys.prefix}/.ready", f"STORE={tmp_path / 'store'}"]
    done = subprocess.run(
        ["make", *where, *arguments],
        cwd=repo_root, env=environment(), capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.data
def test_the_demo_measures_and_inverts_a_published_configuration(repo_root: Path, data_dir: Path, tmp_path: Path) -> None:
    config = data_dir / "milc" / "lat.sample.l4448"
    out = _make(["demo", f"CONFIG={config}", f"OUT={tmp_path / 'demo'}"], repo_root, tmp_path)
    assert "plaquette     0.569055724369" in out
    residuals = [float(line.rpartition(" ")[2]) for line in out.splitlines() if "true residual" in line]
    assert len(residuals) == 12
    assert max(residuals) <= 1e-10
    pion = json.loads((tmp_path / "demo" / "pion.json").read_text())
    assert pion["converged"]
    assert len(pion["pion"]) == 8
    assert (tmp_path / "demo" / "pion.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_makes_its_own_configuration(repo_root: Path, tmp_path: Path) -> None:
    out = _make(["demo", f"OUT={tmp_path / 'demo'}", "LATTICE=4x4x4x4"], repo_root, tmp_path)
    assert "heatbath sweeps" in out
    assert (tmp_path / "demo" / "pion.png").exists()


def test_the_benchmark_prints_ratios_with_torch_eager(repo_root: Path, tmp_path: Path) -> None:
    out = _make(
        ["bench", "LATTICE=4x4x4x4", "BATCH=1", "ARGS=--seconds 0.02", f"BENCH_OUT={tmp_path / 'bench'}"], repo_root, tmp_path
    )  # fmt: skip
    assert "torch eager" in out
    assert "without_numpy_and_solve" in out
    assert (tmp_path / "bench" / "bench.html").is_file()
