"""The same recipe gives the same variants, order and keys in any process; ten thousand of them need no torch and no compiler."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from lqcd_aot.build.plan import plan
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.recipe import expand, load

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "recipes" / "cpu.toml"

# Prints one line a variant: position, name, spec key, build key.
LIST = """
import locale, sys
try: locale.setlocale(locale.LC_ALL, "")
except locale.Error: pass
from lqcd_aot.recipe import expand, load
from lqcd_aot.build.plan import plan
from lqcd_aot.compilers import FakeToolchain
for n, i in enumerate(plan(expand(load(sys.argv[1])), None, FakeToolchain())):
    print(n, i.variant.name, i.spec_key, i.build_key)
"""

# Counts child processes by audit events, so that no compiler can hide behind another module.
SCALE = """
import sys
children = []
sys.addaudithook(lambda event, args: children.append(event) if event in
                 ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system") else None)
from lqcd_aot.recipe import expand, load
from lqcd_aot.build.plan import plan
from lqcd_aot.compilers import FakeToolchain
toolchain = FakeToolchain()
items = plan(expand(load(sys.argv[1])), None, toolchain)
assert toolchain.compiled == [] and children == [], (toolchain.compiled, children)
heavy = sorted({"torch", "numpy", "ziglang", "ctypes", "h5py", "matplotlib", "rich"} & set(sys.modules))
keys = {item.build_key for item in items}
print(len(items), len(keys), len({item.variant.name for item in items}), heavy)
"""


def run(script: str, recipe: Path, cwd: Path, environment: dict[str, str]) -> str:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "runtime")])
    done = subprocess.run(
        [sys.executable, "-c", script, str(recipe)],
        cwd=cwd,
        env={"PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def noise(seed: int) -> dict[str, str]:
    """Fifty environment variables, some with names that builds are known to look at."""
    draw = random.Random(seed)
    names = [
        "CC",
        "CXX",
        "CFLAGS",
        "CXXFLAGS",
        "CPATH",
        "LD_RUN_PATH",
        "SOURCE_DATE_EPOCH",
        "USER",
        "HOSTNAME",
        "ZIG_GLOBAL_CACHE_DIR",
    ]
    names += [f"NOISE_{draw.randrange(10**6)}" for _ in range(40)]
    return {name: str(draw.randrange(10**9)) for name in names}


@pytest.fixture(scope="module")
def here() -> str:
    items = plan(expand(load(RECIPE)), None, FakeToolchain())
    return "".join(f"{n} {i.variant.name} {i.spec_key} {i.build_key}\n" for n, i in enumerate(items))


@pytest.mark.parametrize(
    ("seed", "locale", "timezone"), [(0, "C", "UTC"), (1, "C.UTF-8", "Asia/Tokyo"), (4294967295, "tr_TR.UTF-8", "America/Lima")]
)
def test_keys_and_order_do_not_depend_on_the_process(tmp_path: Path, here: str, seed: int, locale: str, timezone: str) -> None:
    home = tmp_path / "another home"
    home.mkdir()
    moved = tmp_path / f"renamed {seed}.toml"
    moved.write_bytes(RECIPE.read_bytes())
    environment = {**noise(seed), "PYTHONHASHSEED": str(seed), "LC_ALL": locale, "TZ": timezone, "HOME": str(home), "PATH": ""}
    assert run(LIST, moved, home, environment) == here


def test_ten_thousand_variants_plan_without_torch_and_without_a_compiler(tmp_path: Path) -> None:
    lattices = [f'"{t}x{z}x4x4"' for t in range(2, 52) for z in (4, 6, 8, 10, 12)]
    recipe = tmp_path / "large.toml"
    recipe.write_text(
        'schema = 1\nname = "large"\n[axes]\noperator = ["wilson_hop", "wilson", "wilson_dagger", "wilson_normal", "plaquette"]\n'
        f'lattice = [{", ".join(lattices)}]\ndtype = ["float32", "float64"]\n'
        'target = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"]\n'
    )
    assert run(SCALE, recipe, tmp_path, {"HOME": str(tmp_path)}) == "10000 10000 10000 []\n"
