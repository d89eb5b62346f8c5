"""Bundles written by earlier releases open for ever: the files here are never written again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lqcd_runtime.bundle import Bundle, open_bundle
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.fields import plaquette_planes, random_links, random_spinor
from lqcd_runtime.self_check import FAILED, PASSED, selfcheck
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import Host, this_host
from lqcd_runtime.witness_bound import bound_and_scale
from tests.numpy_wilson import dense_wilson

HERE = Path(__file__).parent
LATTICE = (2, 2, 2, 2)
DIGESTS = {"bundle-v1.lqcd": "3e0b7f6d3ab13fbac7dcdc318420225a74db6a97694d410e2c013b4070e5b9d3"}
NAMES = {
    "wilson-2x2x2x2-f64-b1@x86-64-v2",
    "wilson-2x2x2x2-f32-b1-fused@x86-64-v2",
    "wilson_blocks-2x2x2x2-f32@x86-64-v2",
    "plaquette-2x2x2x2-f64@x86-64-v2",
    "plaquette-2x2x2x2-f64@aarch64",
}


@pytest.fixture(params=sorted(DIGESTS))
def bundle(request: pytest.FixtureRequest) -> Bundle:
    path = HERE / str(request.param)
    assert sha256_hex(path.read_bytes()) == DIGESTS[path.name], "a golden file must never change"
    return open_bundle(path)


def test_every_byte_every_name_and_every_lookup(bundle: Bundle) -> None:
    assert bundle.verify() == Path(bundle.path).stat().st_size
    assert {e.name for e in bundle.entries()} == NAMES
    for entry in bundle.entries():
        assert entry.name in {e.name for e in bundle.find(entry.spec)}
        assert len(bundle.read_blob(entry.code["sha256"])) == entry.code["size"]
        assert bundle.record(entry.build_key)["provenance"] == {"compile_ms": 12}
    spec = Spec("plaquette", LATTICE, "float64")
    assert bundle.select(spec, Host("aarch64", ("asimd",))).choice.target == "aarch64"


def test_what_this_machine_can_run_still_computes_its_witness(bundle: Bundle) -> None:
    checks = {c.name: c for c in selfcheck(bundle)}
    runnable = {n for n in NAMES if this_host().refusal(n.partition("@")[2]) is None}
    assert {n for n, c in checks.items() if c.status == PASSED} == runnable
    assert not [c for c in checks.values() if c.status == FAILED]


def test_its_operator_still_means_the_same(bundle: Bundle) -> None:
    if this_host().refusal("x86-64-v2"):
        assert {e.target for e in bundle.entries()} > {"aarch64"}
        return
    links, psi = random_links(LATTICE, 3), random_spinor(LATTICE, 4)
    bound, scale = bound_and_scale("dirac", "wilson", LATTICE, {"mass": 0.3}, "float64")
    D = bundle.operator("wilson", gauge=links, mass=0.3, t_boundary=-1)
    assert np.abs(D(psi) - dense_wilson(psi, links, 4.3)).max() <= bound * scale
    planes = list(bundle.observable("plaquette", LATTICE)(links).values())
    np.testing.assert_allclose(planes, plaquette_planes(links), rtol=0, atol=1e-14)
