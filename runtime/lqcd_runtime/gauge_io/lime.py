"""LIME containers with one gauge field in an ILDG or SciDAC binary record, big-endian.

Owns the walk over LIME records and what ildg-format, scidac-private-* and scidac-checksum records state. Records that
state nothing about the links are listed in the header and otherwise passed over.
Sources: USQCD LIME and QIO record layouts; the ILDG binary file format, revision 1.1.
"""

from __future__ import annotations

import struct

from lqcd_runtime.gauge_io.checks import finish, make_layout
from lqcd_runtime.gauge_io.checksums import scidac_sums
from lqcd_runtime.gauge_io.tags import hexadecimal, integer, required, tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lqcd_runtime.fields import Gauge
    from lqcd_runtime.gauge_io.checks import Layout
    from lqcd_runtime.gauge_io.inputs import GaugeInput

MAGIC = 0x456789AB
HEADER = ">IHHQ128s"
_HEADER_BYTES = struct.calcsize(HEADER)
_MOST_RECORDS = 1000
_LONGEST_TEXT = 1 << 20
_BINARY = ("ildg-binary-data", "scidac-binary-data")
_READ = ("ildg-format", "scidac-private-file-xml", "scidac-private-record-xml", "scidac-checksum", "xlf-info", "ildg-data-lfn",
         "scidac-record-xml")  # fmt: skip
_PRECISION = {"32": "float32", "64": "float64", "F": "float32", "D": "float64"}


def read_lime(file: GaugeInput, boundary: str | None = None) -> Gauge:
    """Read and check a LIME file with one gauge field. boundary: as `load_gauge`. Errors: GaugeFileError."""
    records = _walk(file)
    binary = [(name, offset, size) for name, offset, size in records if name in _BINARY]
    if len(binary) != 1:
        raise file.refuse(
            f"holds {len(binary)} binary records", expected="one record ildg-binary-data or scidac-binary-data",
            found=", ".join(name for name, _, _ in records[:20]),
        )  # fmt: skip
    texts = _texts(file, records)
    layout = _layout(file, texts)
    name, offset, size = binary[0]
    if size != layout.payload_bytes:
        raise file.refuse(
            f"has a record {name} of the wrong size", expected=f"{layout.payload_bytes} bytes by its format record",
            found=f"{size} bytes",
        )  # fmt: skip
    payload = file.read(offset, size)
    faults: list[str] = []
    warnings: list[str] = []
    if "scidac-checksum" in texts:
        faults = _checksum(file, texts["scidac-checksum"], payload, layout)
    else:
        warnings = ["no scidac-checksum record: the links are checked by unitarity only"]
    header = {"records": " ".join(name for name, _, _ in records)}
    header |= {name: texts[name].strip("\0 \n")[:1000] for name in ("ildg-data-lfn", "xlf-info") if name in texts}
    return finish(
        file, payload, layout, format="ildg" if name.startswith("ildg") else "scidac", faults=faults, warnings=warnings,
        header=header, stated=_stated(file, texts), boundary=boundary,
    )  # fmt: skip


def _walk(file: GaugeInput) -> list[tuple[str, int, int]]:
    """(record type, offset of its data, size of its data) of every record to the end of the file."""
    records: list[tuple[str, int, int]] = []
    offset = 0
    while offset < file.size:
        rest = file.size - offset
        start = file.read(offset, min(4, rest))
        # A start that a record could have is one that was cut off; anything else was appended, or a length before it is wrong.
        if not struct.pack(">I", MAGIC).startswith(start):
            raise file.refuse(
                f"has {rest} bytes after its last record, from offset {offset} on, that are no record",
                expected=f"{offset} bytes, or a LIME record (45 67 89 ab)", found=f"{file.size} bytes, {start.hex(' ')} there",
            )  # fmt: skip
        _, _, _, size, name = struct.unpack(HEADER, file.read(offset, _HEADER_BYTES))
        data = offset + _HEADER_BYTES
        end = data + size + (-size % 8)
        if end > file.size:
            raise file.refuse("is truncated", expected=f"at least {end} bytes", found=f"{file.size} bytes")
        if len(records) == _MOST_RECORDS:
            raise file.refuse(f"has more than {_MOST_RECORDS} LIME records")
        records.append((name.split(b"\0")[0].decode("latin-1"), data, size))
        offset = end
    return records


