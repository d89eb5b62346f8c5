"""Instructions of the compiled kernels, counted by callgrind: a regression shows here even on a noisy machine.

    python tests/bench/instruction_counts.py              count and compare with instructions.json
    python tests/bench/instruction_counts.py --update     count and write instructions.json

Each artifact is compiled for x86-64-v3 whatever this machine is and called by driver.c, one thread; callgrind counts inside the
entry point only. Emulation is deterministic and libc has no part in it, so the counts depend on templates and compiler alone: two
runs give the same number. TOLERANCE is what a change may cost without being noticed; a compiler of another version is pinned out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lqcd_aot.compilers import find_toolchain
from lqcd_aot.program import program_for
from lqcd_aot.settings import cache_dir
from lqcd_runtime.geometry import volume
from lqcd_runtime.signature import Spec

FOLDER = Path(__file__).parent
RECORD = FOLDER / "instructions.json"
TARGET = "x86-64-v3"
LATTICE = (4, 4, 4, 4)
COUNTED = (
    ("wilson_hop", "float32", 1), ("wilson_hop", "float32", 8), ("wilson_hop", "float64", 1), ("wilson_normal", "float32", 1),
    ("wilson_normal", "float64", 1), ("clover", "float32", 1),
    ("wilson_schur_cg", "float32", 1), ("wilson_schur_cg", "float64", 1),
)  # fmt: skip
TOLERANCE = 0.02
REPEATS = 3


def specs() -> list[Spec]:
    """What is counted: hop, normal, clover, an iteration of even-odd CG; for one column and, the hop, for several."""
    return [Spec(word, LATTICE, dtype, batch=batch) for word, dtype, batch in COUNTED]


def available() -> bool:
    """Whether this machine can count: valgrind, and the architecture of the artifacts."""
    return shutil.which("valgrind") is not None and os.uname().machine == "x86_64"


def count_all(chosen: list[Spec] | None = None) -> dict[str, int]:
    """{name of the artifact: instructions of one application to all right-hand sides, or of one iteration}."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        driver = build_driver(Path(folder))
        wanted = specs() if chosen is None else chosen
        return dict(zip([s.name for s in wanted], pool.map(lambda s: count(s, driver, Path(folder)), wanted), strict=True))


def build_driver(folder: Path) -> Path:
    """driver.c by the compiler of the artifacts."""
    out = folder / "driver"
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu.2.17", "-O1", "-s", "-o", str(out)]
    # The cache that artifacts are compiled with has the stubs of this libc already.
    env = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(folder / "zig"), "ZIG_GLOBAL_CACHE_DIR": str(cache_dir() / "zig")}
    subprocess.run([*command, str(FOLDER / "driver.c"), "-ldl"], check=True, capture_output=True, env=env)
    return out


def count(spec: Spec, driver: Path, folder: Path) -> int:
    """Compile, run under callgrind."""
    artifact = folder / f"{spec.name}.so"
    artifact.write_bytes(find_toolchain().compile(program_for(spec, TARGET), TARGET, timeout=300, workdir=folder))
    return round(instructions(spec, driver, artifact, REPEATS) / REPEATS)


def instructions(spec: Spec, driver: Path, artifact: Path, repeats: int) -> int:
    """Inside the entry point and what it calls, as callgrind says."""
    kind, entry = ("solver", "lqcd_solve_iterate") if spec.kind == "solver" else ("dirac", "lqcd_apply")
    arguments = [kind, str(int(spec.dtype == "float64")), str(volume(spec.lattice)), str(spec.batch), str(repeats)]
    tool = ["valgrind", "--tool=callgrind", f"--toggle-collect={entry}", "--callgrind-out-file=/dev/null"]
    done = subprocess.run(
        [*tool, str(driver), str(artifact), *arguments], capture_output=True, text=True, check=False, timeout=300
    )  # fmt: skip
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise RuntimeError(f"callgrind of {spec.name} failed ({done.returncode}):\n{done.stderr[-2000:]}")
    return int(found[1])


def compare(found: dict[str, int], recorded: dict[str, int]) -> list[str]:
    """One sentence for each count that left the tolerance, in either direction, or that only one side has."""
    lines = [f"{name}: counted, not recorded" for name in found if name not in recorded]
    lines += [f"{name}: recorded, not counted" for name in recorded if name not in found]
    for name in found.keys() & recorded.keys():
        if abs(found[name] - recorded[name]) > TOLERANCE * recorded[name]:
            ratio = found[name] / recorded[name]
            lines.append(f"{name}: {found[name]} instructions, recorded are {recorded[name]} (ratio {ratio:.3f})")
    return sorted(lines)


def read_record() -> dict[str, Any]:
    return dict(json.loads(RECORD.read_text(encoding="utf-8")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write instructions.json")
    update = parser.parse_args().update
    if not available():
        print("valgrind on an x86-64 machine is needed")
        return 2
    found = count_all()
    sites = volume(LATTICE)
    for name, n in found.items():
        print(f"{name:<32} {n:>12}  {n / sites:10.1f} a site")
    if update:
        version = find_toolchain().identity(TARGET)["version"]
        record = {"target": TARGET, "compiler": f"zig {version}", "tolerance": TOLERANCE, "instructions": found}
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"written: {RECORD}")
        return 0
    broken = compare(found, read_record()["instructions"])
    print("\n".join(broken) or f"all within {100 * TOLERANCE:.0f} % of the record")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
