"""`Program`: everything of ours that reaches a compiler, and its digest. Refuses to know compilers and specs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from lqcd_runtime.digest import canonical_json, sha256_hex

PROGRAM_TAG = "lqcd-aot/program/v1"


@dataclass(frozen=True)
class Program:
    """Source files, constants and the file to compile.

    files: (name, text), all in one folder, only those that `entry` reaches; defines: (name, value), each to be passed as
    -Dname=value, values spelled as C++ (a string with its quotes); entry: the name of the .cpp file.
    """

    files: tuple[tuple[str, str], ...]
    defines: tuple[tuple[str, str], ...]
    entry: str

    @cached_property
    def digest(self) -> str:
        """tagged_sha256(PROGRAM_TAG, {"files": {name: sha256}, "defines": {...}, "entry": ...}), 64 hex digits."""
        # Spelled in two pieces, as "defines" sorts first and the rest is the same for all programs of an entry file.
        defines = canonical_json({"defines": dict(self.defines)})[:-1]
        return sha256_hex(PROGRAM_TAG.encode("ascii") + b"\0" + defines + b"," + _shared(self.files, self.entry))

    @property
    def identity(self) -> str:
        """What the artifact will answer to lqcd_identity()."""
        return dict(self.defines)["LQCD_IDENTITY"].strip('"')


@lru_cache(maxsize=64)
def _shared(files: tuple[tuple[str, str], ...], entry: str) -> bytes:
    return canonical_json({"entry": entry, "files": {name: sha256_hex(text.encode()) for name, text in files}})[1:]
