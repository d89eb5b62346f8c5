"""The command line as other programs use it: JSON shapes, exit codes, clean messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import BIN, environment, run

RECIPE = """schema = 1
name = "one"
[axes]
operator = ["wilson", "wilson_dagger", "wilson_normal", "plaquette"]
lattice = "{lattice}"
dtype = "float64"
batch = 12
target = ["x86-64-v2", "aarch64"]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe, built, packed, and a configuration on its lattice."""
    from lqcd_aot.core import GaugeField, LatticeGeometry

    folder = tmp_path_factory.mktemp("place")
    (folder / "one.toml").write_text(RECIPE.format(lattice="4x4x4x2"), encoding="utf-8")
    GaugeField.heatbath(LatticeGeometry(4, 4, 4, 2), beta=6.0, sweeps=5, seed=1).save(folder / "cfg.lime", format="ildg")
    run(["build", "one.toml", "--store", "store", "-j", "2"], folder)
    run(["pack", "one.toml", "--store", "store", "-o", "one.lqcd"], folder)
    return folder


def _json(arguments: list[str], folder: Path, code: int = 0) -> Any:
    return json.loads(run([*arguments, "--json"], folder, code=code).stdout)


def test_plan_rows_have_the_documented_members(place: Path) -> None:
    rows = _json(["plan", "one.toml", "--store", "store"], place)
    assert len(rows) == 8
    for row in rows:
        assert {"name", "spec_key", "build_key", "decision", "reason"} <= set(row)
        assert row["decision"] == "reuse"
        assert len(row["spec_key"]) == len(row["build_key"]) == 64


def test_a_build_with_nothing_to_do_is_in_the_log_of_the_report(place: Path) -> None:
    from lqcd_aot.build.event_log import read_logs
    from lqcd_aot.store import open_store

    before = len(list(read_logs(open_store(place / "store"))))
    run(["build", "one.toml", "--store", "store"], place)
    builds = list(read_logs(open_store(place / "store")))
    assert len(builds) == before + 1
    assert {"reused": 8} in [build.outcomes for build in builds]


def test_a_store_that_another_process_is_making_counts_as_not_made(place: Path, tmp_path: Path) -> None:
    (tmp_path / "store" / "tmp").mkdir(parents=True)
    rows = _json(["plan", "one.toml", "--store", str(tmp_path / "store")], place)
    assert {row["decision"] for row in rows} == {"build"}
    (tmp_path / "store" / "thesis.tex").touch()
    assert "is not a store" in run(["plan", "one.toml", "--store", str(tmp_path / "store")], place, code=10).stderr


def test_a_built_recipe_compiles_nothing(place: Path) -> None:
    rows = _json(["build", "one.toml", "--store", "store"], place)
    assert {row["outcome"] for row in rows} == {"reused"}


def test_one_changed_axis_builds_exactly_the_variants_whose_key_changed(place: Path, tmp_path: Path) -> None:
    text = (place / "one.toml").read_text().replace('"plaquette"]', '"plaquette", "polyakov_loop"]')
    (tmp_path / "more.toml").write_text(text, encoding="utf-8")
    rows = _json(["plan", "more.toml", "--store", str(place / "store")], tmp_path)
    assert {row["name"].partition("-")[0] for row in rows if row["decision"] == "build"} == {"polyakov_loop"}


def test_observe_prints_one_object_by_name(place: Path) -> None:
    values = _json(["observe", "cfg.lime", "plaquette", "polyakov_loop", "--store", "store"], place)
    assert 0.3 < values["plaquette"] < 1
    assert len(values["polyakov_loop"]) == 2


def test_observe_offline_names_the_nearest_artifact(place: Path, tmp_path: Path) -> None:
    from lqcd_aot.core import GaugeField, LatticeGeometry

    GaugeField.random(LatticeGeometry(4, 4, 2, 2), seed=3).save(tmp_path / "other.lime", format="ildg")
    error = _json(["observe", "other.lime", "plaquette", "--bundle", str(place / "one.lqcd")], tmp_path, code=20)
    assert error["nearest"].startswith("plaquette-4x4x4x2-f64@")
    assert error["differing"] == {"lattice": {"asked": [4, 4, 2, 2], "nearest": [4, 4, 4, 2]}}


def test_a_measurement_builds_what_is_missing_and_says_so_in_one_line(place: Path, tmp_path: Path) -> None:
    done = run(["observe", str(place / "cfg.lime"), "plaquette", "--store", "fresh"], tmp_path)
    lines = [line for line in done.stderr.splitlines() if line.startswith("building")]
    assert len(lines) == 1
    assert "plaquette-4x4x4x2-f64" in lines[0]
    again = run(["observe", str(place / "cfg.lime"), "plaquette", "--store", "fresh"], tmp_path)
    assert "building" not in again.stderr


def test_pion_writes_hdf5_with_provenance_and_a_plot(place: Path, tmp_path: Path) -> None:
    import h5py

    out = tmp_path / "pion.h5"
    arguments = ["pion", "cfg.lime", "--kappa", "0.12", "--bundle", "one.lqcd", "-o", str(out)]
    printed = _json(arguments, place)
    with h5py.File(out) as f:
        assert list(f["pion"]) == printed["pion"]
        assert f.attrs["configuration"] == "cfg.lime"
        assert len(f.attrs["configuration_digest"]) == 64
        assert f.attrs["input_phases"].tolist() == [-1, 1, 1, 1]
        assert f["pion"].attrs["gamma_basis"] == "degrand-rossi"
        assert max(f["solver/true_residual"]) <= 1e-10
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_propagator_says_when_it_did_not_converge(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.h5"
    arguments = ["propagator", "cfg.lime", "--mass", "0.1", "--bundle", "one.lqcd", "--max-iterations", "2", "-o", str(out)]
    printed = _json(arguments, place, code=30)
    assert not printed["converged"]
    assert printed["reason"] == "max_iterations"
    assert printed["final_residual"] > 1e-10
    lines = run(arguments, place, code=30).stderr.splitlines()
    (said,) = [line for line in lines if "max_iterations" in line]
    assert said.startswith("columns 0-11: max_iterations after 2 iterations at residual ") and "GFLOP/s" not in said
    assert sum("GFLOP/s" in line for line in lines) == 1


def test_bench_rows_have_the_documented_members(place: Path) -> None:
    arguments = ["bench", "--threads", "1", "--operator", "wilson", "--lattice", "4x4x4x2", "--dtype", "float64", "--batch", "1"]
    report = _json([*arguments, "--seconds", "0.02", "--store", "store"], place)
    assert {"schema", "machine", "settings", "roofline", "rows", "series", "skipped", "start_up"} <= set(report)
    (row,) = report["rows"]
    wanted = {"operator", "dtype", "storage", "lattice", "batch", "fused", "threads", "seconds", "gflops", "gbytes_per_s", "peer"}
    assert wanted <= set(row)
    assert row["lattice"] == [4, 4, 4, 2]
    assert row["gflops"] == pytest.approx(1320 * 128 / row["seconds"] / 1e9)


@pytest.mark.parametrize(
    "verb", [["ls"], ["inspect", "--decisions"], ["selfcheck"], ["show", "wilson-4x4x4x2-f64-b12@x86-64-v2"]]
)
def test_reading_verbs_agree_on_store_and_bundle(verb: list[str], place: Path) -> None:
    for path in ("store", "one.lqcd"):
        assert run([*verb, path], place).stdout
        assert _json([*verb, path], place)


def test_why_explains_hits_and_misses(place: Path) -> None:
    assert "taken: wilson-4x4x4x2-f64-b12@" in run(["why", "wilson-4x4x4x2-f64-b12", "--store", "store"], place).stdout
    miss = run(["why", "wilson-4x4x4x2-f32-b12", "--store", "store"], place, code=20)
    assert "dtype: asked float32, it has float64" in miss.stderr


def test_everything_but_building_works_without_a_compiler(place: Path, tmp_path: Path) -> None:
    """A folder of this name hides the compiler's package from the interpreter."""
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__init__.py").write_text("raise ImportError('no ziglang here')\n", encoding="utf-8")
    env = environment(place / "store", PYTHONPATH=str(tmp_path), PATH=str(BIN))
    for verb in (
        ["plan", "one.toml"],
        ["ls"],
        ["inspect", "one.lqcd"],
        ["selfcheck", "one.lqcd"],
        ["pack", "one.toml", "-o", "b.lqcd"],
    ):
        run(verb, place, env=env)
    assert run(["doctor"], place, env=env).stdout
    (tmp_path / "new.toml").write_text(RECIPE.format(lattice="2x2x2x2"), encoding="utf-8")
    done = run(["build", str(tmp_path / "new.toml")], place, env=env, code=1)
    assert "pip install ziglang" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["plan", "absent.toml"], 2, "absent.toml"),
        (["paln"], 2, "did you mean 'plan'"),
        (["observe", "cfg.lime", "plakette"], 2, "did you mean 'plaquette'"),
        (["observe", "absent.lime", "plakette"], 2, "did you mean 'plaquette'"),
        (["observe", "absent.lime", "topological_charge", "wilson_action"], 2, "hint:     --beta 6.0"),
        (["observe", "absent.lime", "plaquette", "--beta", "6.0"], 2, "--beta 6.0 with the name wilson_action"),
        (["observe", "one.toml", "plaquette"], 12, "one.toml"),
        (["observe", "absent.lime", "plaquette"], 12, "absent.lime"),
        (["propagator", "cfg.lime"], 2, "--mass"),
        (["propagator", "cfg.lime", "--mass", "0.1", "--source", "0,0,0"], 2, "t,z,y,x"),
        (["propagator", "cfg.lime", "--mass", "0.1", "--source", "9,0,0,0", "--bundle", "one.lqcd"], 2, "9"),
        (["ls", "cfg.lime"], 12, "cfg.lime"),
        (["ls", "."], 10, "VERSION"),
        (["show", "wilson-4x4x4x2-f64-b13@x86-64-v2", "store"], 20, "did you mean"),
        (["inspect", "one.lqcd", "--as-target", "x86-64-v9"], 2, "x86-64-v4"),
    ],
)
def test_bad_input_gets_one_clean_message(arguments: list[str], code: int, says: str, place: Path) -> None:
    done = run(arguments, place, store=place / "store", code=code)
    assert says in done.stderr
    assert not done.stdout


def test_an_unknown_setting_is_an_error(place: Path) -> None:
    done = run(["plan", "one.toml"], place, env=environment(LQCD_AOT_STOR="x"), code=2)
    assert "did you mean 'LQCD_AOT_STORE'" in done.stderr


def test_store_verify_finds_and_repairs_a_flipped_bit(place: Path, tmp_path: Path) -> None:
    import shutil

    store = tmp_path / "store"
    shutil.copytree(place / "store", store)
    blob = next(p for p in (store / "blobs").rglob("*") if p.is_file())
    data = bytearray(blob.read_bytes())
    data[100] ^= 1
    blob.chmod(0o644)
    blob.write_bytes(data)
    broken = run(["store", "verify", "--store", str(store)], place, code=12)
    assert blob.name[:12] in broken.stderr
    run(["store", "verify", "--store", str(store), "--repair"], place)
    run(["build", "one.toml", "--store", str(store)], place)
    run(["store", "verify", "--store", str(store)], place)
