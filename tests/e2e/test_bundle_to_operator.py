"""From a spec to numbers in a fresh process with a bundle and numpy: no torch, no build side, no compiler, no child process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lqcd_runtime.bundle import open_bundle
from lqcd_runtime.fields import plaquette_planes, random_links, random_spinor
from lqcd_runtime.witness_bound import bound_and_scale
from tests.e2e.artifacts import LATTICE, SPECS, build
from tests.numpy_wilson import dense_wilson

ALONE = """
import gc, json, os, sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "lqcd_aot", "ziglang", "click", "pydantic"):
            raise ImportError(f"{name} must not be needed here")

sys.meta_path.insert(0, Forbidden())

def audit(name, args):
    if name in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork"):
        raise RuntimeError(f"a child process: {name}")

sys.addaudithook(audit)
import lqcd_runtime as lqcd
import numpy as np
from lqcd_runtime.fields import random_links, random_spinor

path, lattice, out = sys.argv[1], tuple(map(int, sys.argv[2].split(","))), sys.argv[3]
links = random_links(lattice, 5)
psi = np.stack([random_spinor(lattice, 6, c) for c in range(5)])
bundle = lqcd.open(path)
common = dict(gauge=links, kappa=0.14, t_boundary=-1)
D = bundle.operator("wilson", batch=2, threads=2, **common)
single = dict(dtype="float32", batch=3, mass=0.3, gauge=links)
fused = bundle.operator("wilson", batch=2, fused=True, phases=(1, 1j, 1, -1), anisotropy=(2.0, 0.9), gauge=links, mass=0.2)
turned = bundle.operator("wilson", batch=2, phases=(1, 1j, 1, -1), anisotropy=(2.0, 0.9), gauge=links, mass=0.2)
clover = bundle.operator("clover", gauge=links, mass=0.1, csw=0.7)
results = dict(
    wilson=D(psi), dagger=D.dagger(psi), normal=D.normal(psi), fused=fused(psi), turned=turned(psi),
    one_thread=bundle.operator("wilson", batch=2, threads=1, **common)(psi),
    whole=bundle.operator("wilson", **single)(psi.astype(np.complex64)),
    slabs=bundle.operator("wilson", shards=2, **single)(psi.astype(np.complex64)),
    clover=clover(psi[0]), clover_again=clover.with_inputs(csw=1.4).with_inputs(csw=0.7)(psi[0]),
    clover_other=clover.with_inputs(csw=1.4)(psi[0]),
    plaquette=list(bundle.observable("plaquette", lattice)(links).values()),
    action=list(bundle.observable("wilson_action", lattice)(links, beta=6.0).values()),
    stout=bundle.gauge_map("stout_smear", lattice)(links, rho=0.1),
)
note, via = D.normal.note, D.artifact.via
np.savez(out, **results)

def left():
    gc.collect()
    with open("/proc/self/maps") as f:
        return len(os.listdir("/proc/self/fd")), len(f.readlines())

del D, fused, turned, clover
before = left()
for i in range(500):
    bundle.operator("wilson", batch=2, threads=1 + i % 2, **common)(psi[:2])
after = left()
checks = [c.status for c in lqcd.selfcheck(bundle)]
print(json.dumps(dict(before=before, after=after, checks=checks, note=note, via=via, size=bundle.verify(),
                      modules=sorted({m.partition(".")[0] for m in sys.modules}))))
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("e2e"))


