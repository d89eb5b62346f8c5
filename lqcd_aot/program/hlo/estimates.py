"""Estimates kept on disk: a program of many iterations takes seconds to read, and a plan asks for every variant, every time.

One JSON file an estimate: settings.cache_dir()/estimates/<key>; the key is the digest of program, target and of the sources that
estimate. Owns nothing but the memory: what does not parse or cannot be written costs time, never an error.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path

from lqcd_aot.program.hlo.estimate import Estimate, estimate
from lqcd_aot.settings import cache_dir
from lqcd_runtime.digest import sha256_hex, tagged_sha256

CACHE_TAG = "lqcd-aot/estimate-cache/v1"


def remembered(hlo: bytes, target: str) -> Estimate:
    """`estimate.estimate`, from disk where it was made before."""
    name = tagged_sha256(CACHE_TAG, {"hlo": sha256_hex(hlo), "target": target, "sources": _sources()})
    path = cache_dir() / "estimates" / name
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        said = json.loads(path.read_bytes())
        return Estimate(**{field.name: said[field.name] for field in fields(Estimate)})
    made = estimate(hlo, target)
    private = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(8).hex()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        private.write_text(json.dumps(asdict(made)), encoding="utf-8")
        private.replace(path)
    return made


@lru_cache(maxsize=1)
def _sources() -> list[str]:
    here = Path(__file__).parent
    return [sha256_hex((here / f"{name}.py").read_bytes()) for name in ("estimate", "read", "schema", "validate")]
