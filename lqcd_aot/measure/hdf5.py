"""Propagators and correlators as HDF5 files with provenance.

Owns the file layout: datasets `propagator` [T,Z,Y,X,spin_snk,colour_snk,spin_src,colour_src] (complex128) and
`pion` [T] (float64), solver figures under `solver/` [column], provenance as attributes of the root. Each dataset says itself what
its axes are (attribute `axes` and HDF5's dimension labels) and in which conventions it is (those of lqcd_runtime.conventions by
name, the gamma matrices as numbers). A file appears whole (temporary name in the same folder, then rename) or not at all.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_runtime.conventions import CONVENTIONS, gamma_matrices
from lqcd_runtime.errors import LqcdError

if TYPE_CHECKING:
    import h5py

FORMAT = "lqcd-aot/measurement/v1"
COLUMN = "column"


class Layout(NamedTuple):
    """What a reader must know of a dataset: the names of its axes, and what it is as a formula."""

    axes: tuple[str, ...]
    definition: str


LAYOUTS = {
    "propagator": Layout(
        ("t", "z", "y", "x", "spin_sink", "colour_sink", "spin_source", "colour_source"),
        "S with M S = source, M = diagonal + hop; input_phases of the file stand on the links that cross the end of T, Z, Y, X",
    ),
    "pion": Layout(("t",), "C(t) = sum over z, y, x and spins and colours of |S|^2, t counted from the source"),
}


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary path that becomes `path` when the block ends well and vanishes when it does not.

    Errors: LqcdError where the folder cannot be written.
    """
    check_writable(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(16)}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Find out before hours of solving. Errors: LqcdError where `path` cannot be written."""
    probe = path.with_name(f".{path.name}.{secrets.token_hex(16)}.tmp")
    try:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> LqcdError:
    """The one error for outputs; a library's long texts are cut to what the system said."""
    found = error.strerror or str(error).partition("\n")[0].partition(" (")[0]
    return LqcdError(f"output {path}: cannot be written", found=found, hint="-o FILE in a folder that exists and has room")


def write_measurement(
    path: Path, datasets: Mapping[str, Any], *, provenance: Mapping[str, object], solver: Mapping[str, Any] | None = None
) -> None:
    """Write arrays with their provenance.

    datasets: name of LAYOUTS -> array; provenance: root attributes (configuration path and digest, operator, inputs, digests,
    versions); solver: name -> array under `solver/`. Errors: LqcdError where the folder cannot be written.
    """
    import h5py

    with written_whole(path) as temporary, h5py.File(temporary, "w") as f:
        f.attrs["format"] = FORMAT
        for name, value in provenance.items():
            f.attrs[name] = _attribute(value)
        for name, data in datasets.items():
            _described(f.create_dataset(name, data=data), LAYOUTS[name])
        _solver_group(f, solver or {})


def _described(dataset: h5py.Dataset, layout: Layout) -> None:
    """Axes and conventions as attributes of the dataset."""
    _name_axes(dataset, layout.axes)
    dataset.attrs["definition"] = layout.definition
    for name, value in CONVENTIONS.items():
        dataset.attrs[name] = value
    dataset.attrs["gamma_matrices"] = gamma_matrices()  # [mu, row, column], mu in axis_order


def _name_axes(dataset: h5py.Dataset, axes: tuple[str, ...]) -> None:
    import h5py

    dataset.attrs.create("axes", axes, dtype=h5py.string_dtype())
    for dimension, axis in zip(dataset.dims, axes, strict=True):
        dimension.label = axis


def _solver_group(f: h5py.File, solver: Mapping[str, Any]) -> None:
    import h5py
    import numpy as np

    group = f.create_group("solver")
    group.attrs[COLUMN] = "3 * spin_source + colour_source"
    for name, value in solver.items():
        array = np.asarray(value)
        if array.dtype.kind in "US":
            made = group.create_dataset(name, data=[str(v) for v in value], dtype=h5py.string_dtype())
        else:
            made = group.create_dataset(name, data=array)
        _name_axes(made, (COLUMN,))


def _attribute(value: object) -> object:
    """Numbers and sequences of them stay numbers. Errors: TypeError for what HDF5 has no form for."""
    import numpy as np

    if value is None:
        return "none"
    if isinstance(value, (bool, int, float, complex, str)):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"attribute of type {type(value).__name__}")
    return array
