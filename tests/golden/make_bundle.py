"""Makes a golden bundle: python -m tests.golden.make_bundle tests/golden/bundle-vN.lqcd

Run once per bundle or record schema and committed; never run again for a name that exists, since the point of the file is that
later releases read what this one wrote. All bytes are the project's own: templates compiled by the pinned compiler.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from lqcd_aot.compilers import find_toolchain
from lqcd_aot.program import program_for
from lqcd_runtime.signature import Spec
from lqcd_runtime.witness import Witness, question, summary
from tests.e2e.artifacts import judged
from tests.made import bundle_bytes, record

LATTICE = (2, 2, 2, 2)
VARIANTS = [
    (Spec("wilson", LATTICE, "float64"), "x86-64-v2"),
    (Spec("wilson", LATTICE, "float32", fused=True), "x86-64-v2"),
    (Spec("wilson_blocks", LATTICE, "float32"), "x86-64-v2"),
    (Spec("plaquette", LATTICE, "float64"), "x86-64-v2"),
    (Spec("plaquette", LATTICE, "float64"), "aarch64"),
]


def make(path: Path) -> None:
    """Compile, judge, pack. Errors: FileExistsError."""
    records, codes = [], []
    for spec, target in VARIANTS:
        with tempfile.TemporaryDirectory() as folder:
            code = find_toolchain().compile(program_for(spec, target), target, timeout=120, workdir=Path(folder))
        asked = question(spec)
        rows = None if asked.kind == "builder" else summary(asked, judged(asked))
        records.append(record(spec, target, code, Witness.make(spec, rows).as_dict()))
        codes.append(code)
    with path.open("xb") as f:
        f.write(bundle_bytes(records, codes, signatures={"signatures/slot": b"a signature member may stand here\n"}))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
