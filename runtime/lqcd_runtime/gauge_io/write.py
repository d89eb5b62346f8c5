"""Write gauge configuration files: ILDG in a LIME container with SciDAC checksum, or NERSC archive. Atomic: all of a
file or nothing.

The bytes depend on the links and the arguments only: no dates, hosts or users. Refuses links that a reader would
refuse.
"""

from __future__ import annotations

import os
import struct

import numpy as np

from lqcd_runtime.errors import GaugeFileError, UsageError
from lqcd_runtime.fields import Gauge, check_links
from lqcd_runtime.gauge_io.checksums import nersc_sum, scidac_sums
from lqcd_runtime.gauge_io.lime import HEADER, MAGIC
from lqcd_runtime.signature import CPU_DTYPES, suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMATS = ("ildg", "nersc", "nersc-2row")
_XML = '<?xml version="1.0" encoding="UTF-8"?>'


def write_gauge(
    path: str | os.PathLike[str],
    gauge: Gauge | Any,
    format: str = "ildg",
    *,
    precision: str | None = None,
    lfn: str = "lfn://unpublished",
) -> None:
    """Write a gauge field to `path`, replacing what is there only once the new file is complete and on disk.

    gauge: Gauge, or complex [T,Z,Y,X,4,3,3]; format: "ildg" (LIME), "nersc" (3x3) or "nersc-2row"; precision: "float32"
    or "float64", by default the gauge field's own; lfn: the logical file name an ILDG file carries.
    Errors: UsageError for an unknown format or precision, GaugeFileError where the links are not finite and in SU(3),
    or the disk refuses.
    """
    field = gauge if isinstance(gauge, Gauge) else Gauge(gauge)
    kind = precision or field.precision
    for what, word, known in (("format", format, FORMATS), ("precision", kind, CPU_DTYPES)):
        if word not in known:
            raise UsageError(f"{what} {word!r}: is not known{suggest(word, known)}", expected=", ".join(known))
    target = os.fspath(path)
    faults = check_links(field.links)
    if faults:
        raise GaugeFileError(f"configuration file {target!r}: is not written, its readers would refuse it", details=faults)
    # Rounded first, so that a stated plaquette is that of the links in the file.
    rounded = Gauge(field.links.astype(np.complex64 if kind == "float32" else np.complex128), precision=kind)
    content = _ildg(rounded, lfn) if format == "ildg" else _nersc(rounded, rows=2 if format == "nersc-2row" else 3)
    _publish(target, content)


def _payload(gauge: Gauge, rows: int = 3) -> bytes:
    """Links in file order: directions X,Y,Z,T, big-endian."""
    kind = ">c8" if gauge.precision == "float32" else ">c16"
    return gauge.links[..., ::-1, :rows, :].astype(kind).tobytes()


def _nersc(gauge: Gauge, rows: int) -> bytes:
    payload = _payload(gauge, rows)
    t, z, y, x = gauge.lattice
    header = {
        "DATATYPE": "4D_SU3_GAUGE" if rows == 2 else "4D_SU3_GAUGE_3x3",
        **{f"DIMENSION_{i}": n for i, n in enumerate((x, y, z, t), 1)},
        "CHECKSUM": f"{nersc_sum(payload, '>'):08x}",
        "LINK_TRACE": f"{gauge.link_trace:.15f}",
        "PLAQUETTE": f"{gauge.plaquette:.15f}",
        **{f"BOUNDARY_{i}": "PERIODIC" for i in range(1, 5)},
        "HDR_VERSION": "1.0",
        "STORAGE_FORMAT": "1.0",
        "ENSEMBLE_ID": "unpublished",
        "SEQUENCE_NUMBER": "0",
        "CREATOR": "lqcd-runtime",
        "FLOATING_POINT": "IEEE32BIG" if gauge.precision == "float32" else "IEEE64BIG",
    }
    text = "BEGIN_HEADER\n" + "".join(f"{k} = {v}\n" for k, v in header.items()) + "END_HEADER\n"
    return text.encode("ascii") + payload


def _ildg(gauge: Gauge, lfn: str) -> bytes:
    if not lfn.startswith("lfn://") or not lfn.isascii() or not lfn.isprintable():
        raise UsageError(f"logical file name {lfn!r}: is not one", expected="lfn:// and printable ASCII")
    payload = _payload(gauge)
    single = gauge.precision == "float32"
    t, z, y, x = gauge.lattice
    suma, sumb = scidac_sums(payload, 288 if single else 576)
    of_file = f"<version>1.1</version><spacetime>4</spacetime><dims>{x} {y} {z} {t} </dims><volfmt>0</volfmt>"
    of_record = (
        f"<version>1.1</version><recordtype>0</recordtype><datatype>QDP_{'F' if single else 'D'}3_ColorMatrix</datatype>"
        f"<precision>{'F' if single else 'D'}</precision><colors>3</colors><typesize>{72 if single else 144}</typesize>"
        "<datacount>4</datacount>"
    )
    ildg = (
        '<ildgFormat xmlns="http://www.lqcd.org/ildg" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:schemaLocation="http://www.lqcd.org/ildg/filefmt.xsd"><version>1.0</version><field>su3gauge</field>'
        f"<precision>{32 if single else 64}</precision><lx>{x}</lx><ly>{y}</ly><lz>{z}</lz><lt>{t}</lt></ildgFormat>"
    )
    facts = f"<plaq>{gauge.plaquette:.15f}</plaq><linktr>{gauge.link_trace:.15f}</linktr><info></info>"
    checksum = f"<version>1.0</version><suma>{suma:x}</suma><sumb>{sumb:x}</sumb>"
    first, last = 0x8000, 0x4000
    records = (
        (first, "scidac-private-file-xml", f"{_XML}<scidacFile>{of_file}</scidacFile>\0".encode()),
        (last, "scidac-file-xml", f"{_XML}<title>gauge configuration</title>\0".encode()),
        (first, "scidac-private-record-xml", f"{_XML}<scidacRecord>{of_record}</scidacRecord>\0".encode()),
        (0, "scidac-record-xml", f"{_XML}<usqcdInfo><version>1.0</version>{facts}</usqcdInfo>\0".encode()),
        (0, "ildg-format", f"{_XML}{ildg}\0".encode()),
        (0, "ildg-binary-data", payload),
        (0, "ildg-data-lfn", lfn.encode("ascii")),
        (last, "scidac-checksum", f"{_XML}<scidacChecksum>{checksum}</scidacChecksum>\0".encode()),
    )
    return b"".join(
        struct.pack(HEADER, MAGIC, 1, flags, len(data), name.encode("ascii")) + data + bytes(-len(data) % 8)
        for flags, name, data in records
    )


def _publish(target: str, content: bytes) -> None:
    """Private temporary name in the same folder, fsync, rename, fsync of the folder."""
    folder = os.path.dirname(target) or "."
    temporary = os.path.join(folder, f".{os.path.basename(target)}.{os.getpid()}.{os.urandom(8).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise GaugeFileError(
            f"configuration file {target!r}: cannot be written ({(error.strerror or str(error)).lower()})"
        ) from error
