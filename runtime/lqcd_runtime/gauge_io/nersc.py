"""NERSC archive files: a text header between BEGIN_HEADER and END_HEADER, then links of two rows or 3x3.

FLOATING_POINT is spelled in dialects: IEEE32BIG, IEEE64BIG, IEEE32, IEEE64, IEEE64LITTLE, IEEE64SMALL. Without a byte
order in it, programs disagree on what is meant: both orders are tried and the one whose checksum matches is taken
(whose links are unitary, where no checksum is stated).
Source: https://qcd.nersc.gov (archive format 1.0); dialects as written by Grid, GPT, PyQUDA, QDP++, MILC and
latqcdtools.
"""

from __future__ import annotations

from lqcd_runtime.fields import check_links
from lqcd_runtime.gauge_io.checks import finish, links_of, make_layout
from lqcd_runtime.gauge_io.checksums import nersc_sum
from lqcd_runtime.gauge_io.tags import hexadecimal, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lqcd_runtime.fields import Gauge
    from lqcd_runtime.gauge_io.checks import Layout
    from lqcd_runtime.gauge_io.inputs import GaugeInput

_LONGEST_HEADER = 1 << 16
_ROWS = {"4D_SU3_GAUGE": 2, "4D_SU3_GAUGE_3X3": 3}
_PRECISION = {"IEEE32": "float32", "IEEE64": "float64"}
_ORDERS = {"": "><", "BIG": ">", "LITTLE": "<", "SMALL": "<"}


def read_nersc(file: GaugeInput, boundary: str | None = None) -> Gauge:
    """Read and check a NERSC archive file. boundary: as `load_gauge`. Errors: GaugeFileError."""
    header, start = _header(file)
    rows = _rows(file, header)
    precision, orders = _floating_point(file, header)
    extents = [integer(file, f"DIMENSION_{i}", _needed(file, header, f"DIMENSION_{i}")) for i in range(1, 5)]
    candidates = [make_layout(file, extents, precision, order, rows) for order in orders]
    file.require_end(start + candidates[0].payload_bytes, f"for extents X,Y,Z,T = {extents}")
    payload = file.read(start, candidates[0].payload_bytes)
    layout, faults, warnings = _choose(file, header, payload, candidates)
    stated = {name: header[key] for name, key in (("plaquette", "PLAQUETTE"), ("link_trace", "LINK_TRACE")) if key in header}
    # The file numbers X, Y, Z, T from 1 to 4.
    boundaries = {4 - i: header[key] for i in range(1, 5) if (key := f"BOUNDARY_{i}") in header}
    return finish(
        file, payload, layout, format="nersc", faults=faults, warnings=warnings, header=header, stated=stated, boundary=boundary,
        boundaries=boundaries,
    )  # fmt: skip


def _header(file: GaugeInput) -> tuple[dict[str, str], int]:
    """(KEY -> value, offset of the payload)."""
    text = file.read(0, min(file.size, _LONGEST_HEADER))
    end = text.find(b"\nEND_HEADER")
    if end < 0:
        raise file.refuse(
            "has no END_HEADER", expected=f"it in the first {_LONGEST_HEADER} bytes", hint="the file may be truncated"
        )  # fmt: skip
    newline = text.find(b"\n", end + 1)
    if newline < 0 or text[end + 1 : newline].strip() != b"END_HEADER":
        raise file.refuse("has an END_HEADER line that does not end")
    header: dict[str, str] = {}
    for line in text[:end].decode("latin-1").split("\n")[1:]:
        key, equals, value = line.partition("=")
        key, value = key.strip(), value.strip()
        if not equals:
            continue
        if header.get(key, value) != value:
            raise file.refuse(f"states {key} twice and differently", found=f"{header[key]!r} and {value!r}")
        header[key] = value
    return header, newline + 1


def _needed(file: GaugeInput, header: dict[str, str], key: str) -> str:
    if key not in header:
        raise file.refuse(f"has no {key} in its header")
    return header[key]


def _rows(file: GaugeInput, header: dict[str, str]) -> int:
    datatype = _needed(file, header, "DATATYPE").upper()
    if datatype not in _ROWS:
        raise file.refuse(
            "does not hold SU(3) links in four dimensions", expected="DATATYPE 4D_SU3_GAUGE or 4D_SU3_GAUGE_3x3",
            found=repr(datatype[:60]),
        )  # fmt: skip
    return _ROWS[datatype]


def _floating_point(file: GaugeInput, header: dict[str, str]) -> tuple[str, str]:
    """(precision, byte orders that the dialect allows, the likelier one first)."""
    # Old archive files carry no FLOATING_POINT; MILC reads them as IEEE32BIG. The checksum decides whether that is
    # right.
    word = header.get("FLOATING_POINT", "IEEE32BIG").upper()
    precision, orders = _PRECISION.get(word[:6]), _ORDERS.get(word[6:])
    if precision is None or orders is None:
        raise file.refuse(
            "has an unknown FLOATING_POINT", expected="IEEE32 or IEEE64, alone or with BIG, LITTLE or SMALL",
            found=repr(word[:40]),
        )  # fmt: skip
    return precision, orders


def _choose(
    file: GaugeInput, header: dict[str, str], payload: bytes, candidates: list[Layout]
) -> tuple[Layout, list[str], list[str]]:
    """(layout, faults, warnings): the byte order whose checksum matches; by unitarity where there is none."""
    if "CHECKSUM" not in header:
        sane = [c for c in candidates if not check_links(links_of(payload, c))]
        return (sane or candidates)[0], [], ["no CHECKSUM in the header: the links are checked by plaquette and unitarity only"]
    stated = hexadecimal(file, "CHECKSUM", header["CHECKSUM"])
    sums = {order: nersc_sum(payload, order) for order in "><"}
    for candidate in candidates:
        if sums[candidate.order] == stated:
            return candidate, [], []
    fault = f"checksum {stated:08x} stated, {sums[candidates[0].order]:08x} computed"
    if stated in sums.values():
        fault = f"checksum {stated:08x} matches in the other byte order than FLOATING_POINT says"
    return candidates[0], [fault], []
