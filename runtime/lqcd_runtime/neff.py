"""NEFF files: the 1,024-byte header read and checked; and NEFF-SIM, the container of the compiler's double.

    header     struct "<5Q128sI32s16s256sI64sQI468s": pkg_version, header_size, data_size, major, minor, build version, num_tpb,
               hash, uuid, name, requested_tpb_count, tpb_per_node, feature_bits, lnc_size, padding
    NEFF-SIM   b"NEFF-SIM", u64 version, manifest size, HLO size, SHA-256 of both; zeros to 1,024; canonical JSON; HLO bytes

Owns both byte layouts. A NEFF has no magic number: what is accepted is a header that is consistent with itself and the file.
The header does not name the target chip. The payload is never unpacked here. Layout from AWS's page on NEFF files
("work-with-neff-files"); little endian and the offsets were derived, and no NEFF of the real compiler has been read with this.
"""

from __future__ import annotations

import struct

from lqcd_runtime.errors import CorruptError, TooNewError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEADER = struct.Struct("<5Q128sI32s16s256sI64sQI468s")
HEADER_SIZE = 1024
KNOWN_MAJOR = 2
KNOWN_PACKAGE = 2
SIM_MAGIC = b"NEFF-SIM"
SIM_VERSION = 1
_SIM = struct.Struct("<8s3Q32s")
MEDIA_TYPE = "application/vnd.aws.neff"
SIM_MEDIA_TYPE = "application/vnd.lqcd-aot.neff-sim"


class NeffHeader:
    """What the header says. version: (major, minor); build: the compiler's version; hash, uuid: lower-case hex;
    feature_bits: int; lnc: 1 or 2 (0 from compilers older than the attribute); cores: subgraphs asked for."""

    __slots__ = ("build", "cores", "data_size", "feature_bits", "hash", "lnc", "name", "package", "uuid", "version")

    def __init__(self, data: bytes, where: str) -> None:
        (
            self.package, header_size, self.data_size, major, minor, build, _tpb, digest, uuid, name, self.cores, _per_node,
            self.feature_bits, self.lnc, _pad,
        ) = HEADER.unpack_from(data)  # fmt: skip
        if header_size != HEADER_SIZE:
            raise CorruptError(f"{where}: is no NEFF", expected=f"header size {HEADER_SIZE}", found=header_size)
        self.version = (major, minor)
        self.build = _text(build)
        self.name = _text(name)
        # Package version 1 holds a SHA-256, 2 an MD5 in the first 16 bytes.
        self.hash = (digest[:16] if self.package == 2 else digest).hex()
        self.uuid = uuid.hex()

    def as_dict(self) -> dict[str, Any]:
        """For a record: JSON without floats; 64-bit feature bits as hexadecimal text."""
        return {
            "version": f"{self.version[0]}.{self.version[1]}", "feature_bits": f"0x{self.feature_bits:x}", "lnc": self.lnc,
            "hash": self.hash, "uuid": self.uuid, "build": self.build, "data_size": self.data_size,
        }  # fmt: skip


def parse_neff(data: bytes, where: str = "NEFF") -> NeffHeader:
    """The header of a whole NEFF in memory.

    Errors: CorruptError for what is truncated, is a NEFF-SIM or is no NEFF; TooNewError for a later major or package version.
    """
    if data[:8] == SIM_MAGIC:
        raise CorruptError(f"{where}: is a NEFF-SIM of the compiler's double", expected="a NEFF", hint='engine="sim" runs it')
    if len(data) < HEADER_SIZE:
        raise CorruptError(f"{where}: is truncated", expected=f"at least {HEADER_SIZE} bytes", found=len(data))
    header = NeffHeader(data, where)
    if header.version[0] > KNOWN_MAJOR or header.package > KNOWN_PACKAGE:
        raise TooNewError(
            f"{where}: is of a later format", expected=f"major <= {KNOWN_MAJOR}, package version <= {KNOWN_PACKAGE}",
            found=f"{header.version[0]}.{header.version[1]}, package version {header.package}",
            hint="pip install --upgrade lqcd-runtime",
        )  # fmt: skip
    if header.package == 0:
        raise CorruptError(f"{where}: is no NEFF", expected="package version 1 or 2", found=0)
    size = len(data) - HEADER_SIZE
    if header.data_size != size:
        fact = "is truncated" if header.data_size > size else "has bytes after its end"
        raise CorruptError(f"{where}: {fact}", expected=f"{header.data_size} bytes after the header", found=size)
    if header.lnc > 2:
        raise CorruptError(f"{where}: has an impossible logical-core size", expected="1 or 2", found=header.lnc)
    return header


