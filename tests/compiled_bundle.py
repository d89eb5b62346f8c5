"""A bundle of artifacts compiled for this machine, for tests that run them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lqcd_aot.compilers import find_toolchain
from lqcd_aot.program import program_for
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host
from tests.made import bundle_bytes, record


def compiled_bundle(folder: Path, specs: Sequence[Spec]) -> Path:
    """A bundle file in the folder, with one artifact for each spec and no witnesses."""
    toolchain, target = find_toolchain(), this_host().best_target()
    assert target is not None
    with ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(lambda s: toolchain.compile(program_for(s, target), target, timeout=300, workdir=folder), specs))
    path = folder / "compiled.lqcd"
    path.write_bytes(bundle_bytes([record(s, target, c) for s, c in zip(specs, codes, strict=True)], codes))
    return path
