"""A measurement file explains itself: axes and conventions on every dataset, inputs as numbers; what has no form is an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lqcd_aot.measure.hdf5 import write_measurement
from lqcd_runtime.conventions import CONVENTIONS
from lqcd_runtime.observables.correlators import pion_correlator
from lqcd_runtime.observables.propagator import Propagator

h5py = pytest.importorskip("h5py")
LATTICE = (4, 3, 2, 5)


def propagator() -> Propagator:
    rng = np.random.default_rng(1)
    shape = (*LATTICE, 4, 3, 4, 3)
    return Propagator(rng.normal(size=shape) + 1j * rng.normal(size=shape), time=2)


def test_every_dataset_names_its_axes_and_conventions(tmp_path: Path) -> None:
    prop = propagator()
    path = tmp_path / "m.h5"
    inputs = {"input_mass": 0.1, "input_phases": (-1.0 + 0j, 1 + 0j, 1j, 1 + 0j), "note": None}
    solver = {"iterations": range(12), "reason": ["converged"] * 12}
    write_measurement(path, {"propagator": prop.data, "pion": pion_correlator(prop)}, provenance=inputs, solver=solver)
    with h5py.File(path) as f:
        for dataset in (f["propagator"], f["pion"]):
            assert {name: dataset.attrs[name] for name in CONVENTIONS} == CONVENTIONS
            assert [dimension.label for dimension in dataset.dims] == list(dataset.attrs["axes"])
        extents = dict(zip(f["propagator"].attrs["axes"], f["propagator"].shape, strict=True))
        assert tuple(extents[axis.lower()] for axis in f["propagator"].attrs["axis_order"]) == LATTICE
        assert [extents[f"{what}_{end}"] for what in ("spin", "colour") for end in ("sink", "source")] == [4, 4, 3, 3]
        # The basis from the file's own numbers: a Clifford algebra whose g_X g_Y g_Z g_T is diag(1, 1, -1, -1).
        t, z, y, x = g = f["propagator"].attrs["gamma_matrices"]
        assert all(np.array_equal(g[m] @ g[n] + g[n] @ g[m], 2 * (m == n) * np.eye(4)) for m in range(4) for n in range(4))
        assert np.array_equal(x @ y @ z @ t, np.diag([1, 1, -1, -1]))
        # What the pion's definition says, from the propagator as it is in the file.
        summed = (np.abs(f["propagator"][:]) ** 2).sum(axis=tuple(range(1, 8)))
        assert np.allclose(np.roll(summed, -2), f["pion"][:], rtol=1e-13, atol=0)
        assert f.attrs["input_phases"].tolist() == [-1, 1, 1j, 1] and f.attrs["input_phases"].dtype == np.complex128
        assert f.attrs["input_mass"] == 0.1 and f.attrs["note"] == "none"
        assert all(list(made.attrs["axes"]) == ["column"] for made in f["solver"].values())


def test_what_is_no_attribute_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="dict"):
        write_measurement(tmp_path / "m.h5", {}, provenance={"x": {"a": 1}})
    assert not list(tmp_path.iterdir())
