"""`lqcd-aot bench` on 4^4 with the real compiler: its report, page, folder, comparison, peer, start-up, targets, Neuron mode."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lqcd_aot.bench import neuron_rows, suite
from lqcd_aot.bench.artifacts import artifacts, host_for
from lqcd_aot.bench.compare import read_report
from lqcd_aot.bench.machine import allowed_cpus
from lqcd_aot.bench.page import HEADS, page
from lqcd_aot.bench.rows import IDENTITY, precision, words
from lqcd_aot.bench.suite import Axes, Plan
from lqcd_aot.bench.work import FORMATS, stored
from lqcd_aot.build.execute import build
from lqcd_aot.build.plan import plan
from lqcd_aot.cli import run
from lqcd_aot.compilers import find_toolchain
from lqcd_aot.measure.ensure import Origin
from lqcd_aot.program.cpu.variant import refuse
from lqcd_aot.recipe import Variant
from lqcd_aot.store import open_store
from lqcd_runtime.engines.cpu import GAUGE, SPINOR_OUT
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import CPU_TARGETS, this_host
from tests.contracts.test_report import Tags

LATTICES = ((4, 4, 4, 2), (4, 4, 4, 4))
AXES = Axes(("wilson_hop", "wilson_schur_cg"), LATTICES, ("float32",), (), (1,), fused=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench") / "store"


@pytest.fixture(scope="module")
def report(store: Path) -> dict[str, Any]:
    """Both kinds of rows, plain and fused, every thread count this machine allows up to two; torch eager beside."""
    threads = tuple(range(1, min(2, len(allowed_cpus())) + 1))
    seen: list[int] = []
    found = suite.run(
        AXES, Plan(threads, 0.01), Origin(None, store), lambda _: None, lambda row, number, count: seen.append(number)
    )
    assert seen == list(range(1, len(found["rows"]) + 1))
    return found


def test_there_is_a_row_for_every_combination(report: dict[str, Any]) -> None:
    threads = len(report["settings"]["threads"])
    assert len(report["rows"]) == (2 * 2 + 2) * threads  # the hop fused and not, the solver not fused
    assert len({words(r) for r in report["rows"]}) == len(report["rows"])
    assert report["skipped"] == []


def test_the_figures_of_a_row_agree_with_each_other(report: dict[str, Any]) -> None:
    for r in report["rows"]:
        sites = r["lattice"][0] * r["lattice"][1] * r["lattice"][2] * r["lattice"][3]
        applications = 2 if r["operator"].endswith("_cg") else 1
        assert r["gflops"] * r["seconds"] * 1e9 == pytest.approx(applications * 1320 * sites * r["batch"])
        assert r["gbytes_per_s"] * r["seconds"] * 1e9 == pytest.approx(r["least_bytes"])
        assert r["fraction"] * r["roof_gflops"] == pytest.approx(r["gflops"])
        assert r["intensity"] == pytest.approx(applications * 1320 * sites * r["batch"] / r["least_bytes"])
        assert 0 < r["fastest"] <= r["seconds"] <= r["slowest"]
        assert r["least_bytes"] > 0 and r["working_set"] >= 24 * 4 * sites * r["batch"]
        assert len(r["cpus"]) == r["threads"] and set(r["cpus"]) <= set(allowed_cpus())
        assert (r["round_trip_ns"] is None) == (r["threads"] == 1)
        assert (r["peer"] is not None) == (r["operator"] == "wilson_hop" and r["batch"] == 1)


def test_bytes_of_a_spinor_are_those_of_the_artifact(store: Path) -> None:
    """Where sub-lattices fill the vectors, the packed field of an artifact is exactly what is counted, for every storage."""
    target, seen = this_host().best_target(), set()
    for storage in (None, *FORMATS):
        spec = Spec("wilson_hop", "4x4x4x4", "float32", storage=storage, batch=2)
        if refuse(spec, target or "") is not None:
            continue
        with artifacts([spec], Origin(None, store), this_host(), lambda _: None) as bundle:
            artifact = bundle.load(bundle.select(spec).choice)
            form = stored(spec, artifact.bytes_of(GAUGE))
            assert artifact.bytes_of(SPINOR_OUT) == 256 * 2 * form.spinor
            assert artifact.bytes_of(GAUGE) in (256 * 4 * form.link, 256 * 8 * form.link)
        seen.add(spec.storage)
    assert "float32" in seen


def test_compile_time_and_size_are_those_of_the_record(report: dict[str, Any], store: Path) -> None:
    kept = open_store(store)
    records = [kept.record(key) for key in kept.list_build_keys()]
    by_spec = {json.dumps(r["spec"], sort_keys=True): r for r in records if r}
    for r in report["rows"]:
        spec = Spec(r["operator"], r["lattice"], r["dtype"], storage=r["storage"], batch=r["batch"], fused=r["fused"])
        record = by_spec[json.dumps(spec.as_dict(), sort_keys=True)]
        assert r["compile_ms"] == record["provenance"]["compile_ms"]
        assert r["artifact_bytes"] == record["outputs"]["code"]["size"]
        assert r["target"] == record["target"] == this_host().best_target()


def test_solver_rows_solve_to_the_tolerance_with_their_own_artifact(report: dict[str, Any]) -> None:
    for r in report["rows"]:
        if r["operator"] != "wilson_schur_cg":
            assert r["solve"] is None
            continue
        solve = r["solve"]
        assert (solve["reason"], solve["columns"], solve["gauge"]) == ("converged", r["batch"], "random links")
        assert 0 < solve["residual"] <= 1e-10 and solve["iterations"] > 0
        assert 0 < solve["fastest"] <= solve["seconds"] <= solve["slowest"]


def test_the_page_shows_every_row_and_loads_nothing(report: dict[str, Any]) -> None:
    text = page(report)
    tags = Tags(text)
    assert not {tag for tag, _ in tags.seen} & {"script", "img", "link", "iframe", "object", "form", "a"}
    titles = text.count("<title>wilson_")
    assert titles == 2 * len(report["rows"])  # a point in each of two plots
    for r in report["rows"]:
        assert f"<title>{words(r)}: {r['gflops']:.1f} GFLOP/s" in text
        assert precision(r) in tags.text
    rows = text.split("<h2>All rows</h2>")[1].split("</table>")[0]
    assert rows.count("<tr>") == 1 + len(report["rows"])
    assert rows.count("<th") == len(HEADS)
    for series in report["series"]:
        assert series["name"] in tags.text
    for level in report["roofline"]["levels"]:
        assert level["name"] in tags.text


def test_names_in_a_page_are_text(report: dict[str, Any]) -> None:
    evil = "<script>alert(1)</script>"
    changed = {
        **report,
        "notes": [evil],
        "skipped": [{"name": evil, "reason": evil}],
        "machine": {**report["machine"], "processor": evil},
    }
    changed["rows"] = [{**r, "peer": {"name": evil, "seconds": 1.0, "ratio": 2.0}} for r in report["rows"]]
    tags = Tags(page(changed))
    assert not any(tag == "script" for tag, _ in tags.seen)
    assert tags.text.count(evil) >= 4


def test_a_page_without_a_roofline_says_so(report: dict[str, Any]) -> None:
    bare = dict.fromkeys(("level", "roof_gflops", "bound", "fraction"))
    text = Tags(page({**report, "roofline": None, "series": [], "rows": [{**r, **bare} for r in report["rows"]]})).text
    assert "No compiler was at hand" in text


def bench(store: Path, *arguments: str, code: int = 0) -> None:
    assert (
        run(["bench", "--store", str(store), "--batch", "1", "--dtype", "float32", "--operator", "wilson_hop", *arguments])
        == code
    )


def test_out_writes_a_report_that_compare_reads(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--lattice", "4x4x4x2 4x4x4x4", "--seconds", "0.01", "--no-peer"]
    bench(store, *quick, "--out", str(tmp_path / "one"))
    printed = capsys.readouterr()
    assert "wilson_hop" in printed.out and "pinned to CPU" in printed.out and "roofline on CPU" in printed.err
    first = read_report(tmp_path / "one" / "bench.json")
    assert (tmp_path / "one" / "bench.html").read_text().count("<svg") == 2
    bench(store, *quick, "--compare", str(tmp_path / "one" / "bench.json"), "--out", str(tmp_path / "two"))
    assert "against the older report" in capsys.readouterr().out
    second = read_report(tmp_path / "two" / "bench.json")
    assert [{n: r[n] for n in IDENTITY} for r in first["rows"]] == [{n: r[n] for n in IDENTITY} for r in second["rows"]]
    for old, new, ratio in zip(first["rows"], second["rows"], second["comparison"]["rows"], strict=True):
        assert ratio["ratio"] == pytest.approx(old["seconds"] / new["seconds"])
    assert "Against the older report" in (tmp_path / "two" / "bench.html").read_text()


def test_a_peer_command_is_run_and_its_ratio_printed(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "peer.py"
    script.write_text(
        "import json, sys\nlattice, batch, threads = sys.argv[1:]\nprint('hello')\n"
        "print(json.dumps({'operator': 'wilson_hop', 'dtype': 'float32', 'lattice': lattice, 'batch': int(batch), "
        "'threads': int(threads), 'seconds': 1.0, 'peer': 'slow one'}))\n"
    )
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{lattice}} {{batch}} {{threads}}"
    bench(store, "--lattice", "4x4x4x2", "--seconds", "0.01", "--peer", command, "--json")
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["peer"]["name"], row["peer"]["seconds"]) == ("slow one", 1.0)
    assert row["peer"]["ratio"] == sorted(row["peer"]["ratios"])[1] > 100
    bench(store, "--lattice", "4x4x4x2", "--seconds", "0.01", "--peer", "exit 7", code=2)
    assert "exit code 7" in capsys.readouterr().err


def test_start_up_is_split_into_steps(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lqcd_aot.bench import start_up

    monkeypatch.setattr(start_up, "DEFAULT_LATTICE", (4, 4, 4, 2))
    monkeypatch.setattr(start_up.start_up, "__kwdefaults__", {"repeats": 2})
    found = suite.first_column(Plan(), Origin(None, store), host_for(None), lambda _: None)
    assert tuple(found["steps"]) == start_up.STEPS
    assert all(0 < low <= median <= high for median, low, high in found["steps"].values())
    assert found["converged"] and 0 < found["residual"] <= 1e-10
    steps = {name: spent[1] for name, spent in found["steps"].items()}
    assert found["total"][1] >= sum(steps.values()) - steps["exit"] - 1e-12
    assert found["without_numpy_and_solve"][1] >= sum(steps[name] for name in start_up.OWN) - 1e-12
    assert found["without_numpy_and_solve"][2] < found["total"][2]


def test_artifacts_of_older_templates_are_not_measured(tmp_path: Path) -> None:
    """A store keeps what was built before for the same spec; the rows are of what today's build key names."""
    spec, target = Spec("wilson_hop", "4x4x4x2", "float32"), this_host().best_target()
    assert target is not None
    kept = open_store(tmp_path / "store", create=True)
    keys = {}
    for salt in ("older", "", "other"):
        items = plan([Variant(spec, target, salt=salt)], kept, find_toolchain())
        assert all(result.error is None for result in build(items, kept, find_toolchain()))
        keys[salt] = items[0].build_key
    assert len(set(keys.values())) == 3
    with artifacts([spec], Origin(None, tmp_path / "store"), this_host(), lambda _: None) as bundle:
        assert [entry.build_key for entry in bundle.find(spec)] == [keys[""]]
        assert bundle.select(spec).choice.build_key == keys[""]


