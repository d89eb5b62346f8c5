"""The two distributions as they ship: wheels hold what they need, and the runtime works where nothing else is installed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.e2e.commands import run


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory, repo_root: Path) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for source in (repo_root / "runtime", repo_root):
        copy = folder / f"source-{source.name}"
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=source, capture_output=True, text=True, check=True).stdout
        for name in filter(None, tracked.split("\0")):
            if not name.startswith(("tests/", "runtime/")) and (source / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).write_bytes((source / name).read_bytes())
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(copy)]
        subprocess.run(command, check=True, capture_output=True)
    return folder


def _names(folder: Path, distribution: str) -> set[str]:
    (wheel,) = folder.glob(f"{distribution}-*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def _shipped(wheels: Path, source: Path, package: str) -> set[str]:
    """The files of a package that must be in its wheel: all Python and all templates that git tracks."""
    copy = wheels / f"source-{source.name}"
    found = (str(p.relative_to(copy)) for p in (copy / package).rglob("*") if p.is_file())
    return {name for name in found if name.endswith((".py", ".hpp", ".cpp", "py.typed"))}


@pytest.mark.parametrize(("package", "folder"), [("lqcd_aot", "."), ("lqcd_runtime", "runtime")])
def test_a_wheel_carries_every_module_template_and_marker(package: str, folder: str, wheels: Path, repo_root: Path) -> None:
    wanted = _shipped(wheels, (repo_root / folder).resolve(), package)
    assert f"{package}/py.typed" in wanted
    assert wanted <= _names(wheels, package)


def test_the_runtime_alone_verifies_and_checks_a_bundle(wheels: Path, repo_root: Path, tmp_path: Path) -> None:
    store, bundle = tmp_path / "store", tmp_path / "smoke.lqcd"
    recipe = str(repo_root / "recipes" / "smoke.toml")
    run(["build", recipe, "--target", "x86-64-v2", "--target", "aarch64"], tmp_path, store=store)
    run(["pack", recipe, "--target", "x86-64-v2", "--target", "aarch64", "-o", str(bundle)], tmp_path, store=store)
    venv = tmp_path / "runtime-only"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    python = venv / "bin" / "python"
    (wheel,) = wheels.glob("lqcd_runtime-*.whl")
    site = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True
    )
    zipfile.ZipFile(wheel).extractall(site.stdout.strip())
    import numpy

    (Path(site.stdout.strip()) / "numpy.pth").write_text(_numpy_alone(Path(numpy.__file__).parent, tmp_path), encoding="utf-8")
    for verb in ("list", "verify", "selfcheck"):
        done = subprocess.run([python, "-m", "lqcd_runtime", bundle, verb], capture_output=True, text=True, env={}, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    missing = subprocess.run([python, "-c", "import lqcd_aot"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError" in missing.stderr


def _numpy_alone(package: Path, tmp_path: Path) -> str:
    """A folder with numpy and its libraries and nothing else."""
    alone = tmp_path / "numpy-alone"
    alone.mkdir()
    for name in ("numpy", "numpy.libs"):
        if (package.parent / name).exists():
            (alone / name).symlink_to(package.parent / name)
    return str(alone) + "\n"
