"""Which specs have an HLO program, its binding, and the cache that spares torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lqcd_aot.program import HloProgram, program_for
from lqcd_aot.program.hlo import cache, variant
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.split_binding import binding, halo

LATTICE = (8, 4, 2, 6)
REFUSED = [
    (Spec("wilson", LATTICE, "float64"), "no double precision"),
    (Spec("wilson", LATTICE, "float32", nc=2), "three colours"),
    (Spec("wilson", LATTICE, "bfloat16", storage="float32"), "stored in the dtype"),
    (Spec("wilson", LATTICE, "float32", baked={"mass": 0.1}), "scalars are parameters"),
    (Spec("wilson", LATTICE, "float32", batch=513), "batch"),
    (Spec("wilson", LATTICE, "float32", batch=0), "batch"),
    (Spec("plaquette", LATTICE, "float32", batch=2), "batch"),
    (Spec("wilson", LATTICE, "float32", shards=3), "divide T"),
    (Spec("clover", LATTICE, "float32", fused=True), "no fused blocks"),
    (Spec("wilson_schur_cg_chunk", LATTICE, "float32", fused=True, iterations=2), "no fused blocks"),
    (Spec("wilson_schur", LATTICE, "float32", shards=2), "not cut into slabs"),
    (Spec("plaquette", LATTICE, "float32", shards=2), "not cut into slabs"),
    (Spec("wilson_cg_chunk", LATTICE, "float32", shards=2, iterations=2), "not cut into slabs"),
    (Spec("wilson_cg_chunk", LATTICE, "float32", iterations=257), "unrolled"),
    (Spec("wilson_schur", (8, 4, 3, 6), "float32"), "even extents"),
    (Spec("stout_smear", LATTICE, "float32"), "matrix exponential"),
    (Spec("wilson_flow_step", LATTICE, "float32"), "matrix exponential"),
    (Spec("wilson_cg", LATTICE, "float32"), "chunk of iterations"),
]


@pytest.mark.parametrize(("spec", "reason"), REFUSED, ids=lambda v: v.name if isinstance(v, Spec) else str(v))
def test_what_cannot_be_expressed_is_refused_with_the_reason(spec: Spec, reason: str) -> None:
    for target in ("inf2", "sim"):
        with pytest.raises(UsageError) as error:
            program_for(spec, target)
        assert reason in str(error.value)
        assert spec.name in error.value.fact
        assert error.value.expected is not None
        assert error.value.found is not None


def test_a_cpu_target_has_no_hlo_program() -> None:
    with pytest.raises(UsageError, match="takes no HLO program"):
        variant.program_for(Spec("wilson", LATTICE, "float32"), "x86-64-v3")


def test_the_binding_is_json_numbered_and_names_each_role() -> None:
    for operator, entry in OPERATORS.items():
        if entry["kind"] in ("gauge_map", "solver"):
            continue
        spec = Spec(operator, LATTICE, "bfloat16", iterations=2 * (entry["kind"] == "chunk"))
        bound = binding(spec)
        assert json.loads(json.dumps(bound)) == bound
        assert [p["number"] for p in bound["parameters"]] == list(range(len(bound["parameters"])))
        assert {p["role"] for p in bound["parameters"]} <= {"input", "resident", "scalar", "state"}
        assert {r["role"] for r in bound["results"]} <= {"output", "partial", "state"}
        assert all(p["dtype"] == "float32" for p in bound["parameters"] if p["role"] in ("scalar", "state"))
        for result, parameter in bound["aliases"]:
            assert bound["results"][result]["name"] == bound["parameters"][parameter]["name"]
    assert binding(Spec("wilson_cg_chunk", LATTICE, "float32", iterations=2))["aliases"] == [[0, 0], [1, 1], [2, 2], [3, 3]]


def test_one_program_serves_all_slabs_and_its_halo_grows_with_the_applications() -> None:
    def extents(spec: Spec) -> dict[str, int]:
        axis = {"psi": 4, "links": 4, "clover": 5, "out": 4}
        fields = [*binding(spec)["parameters"], *binding(spec)["results"]]
        return {f["name"]: f["shape"][axis[f["name"]]] for f in fields if f["name"] in axis}

    once, twice = (Spec(f"clover{form}", LATTICE, "float32", shards=4) for form in ("", "_normal"))
    assert (halo(once), halo(twice)) == (1, 2)
    assert extents(once) == {"psi": 4, "links": 3, "clover": 2, "out": 2}
    assert extents(twice) == {"psi": 6, "links": 5, "clover": 4, "out": 2}
    assert extents(once.replace(shards=1)) == {"psi": 8, "links": 8, "clover": 8, "out": 8}


TORCHLESS = (
    "import sys\n"
    "from lqcd_aot.program import program_for\n"
    "from lqcd_runtime.signature import Spec\n"
    "program = program_for(Spec('wilson_hop', (4, 2, 2, 2), 'float32'), sys.argv[1])\n"
    "print(program.digest, 'torch' in sys.modules, any(m.startswith('google.protobuf') for m in sys.modules))"
)


def planned(folder: Path, target: str = "trn2") -> list[str]:
    root = Path(__file__).resolve().parents[2]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LQCD_AOT_CACHE": str(folder / "cache")}
    env["PYTHONPATH"] = os.pathsep.join([str(root), str(root / "runtime")])
    command = [sys.executable, "-W", "ignore", "-c", TORCHLESS, target]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True).stdout.split()


def test_a_second_process_needs_neither_torch_nor_protobuf(tmp_path: Path) -> None:
    first, second = planned(tmp_path), planned(tmp_path, "sim")
    assert first[1:] == ["True", "True"]
    assert second == [first[0], "False", "False"]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LQCD_AOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(variant, "_lowered", {})
    return tmp_path / "cache"


SMALL = Spec("wilson_hop", (4, 2, 2, 2), "float32", fused=True)


def test_the_cache_heals_what_is_damaged(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hlo = variant.lowered(SMALL)
    (file,) = (own_cache / "hlo").iterdir()
    assert file.name == cache.pre_key(SMALL)
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:40] + b"x" + whole[41:], b"\0" * len(whole)):
        file.write_bytes(damaged)
        assert cache.load(SMALL) is None
        monkeypatch.setattr(variant, "_lowered", {})
        assert variant.lowered(SMALL) == hlo
        assert file.read_bytes() == whole
    assert [f.name for f in (own_cache / "hlo").iterdir()] == [file.name], "no private file is left behind"


def test_an_unwritable_cache_costs_time_only(own_cache: Path, tmp_path: Path) -> None:
    own_cache.write_text("a file where the folder should be")
    assert variant.lowered(SMALL)
    assert [f.name for f in tmp_path.iterdir()] == ["cache"]


def test_the_pre_key_names_everything_that_decides_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    base = cache.pre_key(SMALL)
    assert cache.pre_key(SMALL.replace(batch=2)) != base
    for package in ("torch", "protobuf"):
        with monkeypatch.context() as patch:
            real = cache.version
            patch.setattr(cache, "version", lambda name, package=package, real=real: "9" if name == package else real(name))
            cache.lowering_digest.cache_clear()
            assert cache.pre_key(SMALL) != base
    cache.lowering_digest.cache_clear()
    assert cache.pre_key(SMALL) == base


def test_the_cpu_side_never_sees_it() -> None:
    code = (
        "import sys\n"
        "from lqcd_aot.program import program_for\n"
        "from lqcd_runtime.signature import Spec\n"
        "for b in range(1, 40): program_for(Spec('wilson', (8, 4, 4, 4), batch=b), 'x86-64-v3').digest\n"
        "print([m for m in sys.modules if 'torch' in m or 'protobuf' in m or 'program.hlo' in m])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_hlo_programs_are_of_their_own_kind() -> None:
    program = program_for(Spec("wilson_hop", LATTICE, "float32"), "sim")
    assert isinstance(program, HloProgram)
    assert program.estimate("trn1").target == "trn1"