def test_a_lower_target_can_be_measured_and_others_are_refused(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    architecture = this_host().architecture
    mine = [name for name, (arch, _, _) in CPU_TARGETS.items() if arch == architecture and this_host().refusal(name) is None]
    foreign = next(name for name, (arch, _, _) in CPU_TARGETS.items() if arch != architecture)
    bench(store, "--lattice", "4x4x4x2", "--seconds", "0.01", "--no-peer", "--target", mine[0], "--json")
    report = json.loads(capsys.readouterr().out)
    assert [r["target"] for r in report["rows"]] == [mine[0]] == [report["roofline"]["target"]]
    for wrong in (foreign, "inf2", "sparc"):
        with pytest.raises(UsageError, match=f"--target {wrong}"):
            host_for(wrong)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--threads", "0"], "is no number of threads"),
        (["--threads", "4096"], "may use fewer CPUs"),
        (["--batch", "x"], "is no number of right-hand sides"),
        (["--compiler", "sim"], "--compiler: applies to --neuron only"),
        (["--neuron", "--threads", "2"], "does not apply to --neuron"),
        (["--compare", "absent.json"], "cannot be read"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_built(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["bench", "--store", "store", "--lattice", "4x4x4x2", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_neuron_without_a_device_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import lqcd_runtime

    monkeypatch.setattr(lqcd_runtime, "devices", list)
    assert run(["bench", "--neuron", "--store", str(tmp_path / "store")]) == 2
    said = capsys.readouterr().err
    assert "there is no NeuronCore to measure" in said
    assert "this machine has no NeuronCore" in said
    assert "--compiler sim" in said


def test_the_simulator_is_timed_only_by_name_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "bench",
        "--neuron",
        "--compiler",
        "sim",
        "--no-fused",
        "--lattice",
        "4x4x4x4",
        "--batch",
        "2",
        "--seconds",
        "0.01",
    ]
    assert run([*arguments, "--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "SIMULATED" in printed and "Multicore" in printed
    found = json.loads((tmp_path / "out" / "neuron.json").read_text())
    assert found["simulated"] and [r["batch"] for r in found["rows"]] == [2]
    for r in found["rows"]:
        assert (r["target"], r["simulated"], r["fused"], r["operator"]) == ("sim", True, False, "wilson")
        assert r["speedup"] == pytest.approx(max(r["neuron"], r["batched"], r["multicore"]) / r["cpu"])
        assert r["gflops"] == pytest.approx(r["multicore"] * 256 * 1320 / 1e9)
        assert r["gbytes_per_s"] == pytest.approx(r["multicore"] * 256 * 2 * 24 * 2 / 1e9)


def test_the_neuron_table_is_that_of_lqcd_neuron() -> None:
    specs = neuron_rows.variants("inf2", neuron_rows.LATTICES[:2], (8, 32), True)
    assert {(s.operator, s.batch) for s in specs if s.kind == "dirac"} == {("wilson", 1), ("wilson", 8), ("wilson", 32)}
    assert all(s.fused and s.dtype == "bfloat16" for s in specs if s.kind == "dirac")
    assert any(s.operator == "wilson_blocks" for s in specs)


def test_make_passes_its_words_on(repo_root: Path) -> None:
    def command(*arguments: str) -> str:
        done = subprocess.run(
            ["make", "-n", "-o", ".venv/.ready", "bench", *arguments], cwd=repo_root, capture_output=True, text=True, check=True
        )
        return " ".join(shlex.split(done.stdout))

    cpu = command("LATTICE=16x16x16x16 8x8x8x8", "BATCH=1,8,32", "THREADS=1,2", "OPERATOR=all", "STORAGE=float32 float16")
    for word in ("--lattice 16x16x16x16 8x8x8x8", "--batch 1,8,32", "--threads 1,2", "--operator all", "--start-up",
                 "--storage float32 --storage float16", "--out artifacts/bench"):  # fmt: skip
        assert word in cpu
    assert "--neuron" not in cpu and "--no-fused" not in cpu
    device = command("LATTICE=16x16x16x16", "BATCH=1,8,32", "NEURON=1", "NO_FUSED=1", "COMPILER=sim")
    for word in ("--lattice 16x16x16x16", "--batch 1,8,32", "--neuron", "--no-fused", "--compiler sim"):
        assert word in device
    assert "--start-up" not in device and "--threads" not in device