def _texts(file: GaugeInput, records: list[tuple[str, int, int]]) -> dict[str, str]:
    """The text of the records that state something."""
    texts: dict[str, str] = {}
    for name, offset, size in records:
        if name not in _READ:
            continue
        if size > _LONGEST_TEXT:
            raise file.refuse(f"record {name} is too long", expected=f"at most {_LONGEST_TEXT} bytes", found=f"{size} bytes")
        if name in texts:
            raise file.refuse(f"has the record {name} twice", hint="files with several gauge fields are not read")
        texts[name] = file.read(offset, size).decode("latin-1")
    return texts


def _layout(file: GaugeInput, texts: dict[str, str]) -> Layout:
    """Extents and precision from the ILDG record, the SciDAC records, or both where they agree."""
    found: dict[str, tuple[list[int], str]] = {}
    if (ildg := texts.get("ildg-format")) is not None:
        name = "ildg-format"
        field = tag(file, name, ildg, "field")
        if field not in (None, "su3gauge"):
            raise file.refuse("does not hold an SU(3) gauge field", expected="<field>su3gauge</field>", found=repr(field))
        extents = [integer(file, f"<{k}>", required(file, name, ildg, k)) for k in ("lx", "ly", "lz", "lt")]
        found[name] = (extents, required(file, name, ildg, "precision"))
    if "scidac-private-file-xml" in texts and "scidac-private-record-xml" in texts:
        found["scidac-private"] = _scidac(file, texts["scidac-private-file-xml"], texts["scidac-private-record-xml"])
    if not found:
        raise file.refuse(
            "states no extents", expected="an ildg-format or scidac-private-file-xml record", found=", ".join(texts) or "neither"
        )  # fmt: skip
    facts = [(extents, _PRECISION.get(precision)) for extents, precision in found.values()]
    if facts[0][1] is None or facts[-1] != facts[0]:
        raise file.refuse("states unusable or contradicting extents or precision", found=found)
    return make_layout(file, facts[0][0], str(facts[0][1]), ">")


def _scidac(file: GaugeInput, of_file: str, of_record: str) -> tuple[list[int], str]:
    """(extents X,Y,Z,T, precision F or D) of SciDAC records that describe four 3x3 colour matrices a site."""
    name = "scidac-private-record-xml"
    precision = required(file, name, of_record, "precision")
    size = {"F": "72", "D": "144"}.get(precision, "")
    for key, wanted in (("colors", "3"), ("datacount", "4"), ("typesize", size)):
        value = required(file, name, of_record, key)
        if value != wanted:
            raise file.refuse("does not hold an SU(3) gauge field", expected=f"<{key}>{wanted}</{key}>", found=repr(value))
    dims = required(file, "scidac-private-file-xml", of_file, "dims").split()
    if len(dims) != 4:
        raise file.refuse("is not four-dimensional", expected="four numbers in <dims>", found=dims[:8])
    return [integer(file, "<dims>", d) for d in dims], precision


def _checksum(file: GaugeInput, text: str, payload: bytes, layout: Layout) -> list[str]:
    name = "scidac-checksum"
    stated = tuple(hexadecimal(file, f"<{k}>", required(file, name, text, k)) for k in ("suma", "sumb"))
    found = scidac_sums(payload, layout.site_bytes)
    if stated == found:
        return []
    return [f"SciDAC checksum {stated[0]:08x} {stated[1]:08x} stated, {found[0]:08x} {found[1]:08x} computed"]


def _stated(file: GaugeInput, texts: dict[str, str]) -> dict[str, str]:
    """Plaquette and link trace of a usqcdInfo record (<plaq>, <linktr>), or the plaquette of an xlf-info record."""
    info = texts.get("scidac-record-xml", "")
    if "<usqcdInfo>" in info:
        words = {"plaquette": "plaq", "link_trace": "linktr"}
        found = {name: tag(file, "scidac-record-xml", info, word) for name, word in words.items()}
        return {name: text for name, text in found.items() if text is not None}
    for line in texts.get("xlf-info", "").split("\n"):
        key, _, value = line.partition("=")
        if key.strip() == "plaquette":
            return {"plaquette": value.split(",")[0].strip()}
    return {}
