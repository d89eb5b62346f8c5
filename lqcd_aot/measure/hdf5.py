"""Propagators and correlators as HDF5 files with provenance.

Owns the file layout: datasets `propagator` [T,Z,Y,X,spin_snk,colour_snk,spin_src,colour_src] (complex128) and
`pion` [T] (float64), solver figures under `solver/`, provenance as attributes of the root. A file appears whole (temporary
name in the same folder, then rename) or not at all.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lqcd_runtime.errors import LqcdError

if TYPE_CHECKING:
    import h5py

FORMAT = "lqcd-aot/measurement/v1"


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

    datasets: name -> array; provenance: root attributes (configuration path and digest, operator, inputs, artifact digests,
    versions); solver: name -> array under `solver/`. Errors: LqcdError where the folder cannot be written.
    """
    import h5py

    with written_whole(path) as temporary, h5py.File(temporary, "w") as f:
        f.attrs["format"] = FORMAT
        for name, value in provenance.items():
            f.attrs[name] = _attribute(value)
        for name, data in datasets.items():
            f.create_dataset(name, data=data)
        _solver_group(f, solver or {})


def _solver_group(f: h5py.File, solver: Mapping[str, Any]) -> None:
    import h5py
    import numpy as np

    group = f.create_group("solver")
    for name, value in solver.items():
        array = np.asarray(value)
        if array.dtype.kind in "US":
            group.create_dataset(name, data=[str(v) for v in value], dtype=h5py.string_dtype())
        else:
            group.create_dataset(name, data=array)


def _attribute(value: object) -> object:
    if value is None:
        return "none"
    if isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
