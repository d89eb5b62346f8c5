"""Options of `neuronx-cc compile`, each with an explicit value: a default that changes between releases must not change numbers.

Owns the options per target and compiler version, and the table of releases (compiler -> SDK -> the runtime of the same SDK, which
is the oldest that is known to load what this compiler makes). Source: the command line reference and the release notes of the
Neuron SDK 2.32. Not run against the real compiler.

    --auto-cast=none      float32 stays float32 (until compiler 2.21 the default was `matmult`: products in bfloat16)
    --optlevel=2          the documented default of every release, said explicitly; NeuronCompiler(optlevel=) asks for another
    --enable-mixed-precision-accumulation   sums of bfloat16 products accumulate in float32 (off by default until compiler 2.21)
    --native-int64=disabled, --implicit-integer-downcast=none   from 2.27; defaults are announced to change. Our programs hold no
                          64-bit integers and no integer products: a downcast would be an error of ours, so it must be reported
    --logical-nc-config   trn2 and later; must be the runtime's value, whose default there is 2
"""

from __future__ import annotations

from typing import NamedTuple

OLDEST = (2, 20)
LOGICAL_CORES = {"trn2": 2, "trn3": 2}
INT64_SINCE = (2, 27)


class Release(NamedTuple):
    """A compiler (major, minor), its SDK and the aws-neuronx-runtime-lib of that SDK."""

    compiler: tuple[int, int]
    sdk: str
    runtime: str


RELEASES = (
    Release((2, 20), "2.25", "2.27.23.0"),
    Release((2, 21), "2.26", "2.28.23.0"),
    Release((2, 22), "2.27", "2.29.40.0"),
    Release((2, 23), "2.28", "2.30.51.0"),
    Release((2, 24), "2.29", "2.31.24.0"),
    Release((2, 25), "2.30", "2.32.31.0"),
    Release((2, 26), "2.31", "2.33.10.0"),
    Release((2, 27), "2.32", "2.34.10.0"),
)


def numbers(version: str) -> tuple[int, int]:
    """(major, minor) of "2.21.33363.0+82129205"; (0, 0) for what does not begin with two numbers."""
    parts = version.split("+")[0].split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdecimal() and parts[1].isdecimal() else (0, 0)


def release_of(version: str) -> Release | None:
    """The release a compiler belongs to, or None for one that this table does not know."""
    return next((release for release in RELEASES if release.compiler == numbers(version)), None)


def logical_cores(target: str) -> int:
    """Physical cores per logical core that the target is compiled for."""
    return LOGICAL_CORES.get(target, 1)


def options(target: str, version: str, optlevel: int = 2) -> tuple[str, ...]:
    """Every option that can change the bytes; files and verbosity are added at the call. optlevel: 1, 2 or 3."""
    out = [
        "--framework=XLA", f"--target={target}", "--model-type=generic", "--auto-cast=none", f"--optlevel={optlevel}",
        "--enable-mixed-precision-accumulation",
    ]  # fmt: skip
    if target in LOGICAL_CORES:
        out.append(f"--logical-nc-config={LOGICAL_CORES[target]}")
        if numbers(version) >= INT64_SINCE:
            out.append("--native-int64=disabled")
    if numbers(version) >= INT64_SINCE:
        out.append("--implicit-integer-downcast=none")
    return tuple(out)
