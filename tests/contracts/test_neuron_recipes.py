"""Every program of the shipped Neuron recipes runs through XLA on the CPU and agrees with torch in complex128.

On a small lattice, with two right-hand sides and one or two iterations: the text of a program depends on its operator, dtype,
fused or not, cut or not; extents, batch and iterations are only numbers in it. Building a recipe with `--compiler sim` runs its
programs as they are (inf2.toml: 186 of them).
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from lqcd_aot.build.check import builder_spec
from lqcd_aot.build.witness import Judge
from lqcd_aot.cli import run
from lqcd_aot.cli.alike import merged_notes
from lqcd_aot.compilers.dispatch import Toolchains
from lqcd_aot.program import program_for
from lqcd_aot.recipe import expand, load
from lqcd_runtime.engines.neff_artifact import NeffArtifact
from lqcd_runtime.engines.sim import SimEngine
from lqcd_runtime.manifest import Entry, entry_dict
from lqcd_runtime.neff import write_sim
from lqcd_runtime.signature import Spec
from lqcd_runtime.witness import replay
from tests.made import record

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
NAMES = ("inf2", "trn1", "trn2")
LATTICE = (4, 2, 2, 4)


def reduced(spec: Spec) -> Spec:
    """The same structure on the small lattice."""
    return spec.replace(
        lattice=LATTICE, batch=min(spec.batch, 2) if spec.kind != "chunk" else 2, shards=min(spec.shards, 2),
        iterations=min(spec.iterations, 1 if "schur" in spec.operator else 2),
    )  # fmt: skip


def structures() -> list[Spec]:
    """One reduced spec per structure, over all shipped recipes; builders come with the operators that use them."""
    found: dict[Spec, None] = {}
    for name in NAMES:
        for variant in expand(load(RECIPES / f"{name}.toml")):
            if variant.spec.kind != "builder":
                spec = reduced(variant.spec)
                found[spec.replace(batch=2) if spec.kind == "dirac" else spec] = None
    return list(found)


STRUCTURES = structures()


def test_the_three_recipes_are_the_same_but_for_the_target() -> None:
    specs = {name: [v.spec for v in expand(load(RECIPES / f"{name}.toml"))] for name in NAMES}
    assert specs["inf2"] == specs["trn1"] == specs["trn2"]
    lattices = {spec.lattice for spec in specs["inf2"]}
    assert len(lattices) == 6 and (16, 16, 16, 16) in lattices
    for spec in specs["inf2"]:
        if spec.fused:
            assert builder_spec(spec) in specs["inf2"]
    table = {(s.lattice, s.batch, s.fused, s.dtype) for s in specs["inf2"] if s.operator == "wilson" and s.shards == 1}
    assert len(table) == 6 * 4 * 2 * 2


def test_the_reduced_ones_cover_every_word() -> None:
    """A table of what must be there, written by hand: a recipe that loses a form fails here."""
    words = {(s.operator, s.dtype, s.fused, s.shards > 1) for s in STRUCTURES}
    for dtype in ("float32", "bfloat16"):
        assert {("wilson", dtype, fused, cut) for fused in (False, True) for cut in (False, True)} <= words
    for operator in (
        "wilson_dagger", "wilson_normal", "wilson_schur", "wilson_schur_dagger", "wilson_cg_chunk", "wilson_schur_cg_chunk",
        "plaquette",
    ):  # fmt: skip
        assert (operator, "float32", False, False) in words
    assert len(STRUCTURES) <= 20, "keep this file under a minute"


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge()


def artifact(spec: Spec, judge: Judge) -> NeffArtifact:
    program = program_for(spec, "sim")
    code = write_sim(program.hlo, {})
    made = {**record(spec, "sim", code, judge.make_witness(spec)), "binding": program.binding}
    return NeffArtifact(SimEngine(), code, Entry.from_dict(entry_dict(made), spec.name))


@pytest.mark.parametrize("spec", STRUCTURES, ids=lambda s: s.name)
def test_xla_agrees_with_complex128(spec: Spec, judge: Judge) -> None:
    """The bound is derived (witness_bound) and below 1, so that a wrong number could be told.

    It counts rows of 96 terms, as CPU artifacts add them; the HLO form projects first and adds 48, so it is generous here.
    """
    made = artifact(spec, judge)
    builder = artifact(builder_spec(spec), judge) if spec.fused else None
    outcome = replay(made.entry, made, builder)
    assert outcome.passed and 0 < outcome.worst <= outcome.bound < 0.3, str(outcome)


def test_pypi_cannot_satisfy_the_extra() -> None:
    """PyPI has neuronx-cc 1.0 and 1.0.post1 only, placeholders: a bound above them makes pip fail and say so."""
    project = tomllib.loads((RECIPES.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (found,) = map(Requirement, project["optional-dependencies"]["neuron"])
    assert found.name == "neuronx-cc" and "neuronx-cc" not in str(project["dependencies"])
    assert not list(found.specifier.filter(["1.0", "1.0.post1"], prereleases=True))
    assert list(found.specifier.filter(["2.21.33363.0", "2.27.5334.0"])) == ["2.21.33363.0", "2.27.5334.0"]


RECIPE = """
schema = 1
name = "rehearsal"
[axes]
operator = "wilson"
lattice = "4x2x2x2"
dtype = "float32"
target = "inf2"
[[include]]
operator = "wilson_cg_chunk"
iterations = 2
"""


def test_neuron_check_rehearses_and_writes_a_report_without_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe, report = tmp_path / "rehearsal.toml", tmp_path / "report.json"
    recipe.write_text(RECIPE)
    words = [
        "neuron-check",
        str(recipe),
        "--compiler",
        "sim",
        "--store",
        str(tmp_path / "s"),
        "-o",
        str(report),
        "--seconds",
        "0.01",
    ]
    assert run(words) == 0
    assert "2 of 2 built, 2 of 2 agree with complex128, 2 timed" in capsys.readouterr().out
    found = json.loads(report.read_text())
    assert found["simulated"] is True and found["target"] == "sim" and found["compiler"]["compiler"] == "neuronx-cc double"
    assert [row["outcome"] for row in found["builds"]] == ["built", "built"] and all(row["passed"] for row in found["checks"])
    assert all(row["estimate"]["kind"] == "estimate, uncalibrated" for row in found["builds"])
    (row,), (chunk,) = found["rows"], found["chunks"]
    assert (row["one_core"]["cores"], row["all_cores"]["cores"]) == (1, 4) and row["one_core"]["gflops"] > 0
    assert chunk["iterations"] == 2 and chunk["seconds_per_iteration"] > 0
    assert str(tmp_path) not in report.read_text() and "/" not in json.dumps(found["builds"]).replace("bfloat16/", "")


def test_what_many_variants_share_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Toolchains, "refusal", lambda self, target: f"nothing compiles for {target}; pip install it")
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        'schema = 1\nname = "r"\n[axes]\noperator = "wilson"\nlattice = ["4x4x4x4", "8x4x4x4"]\ndtype = "float32"\n'
        'batch = [1, 2]\nshards = "auto"\ntarget = ["inf2"]\n'
    )
    where = [str(recipe), "--store", str(tmp_path / "s")]
    note = "inf2: shards = 1: the whole lattice fits (estimate); 4 variants\n"
    reason = "blocked 4 variants: not in the store, and no compiler for target inf2: nothing compiles for inf2; pip install it"
    for verb, code in (("plan", 0), ("build", 1)):
        assert run([verb, *where]) == code
        said = capsys.readouterr()
        assert said.err == note
        assert said.out.splitlines().count(reason) == 1 and said.out.count("pip install") == 1
        assert run([verb, *where, "--json"]) == code
        said = capsys.readouterr()
        assert len(said.err.splitlines()) == 4
        assert len(json.loads(said.out)) == 4


def test_notes_that_differ_in_numbers_alone_are_one_line_and_other_choices_are_not() -> None:
    notes = [
        f"inf2: shards = {n} for wilson-b{b}: 1 would take {b}.5 GiB of 16 (estimate)" for n, b in ((2, 30), (2, 40), (4, 50))
    ]
    assert merged_notes([*notes, "another"]) == [f"{notes[0]}; so too, with other numbers, 1 more", notes[2], "another"]


def test_neuron_check_without_a_device_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LQCD_RUNTIME_NEURON", "none")
    assert run(["neuron-check"]) == 2
    said = capsys.readouterr().err
    assert "no NeuronCore" in said and "--compiler sim" in said
