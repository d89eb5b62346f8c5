"""Every command and snippet of the documents runs. Those that install or test everything are run by CI itself; see ELSEWHERE."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lqcd_runtime.signature import OPERATORS
from tests.e2e.commands import environment

DOCUMENTS = ("README.md", "recipes/README.md", "artifacts/README.md")
# Commands that another test or CI runs as they stand, and which.
ELSEWHERE = {
    "make demo": "test_journey.py",
    "make demo CONFIG=path/to/configuration": "test_journey.py",
    "make check": ".ci/run",
    "make bench": "test_journey.py, with a small lattice",
    'make bench LATTICE="16x16x16x16 8x8x8x8" BATCH=1,8,32 THREADS=1,2': "tests/contracts/test_bench.py, as far as make goes",
    "make bench NEURON=1 BATCH=1,8,32 NO_FUSED=1": "needs a NeuronCore; with COMPILER=sim in tests/contracts/test_bench.py",
    "pip install torch==2.13.0": "make, in .ci/run",
    "pip install ./runtime .": "test_distributions.py",
    # What the index refuses without AWS's is tested in tests/contracts/test_neuron_recipes.py.
    "pip install '.[neuron]' --extra-index-url https://pip.repos.neuron.amazonaws.com": "needs AWS's index",
}


def _blocks(root: Path, document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (root / document).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def _commands(root: Path, document: str) -> list[str]:
    lines = [line.partition("  #")[0].strip() for block in _blocks(root, document, "bash") for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, repo_root: Path) -> Path:
    """What a reader has: the recipes, and a configuration of their own."""
    from lqcd_aot.core import GaugeField, LatticeGeometry

    made = tmp_path_factory.mktemp("reader")
    (made / "recipes").symlink_to(repo_root / "recipes")
    GaugeField.heatbath(LatticeGeometry(4, 4, 4, 4), beta=6.0, sweeps=5, seed=1).save(made / "cfg.lime", format="ildg")
    return made


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_runs(document: str, repo_root: Path, folder: Path) -> None:
    commands = _commands(repo_root, document)
    assert commands, f"{document} shows no command in a bash block"
    for command in commands:
        if command in ELSEWHERE:
            continue
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment(folder / "store"), capture_output=True, text=True, check=False
        )  # fmt: skip
        assert done.returncode == 0, f"{document}: {command}\n{done.stdout}\n{done.stderr}"


def test_no_command_hides_outside_a_bash_block(repo_root: Path) -> None:
    for document in DOCUMENTS:
        shown = set(_commands(repo_root, document))
        text = (repo_root / document).read_text(encoding="utf-8")
        indented = re.findall(
            r"^ {4}((?:lqcd-aot|make|pip|python) .*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M
        )
        assert not set(indented) - shown, f"{document}: put commands into bash blocks, where they are tested"


def test_what_documented_benches_write_is_ignored_by_git(repo_root: Path) -> None:
    ignored = (repo_root / ".gitignore").read_text(encoding="utf-8").splitlines()
    benches = [shlex.split(c) for document in DOCUMENTS for c in _commands(repo_root, document) if c.startswith("lqcd-aot bench")]
    folders = {words[words.index("--out") + 1] for words in benches if "--out" in words}
    assert folders
    assert {f"/{folder}/" for folder in folders} <= set(ignored)


def test_make_commands_are_targets_of_the_makefile(repo_root: Path) -> None:
    makefile = (repo_root / "Makefile").read_text(encoding="utf-8")
    for command in (c for document in DOCUMENTS for c in _commands(repo_root, document) if c.startswith("make")):
        assert re.search(rf"^{re.escape(shlex.split(command)[1])}:", makefile, re.MULTILINE), command


def test_the_python_of_the_readme_runs(repo_root: Path, folder: Path) -> None:
    (code,) = _blocks(repo_root, "README.md", "python")
    for verb in (["build", "recipes/smoke.toml"], ["pack", "recipes/smoke.toml", "-o", "smoke.lqcd"]):
        subprocess.run(["lqcd-aot", *verb], cwd=folder, env=environment(folder / "store"), check=True, capture_output=True)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert 0.3 < float(done.stdout.splitlines()[0]) < 1.0


def test_the_grammar_page_names_every_word_of_operator(repo_root: Path) -> None:
    text = (repo_root / "recipes" / "README.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^Words of `operator`: (.*?)`precision=", text, re.MULTILINE | re.DOTALL)
    words = set(re.findall(r"`([a-z_]+)`", listed)) - {"_dagger", "_normal", "_bicgstab"}
    families = {w for w in words if OPERATORS[w]["kind"] != "solver"}
    operators = {
        f"{w}{form}" for w in ("wilson", "clover", "twisted", "wilson_schur", "clover_schur") for form in ("_dagger", "_normal")
    }
    solvers = {w for w in words if OPERATORS[w]["kind"] == "solver"}
    named = families | operators | solvers | {w.replace("_cg", "_bicgstab") for w in solvers}
    assert named == set(OPERATORS) - {"wilson_blocks"}
