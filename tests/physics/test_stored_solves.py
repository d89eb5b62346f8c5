"""Mixed precision over every stored form, on every configuration that loads: 1e-10 is reached, or not claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lqcd_runtime as lqcd
from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.fields import random_spinor
from lqcd_runtime.signature import HALVES, Spec
from tests.compiled_bundle import compiled_bundle
from tests.numpy_wilson import dense_wilson

pytestmark = pytest.mark.data

LATTICES = ((4, 4, 4, 4), (8, 4, 4, 4), (8, 8, 8, 8))
STORED = (*HALVES, "float32_12")
FILES = (
    "milc/lat.sample.l4444", "milc/lat.sample.l4448", "milc/lat.sample.l8888", "pyquda/weak_field.lime", "lyncs_io/unity.lime",
    "qlua/random-gauge.qio", "qdpxx/t_nersc.cfg",
)  # fmt: skip
SPECS = [Spec("wilson", lattice) for lattice in LATTICES]
SPECS += [Spec("wilson_schur_cg", lattice, "float32", storage=s) for lattice in LATTICES for s in STORED]
SPECS += [Spec("wilson_schur_cg", (8, 4, 4, 4), storage="float64_12"), Spec("wilson", (8, 4, 4, 4), storage="float64_12")]
SPECS += [Spec("wilson", (8, 4, 4, 4), "float32")]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with lqcd.open(compiled_bundle(tmp_path_factory.mktemp("stored"), SPECS)) as opened:
        yield opened


@pytest.mark.parametrize("storage", STORED)
@pytest.mark.parametrize("name", FILES)
def test_reaches_the_true_residual_or_says_that_it_stagnated(bundle: Any, data_dir: Path, name: str, storage: str) -> None:
    """Judged by a second Wilson operator in numpy. 4000 iterations bound the time."""
    gauge = lqcd.load_gauge(data_dir / name)
    D = bundle.operator("wilson", gauge=gauge, mass=0.1, t_boundary=-1)
    b = random_spinor(gauge.lattice, 11, 0)
    x, info = lqcd.solve(D, b, tol=1e-10, precision="mixed", storage=storage, max_iterations=4000)
    true = np.linalg.norm(b - dense_wilson(x, gauge.links, 4.1)) / np.linalg.norm(b)
    assert storage in info.engine and info.columns[0].final_residual == pytest.approx(true, rel=0.02, abs=1e-15)
    assert info.converged == (true <= 1e-10) and info.reason in ("converged", "stagnated")
    # None of these is so ill-conditioned that float32 arithmetic would have to give up.
    assert info.converged or storage in HALVES


def test_double_precision_on_two_rows_of_float64_links_only(bundle: Any, data_dir: Path) -> None:
    exact, rounded = (lqcd.load_gauge(data_dir / name) for name in ("pyquda/weak_field.lime", "milc/lat.sample.l4448"))
    b = random_spinor((8, 4, 4, 4), 12, 0)
    D = bundle.operator("wilson", gauge=exact, mass=0.1, t_boundary=-1, storage="float64_12")
    plain = bundle.operator("wilson", gauge=exact, mass=0.1, t_boundary=-1)
    assert np.abs(D(b) - plain(b)).max() <= 64 * 2.0**-53 * np.abs(plain(b)).max()
    x, info = lqcd.solve(plain, b, tol=1e-10, storage="float64_12")
    assert info.converged and "float64_12" in info.engine
    assert np.linalg.norm(b - plain(x)) <= 1e-10 * np.linalg.norm(b)
    with pytest.raises(UsageError, match="keeps two rows of a link") as refused:
        bundle.operator("wilson", gauge=rounded, mass=0.1, t_boundary=-1, storage="float64_12")
    assert "float32_12" in str(refused.value) and "direction" in str(refused.value)


@pytest.mark.parametrize("xi0", [1e-80, 1e80])
def test_two_rows_need_factors_whose_powers_are_numbers(bundle: Any, data_dir: Path, xi0: float) -> None:
    exact = lqcd.load_gauge(data_dir / "pyquda/weak_field.lime")
    with pytest.raises(UsageError, match="out of the range of float64_12"):
        bundle.operator("wilson", gauge=exact, mass=0.1, anisotropy=(xi0, 1.0), storage="float64_12")


def test_an_operator_of_two_rows_is_solved_on_the_host_too(bundle: Any, data_dir: Path) -> None:
    """Mixed precision there takes the plain float32 operator, since none of two rows is the same operator rounded."""
    exact = lqcd.load_gauge(data_dir / "pyquda/weak_field.lime")
    D = bundle.operator("wilson", gauge=exact, mass=0.1, t_boundary=-1, storage="float64_12")
    _, info = lqcd.solve(D, random_spinor((8, 4, 4, 4), 12, 0), tol=1e-10, precision="mixed", method="bicgstab", compiled=False)
    assert info.converged and info.engine.startswith("host")


def test_memory_knows_the_storage(bundle: Any, data_dir: Path) -> None:
    """Links of 4 x 18 float32, 4 x 18 halves or 4 x 12 float32 a site. State and work: 6 half fields, x never in halves."""
    D = bundle.operator("wilson", gauge=lqcd.load_gauge(data_dir / "milc/lat.sample.l8888"), mass=0.1, t_boundary=-1)
    sites, half = 8**4, 8**4 // 2 * 24
    asked = {s: lqcd.memory(D, precision="mixed", storage=s) for s in STORED}
    least = {
        "float16": sites * 72 * 2 + half * 4 + 5 * half * 2,
        "bfloat16": sites * 72 * 2 + half * 4 + 5 * half * 2,
        "float32_12": sites * 48 * 4 + 6 * half * 4,
    }
    for storage, parts in asked.items():
        assert least[storage] <= parts["solver"] <= 1.12 * least[storage]
    assert asked["bfloat16"]["solver"] < asked["float16"]["solver"] < asked["float32_12"]["solver"]
    with pytest.raises(NoVariant):
        lqcd.memory(D, precision="mixed", storage="float64_12")
