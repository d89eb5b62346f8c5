"""Coverage-guided fuzzing by atheris (extra [fuzz]): python -m tests.abuse.fuzz [--seconds N] [PARSER...]

Each parser runs in a process of its own for its share of the time, starting from its seeds and regressions. An input that brings
out anything but an answer is kept in tests/abuse/fuzz/regressions/PARSER/, to be committed with the mended parser; the exit code
is then 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.abuse.fuzz.parsers import PARSERS
from tests.abuse.fuzz.seeds import SEEDS

HERE = Path(__file__).parent
REGRESSIONS = HERE / "regressions"
# Per input: longer is a hang, more is a bomb.
TIMEOUT_SECONDS, MEMORY_MB = 20, 2048


def main() -> int:
    """Fuzz some or all parsers; the number that failed."""
    arguments = argparse.ArgumentParser(prog="python -m tests.abuse.fuzz", description="Fuzz the parsers of foreign bytes.")
    arguments.add_argument("parsers", metavar="PARSER", nargs="*", help=", ".join(PARSERS))
    arguments.add_argument("--seconds", type=int, default=20, help="for each parser (default 20)")
    asked = arguments.parse_args()
    unknown = [name for name in asked.parsers if name not in PARSERS]
    if unknown:
        arguments.error(f"{', '.join(unknown)}: not among {', '.join(PARSERS)}")
    failed = [name for name in asked.parsers or PARSERS if not _child(name, asked.seconds)]
    print(f"{len(asked.parsers or PARSERS)} parsers fuzzed for {asked.seconds} s each, {len(failed)} failed {' '.join(failed)}")
    return 1 if failed else 0


def _child(name: str, seconds: int) -> bool:
    with tempfile.TemporaryDirectory() as corpus:
        seeds = Path(corpus) / "seeds"
        seeds.mkdir()
        kept = REGRESSIONS / name
        known = [p.read_bytes() for p in sorted(kept.glob("*"))] if kept.is_dir() else []
        for i, seed in enumerate([*SEEDS[name](), *known]):
            (seeds / str(i)).write_bytes(seed)
        kept.mkdir(parents=True, exist_ok=True)
        longest = 2 * max(len(s) for s in SEEDS[name]())
        options = [
            f"-max_total_time={seconds}", f"-timeout={TIMEOUT_SECONDS}", f"-rss_limit_mb={MEMORY_MB}", f"-max_len={longest}",
            f"-artifact_prefix={kept}/", "-print_final_stats=1", "-verbosity=0", str(seeds),
        ]  # fmt: skip
        command = [sys.executable, "-m", "tests.abuse.fuzz.target", name, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 300)
        runs = [line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line]
        verdict = f"FAILED with exit code {done.returncode}" if done.returncode else "sound"
        print(f"{name:<18} {runs[0] if runs else '?':>9} inputs  {verdict}", flush=True)
        if done.returncode:
            print("\n".join(line for line in done.stderr.splitlines() if not line.startswith("INFO"))[-3000:], flush=True)
        if not any(kept.iterdir()):
            kept.rmdir()
        return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
