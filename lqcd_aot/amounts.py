"""Bytes and seconds as people read them: in pages and on the command line."""

from __future__ import annotations


def human_bytes(n: float) -> str:
    """12345 -> '12.1 KiB'."""
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"


def human_seconds(seconds: float) -> str:
    """0.0000123 -> '12.3 us', 0.0123 -> '12.3 ms', 75 -> '1 min 15 s', 4000 -> '1.1 h'."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s" if seconds < 3600 else f"{seconds / 3600:.1f} h"
