"""MILC version 5 files: magic number 20103, extents, time stamp, two checksums, float32 links; either byte order.

Source: MILC's generic/io_lat4.c (format description only). Site order must be natural; files with a site list are
refused.
"""

from __future__ import annotations

import struct

from lqcd_runtime.gauge_io.checks import finish, header_text, make_layout
from lqcd_runtime.gauge_io.checksums import milc_sums

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lqcd_runtime.fields import Gauge
    from lqcd_runtime.gauge_io.inputs import GaugeInput

MAGIC = 20103
_HEADER = struct.calcsize("<5i64siII")


def read_milc(file: GaugeInput, boundary: str | None = None) -> Gauge:
    """Read and check a MILC version 5 file. boundary: as `load_gauge`. Errors: GaugeFileError."""
    raw = file.read(0, _HEADER)
    order = "<" if struct.unpack("<i", raw[:4])[0] == MAGIC else ">"
    _, x, y, z, t, stamp, site_order, sum29, sum31 = struct.unpack(order + "5i64siII", raw)
    layout = make_layout(file, [x, y, z, t], "float32", order)
    if site_order != 0:
        raise file.refuse("has its sites in an order that is not read", expected="order 0 (natural)", found=f"order {site_order}")
    file.require_end(_HEADER + layout.payload_bytes, f"for extents X,Y,Z,T = {[x, y, z, t]}")
    payload = file.read(_HEADER, layout.payload_bytes)
    found = milc_sums(payload, order)
    faults = []
    if found != (sum29, sum31):
        faults.append(f"checksums {sum29:08x} {sum31:08x} stated, {found[0]:08x} {found[1]:08x} computed")
        if milc_sums(payload, "<" if order == ">" else ">") == (sum29, sum31):
            faults.append("the checksums match in the other byte order: header and links disagree on it")
    header = header_text(
        {"time_stamp": stamp.split(b"\0")[0].decode("latin-1"), "sum29": f"{sum29:08x}", "sum31": f"{sum31:08x}"}
    )  # fmt: skip
    return finish(file, payload, layout, format="milc", faults=faults, warnings=[], header=header, stated={}, boundary=boundary)