def write_neff(
    payload: bytes,
    *,
    version: tuple[int, int] = (2, 0),
    build: str = "",
    name: str = "",
    uuid: bytes = bytes(16),
    lnc: int = 1,
    feature_bits: int = 0,
    package: int = 2,
    cores: int = 1,
) -> bytes:
    """A NEFF with any payload: for doubles and tests; no real runtime accepts one that a compiler did not make."""
    import hashlib

    digest = hashlib.md5(payload, usedforsecurity=False).digest() if package == 2 else hashlib.sha256(payload).digest()
    header = HEADER.pack(
        package, HEADER_SIZE, len(payload), *version, build.encode(), cores, digest, uuid, name.encode(), cores,
        bytes([1]) + bytes(63), feature_bits, lnc, b"",
    )  # fmt: skip
    return header + payload


class SimNeff:
    """manifest: JSON object of the double (compiler, resolved options, ...); hlo: serialised HloModuleProto."""

    __slots__ = ("hlo", "manifest")

    def __init__(self, manifest: dict[str, Any], hlo: bytes) -> None:
        self.manifest, self.hlo = manifest, hlo


def is_sim(data: bytes) -> bool:
    """Whether bytes begin as a NEFF-SIM."""
    return data[:8] == SIM_MAGIC


def write_sim(hlo: bytes, manifest: dict[str, Any]) -> bytes:
    """A NEFF-SIM; equal arguments give equal bytes. manifest: canonical-JSON-able (no floats)."""
    import hashlib

    from lqcd_runtime.digest import canonical_json

    text = canonical_json(manifest)
    head = _SIM.pack(SIM_MAGIC, SIM_VERSION, len(text), len(hlo), hashlib.sha256(text + hlo).digest())
    return head.ljust(HEADER_SIZE, b"\0") + text + hlo


def parse_sim(data: bytes, where: str = "NEFF-SIM") -> SimNeff:
    """Errors: CorruptError for what is truncated, damaged or no NEFF-SIM; TooNewError for a later version."""
    import hashlib

    from lqcd_runtime.manifest import parse_object

    if not is_sim(data):
        raise CorruptError(f"{where}: is no NEFF-SIM", expected=SIM_MAGIC, found=data[:8])
    if len(data) < HEADER_SIZE:
        raise CorruptError(f"{where}: is truncated", expected=f"at least {HEADER_SIZE} bytes", found=len(data))
    _, version, text_size, hlo_size, digest = _SIM.unpack_from(data)
    if version > SIM_VERSION:
        raise TooNewError(f"{where}: is of a later format", expected=SIM_VERSION, found=version)
    if len(data) != HEADER_SIZE + text_size + hlo_size:
        raise CorruptError(f"{where}: has the wrong size", expected=HEADER_SIZE + text_size + hlo_size, found=len(data))
    if version != SIM_VERSION or any(data[_SIM.size : HEADER_SIZE]) or hashlib.sha256(data[HEADER_SIZE:]).digest() != digest:
        raise CorruptError(f"{where}: is damaged", hint="build the artifact again")
    text = data[HEADER_SIZE : HEADER_SIZE + text_size]
    return SimNeff(parse_object(text, f"manifest of {where}"), data[HEADER_SIZE + text_size :])


def _text(field: bytes) -> str:
    # What stands behind the first zero byte is not looked at: a compiler owes us no clean padding.
    return field.partition(b"\0")[0].decode("ascii", "replace")
