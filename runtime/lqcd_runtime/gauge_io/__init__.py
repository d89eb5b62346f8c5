"""Gauge configuration files: read by content, never by name; every stated fact is checked before a link is handed out.

    inputs.py     the open file: existence, size, bounded reads, the wording of refusals
    nersc.py      NERSC archive (two rows and 3x3, every FLOATING_POINT dialect)
    lime.py       LIME containers with ILDG or SciDAC records
    milc.py       MILC version 5, both byte orders
    tags.py       the few XML tags that LIME records state, without an XML parser
    checksums.py  NERSC sum, MILC and SciDAC rotated exclusive-ors
    boundary.py   fermion boundary signs in links, and the boundary a header states
    checks.py     payload -> links: finite, unitary, plaquette and link trace as stated
    write.py      NERSC and ILDG, atomically

A file that fails any check is refused with GaugeFileError and all its faults. What is merely absent (a checksum) is a
warning.
"""

from __future__ import annotations

from lqcd_runtime.gauge_io.inputs import GaugeInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    from lqcd_runtime.fields import Gauge

# What the first bytes of formats look like that are known and not read, for a helpful refusal.
_OTHERS = (
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a numpy array file; load it with numpy and pass the array"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip stream; unpack it first"),
    (b"BZh", "a bzip2 stream; unpack it first"),
)


def load_gauge(path: str | os.PathLike[str], *, boundary: str | None = None) -> Gauge:
    """Read an SU(3) gauge configuration file and check all it states: -> Gauge with links complex128 [T,Z,Y,X,4,3,3].

    Formats, by content: NERSC archive, LIME with ILDG or SciDAC records, MILC version 5. Checked: size, checksum where
    there is one, finiteness, unitarity and determinant, plaquette and link trace where stated, to the digits stated and
    the file's precision. Float32 links are promoted exactly, never reunitarised.
    boundary: None refuses links that hold a fermion boundary sign (determinant -1 on a last slice) and boundaries that are stated
    neither PERIODIC nor ANTIPERIODIC, the latter being a warning where the links are seen to be free of it; "remove_sign" takes
    such a sign out; "periodic" uses the links as stored on a periodic lattice whatever the file states.
    Errors: GaugeFileError with every fault found; UsageError for another word.
    """
    from lqcd_runtime.gauge_io.boundary import check_word

    check_word(boundary)
    with GaugeInput(path) as file:
        head = file.read(0, min(16, file.size))
        if head.startswith(b"BEGIN_HEADER"):
            from lqcd_runtime.gauge_io.nersc import read_nersc

            return read_nersc(file, boundary)
        if head.startswith(b"\x45\x67\x89\xab"):
            from lqcd_runtime.gauge_io.lime import read_lime

            return read_lime(file, boundary)
        if head[:4] in (b"\x87\x4e\x00\x00", b"\x00\x00\x4e\x87"):
            from lqcd_runtime.gauge_io.milc import read_milc

            return read_milc(file, boundary)
        known = next((what for magic, what in _OTHERS if head.startswith(magic)), f"first bytes {head.hex(' ')}")
        raise file.refuse(
            "is of no known format",
            expected='"BEGIN_HEADER" (NERSC), 45 67 89 ab (LIME: ILDG, SciDAC), or 20103 in either byte order (MILC v5)',
            found=known,
        )


def write_gauge(path: str | os.PathLike[str], gauge: Gauge | Any, format: str = "ildg", **options: Any) -> None:
    """Write a gauge field; see `lqcd_runtime.gauge_io.write.write_gauge`, which this opens the door to."""
    from lqcd_runtime.gauge_io.write import write_gauge as write

    write(path, gauge, format, **options)