@pytest.fixture(scope="module")
def alone(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """(report, results) of the fresh process. Its temporary folder is its own, so that anything left there is seen."""
    folder = path.parent / "alone"
    folder.mkdir()
    out = path.parent / "results.npz"
    run = subprocess.run(
        [sys.executable, "-I", "-c", ALONE, str(path), ",".join(map(str, LATTICE)), str(out)],
        env={"PATH": "", "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert list(folder.iterdir()) == []
    with np.load(out) as data:
        return json.loads(run.stdout), dict(data)


def accept(found: Any, expected: Any, spec: Any, inputs: dict[str, float]) -> None:
    """Componentwise, by the bound that witness_bound derives."""
    bound, scale = bound_and_scale(spec.kind, spec.operator, LATTICE, inputs, spec.dtype)
    assert np.abs(found - expected).max() <= bound * scale
    assert np.abs(expected).max() > 1


@pytest.fixture(scope="module")
def fields() -> tuple[Any, Any]:
    return random_links(LATTICE, 5), np.stack([random_spinor(LATTICE, 6, c) for c in range(5)])


def test_operators_agree_with_the_formula(alone: Any, fields: Any) -> None:
    _, got = alone
    links, psi = fields
    diagonal = 1 / (2 * 0.14)
    m = [dense_wilson(p, links, diagonal) for p in psi]
    inputs = {"mass": diagonal - 4}
    accept(got["wilson"], m, SPECS[0], inputs)
    accept(got["dagger"], [dense_wilson(p, links, diagonal, dagger=True) for p in psi], SPECS[1], inputs)
    accept(got["normal"], [dense_wilson(p, links, diagonal, dagger=True) for p in m], SPECS[2], inputs)
    single = [dense_wilson(p, links, 4.3, (1, 1, 1, 1)) for p in psi]
    accept(got["whole"], single, SPECS[5], {"mass": 0.3})


def test_phases_and_anisotropy_fused_and_not(alone: Any, fields: Any) -> None:
    _, got = alone
    links, psi = fields
    expected = [dense_wilson(p, links, 0.2 + 1 + 3 * 0.45, (1, 1j, 1, -1), 0.45) for p in psi]
    accept(got["turned"], expected, SPECS[0], {"mass": 0.2})
    accept(got["fused"], expected, SPECS[3], {"mass": 0.2})


def test_same_bits_for_any_thread_count_and_any_number_of_slabs(alone: Any) -> None:
    _, got = alone
    assert np.array_equal(got["wilson"], got["one_thread"])
    assert np.array_equal(got["whole"], got["slabs"])


def test_clover_is_packed_again_when_csw_changes(alone: Any, fields: Any) -> None:
    """The clover term is linear in csw, so (M(1.4) - M(0.7)) / 0.7 = (M(0.7) - M_wilson) / 0.7."""
    _, got = alone
    links, psi = fields
    wilson = dense_wilson(psi[0], links, 4.1, (1, 1, 1, 1))
    assert np.array_equal(got["clover"], got["clover_again"])
    first, second = got["clover"] - wilson, got["clover_other"] - got["clover"]
    bound, scale = bound_and_scale("dirac", "clover", LATTICE, {"mass": 0.1, "csw": 1.4}, "float64")
    assert np.abs(first).max() > 0.1
    assert np.abs(first - second).max() <= 3 * bound * scale


def test_observables_and_maps(alone: Any, fields: Any) -> None:
    _, got = alone
    links, _ = fields
    planes = plaquette_planes(links)
    sites = np.prod(LATTICE)
    np.testing.assert_allclose(got["plaquette"], planes, rtol=0, atol=1e-13)
    np.testing.assert_allclose(got["action"], 6.0 * sites * np.sum(1 - planes), rtol=1e-13)
    unit = got["stout"] @ got["stout"].conj().swapaxes(-1, -2)
    assert np.abs(unit - np.eye(3)).max() < 1e-13
    assert np.all(plaquette_planes(got["stout"]) > planes)


def test_nothing_is_left_behind_and_nothing_foreign_is_loaded(alone: Any, path: Path) -> None:
    report, _ = alone
    assert report["via"] == "memfd" and report["note"] == ""
    assert report["before"][0] == report["after"][0]
    assert report["after"][1] <= report["before"][1] + 20
    assert report["checks"] == ["passed"] * len(SPECS)
    assert report["size"] == path.stat().st_size
    assert not {"torch", "lqcd_aot", "ziglang", "scipy", "subprocess"} & set(report["modules"])


def test_the_command_line_alone(path: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "-m", "lqcd_runtime", *arguments],
            env={"PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )

    listed = json.loads(run(str(path), "list", "--json").stdout)["entries"]
    assert {e["name"].partition("@")[0] for e in listed} == {s.name for s in SPECS} and all(e["refusal"] is None for e in listed)
    checked = run(str(path), "selfcheck", "--json")
    assert checked.returncode == 0 and json.loads(checked.stdout)["passed"] == len(SPECS)
    verified = f"bundle {path}: every one of {path.stat().st_size} bytes verified\nnobody has signed it\n"
    assert run(str(path), "verify").stdout == verified


def test_a_wrong_witness_fails_the_check_with_its_own_exit_code(path: Path, tmp_path: Path) -> None:
    """The artifact is right here and the witness wrong: the two disagree, which is all that a machine can see."""
    from lqcd_runtime.witness import Witness
    from tests.made import bundle_bytes, record

    with open_bundle(path) as bundle:
        entry = next(e for e in bundle.entries() if e.spec == SPECS[0])
        code = bundle.read_blob(entry.code["sha256"])
        assert entry.witness is not None
        witness = Witness.from_dict(entry.witness, entry.spec)
    witness.rows[1, 20] += 1e-9
    broken = tmp_path / "broken.lqcd"
    broken.write_bytes(bundle_bytes([record(entry.spec, entry.target, code, witness.as_dict())], [code]))
    run = subprocess.run(
        [sys.executable, "-I", "-m", "lqcd_runtime", str(broken), "selfcheck"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 21 and "failed  wilson" in run.stdout and "exceeds" in run.stdout
    assert "Traceback" not in run.stderr and "hint" in run.stderr
