"""From raw payload to a Gauge: shape, byte order, third row, and every check that does not depend on the format.

Owns `Layout` (what a header says of the payload) and `finish`, which collects all faults and raises once. Knows no file
format.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.fields import UNITARITY_EXPECTED, Gauge, check_links, link_trace, survey_links
from lqcd_runtime.gauge_io.boundary import settle
from lqcd_runtime.geometry import format_extents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from lqcd_runtime.gauge_io.inputs import GaugeInput

# What a writer's own rounding adds to a stated plaquette or link trace: sums over float32 links in float32, or over
# float64 links.
_ROUNDING = {"float32": 2e-6, "float64": 1e-10}


class Layout:
    """The payload: extents (T,Z,Y,X), precision "float32" or "float64", byte order ">" or "<", rows stored per link (2
    or 3).

    Sites X fastest to T slowest, directions in the order X, Y, Z, T, row-major colour: what all three formats share.
    """

    def __init__(self, extents: tuple[int, int, int, int], precision: str, order: str, rows: int = 3) -> None:
        self.extents, self.precision, self.order, self.rows = extents, precision, order, rows

    @property
    def site_bytes(self) -> int:
        return 4 * self.rows * 3 * (8 if self.precision == "float32" else 16)

    @property
    def payload_bytes(self) -> int:
        """As a Python integer: an absurd header gives an absurd number, refused by the file's size before any allocation."""
        t, z, y, x = self.extents
        return t * z * y * x * self.site_bytes


def make_layout(file: GaugeInput, xyzt: list[int], precision: str, order: str, rows: int = 3) -> Layout:
    """A Layout from extents in file order X,Y,Z,T. Errors: GaugeFileError for an extent below 2."""
    x, y, z, t = xyzt
    if min(xyzt) < 2:
        raise file.refuse("states extents that are no lattice", expected="every extent >= 2", found=f"X,Y,Z,T = {xyzt}")
    return Layout((t, z, y, x), precision, order, rows)


def links_of(payload: bytes, layout: Layout) -> NDArray[np.complex128]:
    """complex128 [T,Z,Y,X,4,3,3], directions T,Z,Y,X; float32 promoted exactly; a missing third row is conj(row0 x row1)."""
    kind = layout.order + ("c8" if layout.precision == "float32" else "c16")
    raw = np.frombuffer(payload, kind).reshape((*layout.extents, 4, layout.rows, 3))
    links = np.empty((*layout.extents, 4, 3, 3), np.complex128)
    with np.errstate(all="ignore"):
        links[..., : layout.rows, :] = raw[..., ::-1, :, :]
        if layout.rows == 2:
            a, b = links[..., 0, :], links[..., 1, :]
            for k, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
                links[..., 2, k] = (a[..., i] * b[..., j] - a[..., j] * b[..., i]).conj()
    return links


def finish(
    file: GaugeInput,
    payload: bytes,
    layout: Layout,
    *,
    format: str,
    faults: list[str],
    warnings: list[str],
    header: dict[str, str],
    stated: dict[str, str],
    boundary: str | None,
    boundaries: Mapping[int, str] = {},
) -> Gauge:
    """Check the links and what the header states of them (`stated`: "plaquette", "link_trace" as printed; `boundaries`:
    direction -> word), then make the Gauge.

    faults: what the format's reader found wrong already (a checksum); boundary: as `load_gauge`. Errors: GaugeFileError with
    all faults in `details`.
    """
    links = links_of(payload, layout)
    with np.errstate(all="ignore"):
        # Of the links as stored: a sign that is taken out below was in them when the header was written.
        trace = link_trace(links) if "link_trace" in stated else 0.0
    borders = settle(links, boundaries, boundary, sign_is_visible=layout.rows == 3 or "plaquette" in stated)
    physical, worst = survey_links(links)
    warnings = [*warnings, *borders.warnings, *([] if physical else _drift(worst, layout.precision))]
    faults = [*faults, *borders.faults, *physical]
    gauge = Gauge(
        links, precision=layout.precision, source=file.path, format=format, warnings=warnings, header=header
    )  # fmt: skip
    if not physical:
        for name, text in stated.items():
            measured = gauge.plaquette if name == "plaquette" else trace
            fault, warning = _compare(name, text, measured, layout.precision)
            faults += fault
            gauge.warnings += warning
    elif _sane_when_swapped(payload, layout):
        faults.append("with the bytes of every number reversed the links are unitary: the byte order is not what the header says")
    if faults:
        raise file.refuse(
            f"must not be used ({format}, {format_extents(layout.extents)}, {layout.precision}): " + _summary(faults),
            details=faults,
            hint=borders.hint or "fetch the file again and compare its size and digest with the origin's",
        )
    return gauge


def _summary(faults: list[str]) -> str:
    return "1 check failed" if len(faults) == 1 else f"{len(faults)} checks failed"


def _sane_when_swapped(payload: bytes, layout: Layout) -> bool:
    other = Layout(layout.extents, layout.precision, "<" if layout.order == ">" else ">", layout.rows)
    return not check_links(links_of(payload, other))


def _drift(worst: float, precision: str) -> list[str]:
    """A warning where links are less unitary (largest |U U^dag - 1|) than their precision lets expect."""
    if worst <= UNITARITY_EXPECTED[precision]:
        return []
    return [f"links are unitary to {worst:.2g} only, as if converted from float32; they are used as stored"]


def _compare(name: str, text: str, measured: float, precision: str) -> tuple[list[str], list[str]]:
    """(faults, warnings) of a printed number against the measured one: they may differ by half the last printed digit
    and by rounding.

    Some programs print the plaquette normalised to 3; that is recognised and said.
    """
    value, half_digit = printed(text)
    if value is None:
        return [f"the stated {name} is not a number: {text[:40]!r}"], []
    if abs(value - measured) <= half_digit + _ROUNDING[precision]:
        return [], []
    if abs(value - 3 * measured) <= half_digit + 3 * _ROUNDING[precision]:
        return [], [f"the stated {name} {text} is normalised to 3; here it is {measured:.12g}, normalised to 1"]
    return [f"stated {name} {text}, measured {measured:.12g} (normalised to 1)"], []


def printed(text: str) -> tuple[float | None, float]:
    """(value, half a unit of its last printed digit) of a decimal number; (None, 0) where the text is none."""
    word = text.strip()
    mantissa, _, exponent = word.lower().partition("e")
    body = mantissa.lstrip("+-")
    whole, _, fraction = body.partition(".")
    digits = whole + fraction
    if len(word) > 64 or not (digits.isascii() and digits.isdigit()) or len(mantissa) - len(body) > 1:
        return None, 0.0
    power = exponent.lstrip("+-") or "0"
    if not (power.isascii() and power.isdigit() and len(power) <= 3) or (exponent == "" and "e" in word.lower()):
        return None, 0.0
    shift = -int(power) if exponent.startswith("-") else int(power)
    try:
        return float(word), 0.5 * 10.0 ** (shift - len(fraction))
    except (ValueError, OverflowError):
        return None, 0.0


def header_text(values: dict[str, Any]) -> dict[str, str]:
    """Header facts as text."""
    return {str(k): str(v) for k, v in values.items()}
