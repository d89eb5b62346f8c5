"""Running the command line in tests: the console script of this environment, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BIN = Path(sys.executable).parent


def environment(store: Path | None = None, **changes: str) -> dict[str, str]:
    """This process's environment with the virtual environment's programs first and no LQCD_AOT_* of the caller."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("LQCD_AOT_")}
    env["PATH"] = f"{BIN}{os.pathsep}{env.get('PATH', '')}"
    if store is not None:
        env["LQCD_AOT_STORE"] = str(store)
        env["LQCD_AOT_CONFIG"] = str(store.parent / "settings")
    return {**env, **changes}


def run(
    arguments: Sequence[str], folder: Path, *, store: Path | None = None, code: int = 0, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `lqcd-aot ARGUMENTS` in a folder and demand its exit code; what it printed is in the result."""
    done = subprocess.run(
        [sys.executable, "-m", "lqcd_aot.cli", *arguments],
        cwd=folder, env=env or environment(store), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == code, f"lqcd-aot {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done
