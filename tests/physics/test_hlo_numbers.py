"""Every kind of HLO program through XLA's CPU client, against torch complex128 and the host's solver."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from lqcd_aot.dirac.judge import apply as judge
from lqcd_aot.observables.judge import observe
from lqcd_runtime import split_layout
from lqcd_runtime.fields import random_links, random_spinor
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.solvers.cg import cg
from lqcd_runtime.witness_bound import UNIT, bound_and_scale, observable
from tests.physics.hlo_programs import PHASES, apply, bound, even_part, residents, simulated

pytest.importorskip("jaxlib")

LATTICE, ODD_LATTICE = (4, 4, 2, 6), (4, 3, 5, 3)
INPUTS = {"mass": 0.1, "csw": 0.5, "mu": 0.2}
BETA = {"beta": 6.0}

CASES = [
    ("wilson_hop", "bfloat16", 1, True, 2), ("wilson", "float32", 3, False, 2),
    ("wilson", "float32", 1, True, 1), ("wilson", "bfloat16", 2, False, 1), ("wilson_dagger", "float32", 2, True, 2),
    ("wilson_normal", "float32", 2, True, 2), ("wilson_normal", "bfloat16", 1, False, 2),
    ("clover", "float32", 2, False, 1), ("clover_dagger", "bfloat16", 1, False, 1), ("clover_normal", "float32", 1, False, 2),
    ("twisted", "float32", 1, False, 1), ("twisted_dagger", "float32", 2, False, 2), ("twisted_normal", "bfloat16", 1, False, 1),
    ("wilson_schur", "float32", 2, False, 1), ("wilson_schur_dagger", "bfloat16", 1, False, 1),
    ("wilson_schur_normal", "float32", 1, False, 1), ("clover_schur", "float32", 1, False, 1),
    ("clover_schur_dagger", "float32", 2, False, 1), ("clover_schur_normal", "bfloat16", 1, False, 1),
]  # fmt: skip


def spinors(lattice: tuple[int, ...], batch: int) -> Any:
    return np.stack([random_spinor(lattice, 5, column) for column in range(batch)])  # type: ignore[arg-type]


def taken(operator: str) -> dict[str, float]:
    return {name: INPUTS[name] for name in OPERATORS[operator]["inputs"]}


def test_the_cases_are_all_dirac_operators() -> None:
    assert {case[0] for case in CASES} == {name for name, entry in OPERATORS.items() if entry["kind"] == "dirac"}


@pytest.mark.parametrize(("operator", "dtype", "batch", "fused", "shards"), CASES)
def test_a_dirac_program_agrees_with_complex128(operator: str, dtype: str, batch: int, fused: bool, shards: int) -> None:
    spec = Spec(operator, LATTICE, dtype, batch=batch, fused=fused, shards=shards)
    links, psi = random_links(LATTICE, 3), spinors(LATTICE, batch)
    # Odd sites of an even-odd operator hold noise that must not be read.
    answer = apply(spec, psi, links, {**INPUTS, "diagonal": 4.1})
    even_odd = OPERATORS[operator]["parity"] == "even"
    expected = judge(operator, even_part(psi) if even_odd else psi, links, phases=PHASES, **INPUTS).numpy()
    assert np.abs(answer - expected).max() <= bound(spec, taken(operator))
    # The bound is a worst case; what rounding really does is far smaller, and what a wrong term does is not.
    usual = 64 * UNIT["float32"] if dtype == "float32" else 4 * UNIT["bfloat16"]
    assert np.linalg.norm(answer - expected) <= usual * np.linalg.norm(expected)


def test_odd_extents_anisotropy_and_another_mass_and_gauge_field_through_the_same_program() -> None:
    spec = Spec("wilson", ODD_LATTICE, "float32")
    psi, ratio = spinors(ODD_LATTICE, 1), 0.95 / 2.464
    for mass, seed in ((0.1, 3), (0.7, 8)):
        links = random_links(ODD_LATTICE, seed)
        inputs = {"diagonal": mass + 1 + 3 * ratio}
        answer = apply(spec, psi, links, inputs, scales=(1.0, ratio, ratio, ratio))
        expected = judge("wilson", psi, links, phases=PHASES, mass=mass, anisotropy=(2.464, 0.95)).numpy()
        assert np.abs(answer - expected).max() <= bound(spec, {"mass": mass})


def test_bfloat16_rounds_fields_and_nothing_between() -> None:
    """With inputs that bfloat16 holds, only the result is rounded: |error| <= 2^-8 |result| + K 2^-24 S."""
    spec = Spec("wilson_normal", LATTICE, "bfloat16", shards=2)

    def rounded(field: Any) -> Any:
        parts = torch.view_as_real(torch.from_numpy(field)).to(torch.bfloat16).double()
        return torch.view_as_complex(parts.contiguous()).numpy()

    links, psi = rounded(random_links(LATTICE, 3)), rounded(spinors(LATTICE, 1))
    phases = (-1.0, 1.0, 1.0, 1.0)
    answer = apply(spec, psi, links, {"diagonal": 4.125}, phases=phases)
    expected = judge("wilson_normal", psi, links, phases=phases, mass=0.125).numpy()
    # Rounded links are longer than 1 by less than 2^-8 each.
    single = bound(spec.replace(dtype="float32"), {"mass": 0.125}) * 1.05
    for part in ("real", "imag"):
        error, size = np.abs(getattr(answer - expected, part)), np.abs(getattr(expected, part))
        assert (error <= UNIT["bfloat16"] * (size + single) + single).all()


def test_a_sharded_program_gives_the_bits_of_the_whole_one() -> None:
    links = random_links(LATTICE, 3)
    for operator, batch in (("wilson", 3), ("clover_normal", 1)):
        whole, cut = (Spec(operator, LATTICE, "float32", batch=batch, shards=n) for n in (1, 2))
        inputs, psi = {**INPUTS, "diagonal": 4.1}, spinors(LATTICE, batch)
        np.testing.assert_array_equal(apply(whole, psi, links, inputs), apply(cut, psi, links, inputs))


# Roundings of links to bfloat16 on a path: loops of n links n; tr FF two leaves of four; the deficit squares two products of two.
LINK_ROUNDINGS = {"plaquette": 4, "wilson_action": 8, "polyakov_loop": 6, "topological_charge": 8, "energy_density": 8}


# The two share the text of the field strength, which takes XLA longest to compile.
OBSERVED = {"topological_charge": ((LATTICE, "bfloat16"),), "energy_density": ((ODD_LATTICE, "float32"),)}


@pytest.mark.parametrize("operator", [name for name, entry in OPERATORS.items() if entry["kind"] == "observable"])
def test_an_observable_agrees_with_complex128(operator: str) -> None:
    inputs = {name: BETA[name] for name in OPERATORS[operator]["inputs"]}
    for lattice, dtype in OBSERVED.get(operator, ((LATTICE, "float32"), (LATTICE, "bfloat16"), (ODD_LATTICE, "float32"))):
        spec, links = Spec(operator, lattice, dtype), random_links(lattice, 3)
        results = simulated(spec).run(split_layout.pack_links(spec, links))
        values = split_layout.finish(spec, results, inputs)
        assert tuple(values) == OPERATORS[operator]["results"]
        path, scale = observable(operator, lattice, inputs)
        # The device adds a Y,X plane (or an axis) in float32 before the host takes over.
        allowed = (path + lattice[2] * lattice[3]) * UNIT["float32"]
        allowed += LINK_ROUNDINGS[operator] * UNIT["bfloat16"] * (dtype == "bfloat16")
        assert np.abs(np.array(list(values.values())) - observe(operator, links, **inputs)).max() <= allowed * scale


def test_a_cold_field_has_no_action_and_no_charge() -> None:
    for operator, lattice, dtype in (
        ("wilson_action", LATTICE, "float32"), ("topological_charge", LATTICE, "bfloat16"),
        ("energy_density", ODD_LATTICE, "float32"),
    ):  # fmt: skip
        spec, cold = Spec(operator, lattice, dtype), np.broadcast_to(np.eye(3, dtype=complex), (*lattice, 4, 3, 3))
        values = split_layout.finish(spec, simulated(spec).run(split_layout.pack_links(spec, cold)), BETA)
        assert list(values.values()) == [0.0]


MASS, ITERATIONS = 4.0, 2
CHUNKS = [
    ("wilson_cg_chunk", "float32", False), ("wilson_cg_chunk", "bfloat16", True), ("wilson_schur_cg_chunk", "float32", False),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "dtype", "fused"), CHUNKS)
def test_a_chunk_reaches_the_iterates_of_the_host_loop(operator: str, dtype: str, fused: bool) -> None:
    """Two calls of a chunk against solvers.cg in complex128; the second column is told to stop after its first step."""
    spec = Spec(operator, LATTICE, dtype, batch=2, fused=fused, iterations=ITERATIONS)
    links, b = random_links(LATTICE, 3), spinors(LATTICE, 2)
    even_odd = OPERATORS[operator]["parity"] == "even"
    b = even_part(b) if even_odd else b
    normal = OPERATORS[operator]["solves"]

    def iterate(steps: int, column: int) -> Any:
        def operate(v: Any) -> Any:
            return judge(normal, v, links, phases=PHASES, mass=MASS).numpy()

        return cg(operate, b[column : column + 1], tol=1e-14, max_iterations=steps)[0][0]

    norms = np.sum(np.abs(b) ** 2, axis=(1, 2, 3, 4, 5, 6))
    first = iterate(1, 1)
    rest = b[1] - judge(normal, first[None], links, phases=PHASES, mass=MASS).numpy()[0]
    stop = np.array([0.0, math.sqrt(float(np.sum(np.abs(rest) ** 2)) * norms[1])])  # between |b|^2 and the first |r|^2
    start = split_layout.pack_spinor(spec, b, dtype="float32")
    state = {"x": np.zeros_like(start), "r": start, "p": start, "rr": norms.astype(np.float32)}
    (held,) = residents(spec, links, {"diagonal": 4 + MASS}, PHASES, (1.0,) * 4)
    given = {**held, **split_layout.scalars(spec, {"diagonal": 4 + MASS}), "stop": stop.astype(np.float32)}
    counts = np.zeros(2)
    for _ in range(2):
        results = simulated(spec).run({**state, **given})
        counts += results.pop("steps")
        state = results
    assert list(counts) == [2 * ITERATIONS, 1]
    x = np.full_like(b, np.nan)
    split_layout.unpack_spinor(spec, state["x"], x, dtype="float32")
    expected = np.stack([iterate(2 * ITERATIONS, 0), first])
    relative, scale = bound_and_scale("chunk", operator, LATTICE, {"mass": MASS}, dtype, 2 * ITERATIONS)
    assert np.abs(x - expected).max() <= relative * scale
    assert np.linalg.norm(x - expected) <= (1e-5 if dtype == "float32" else 4 * UNIT["bfloat16"]) * np.linalg.norm(expected)
    # The frozen column stands still as a whole: its residual is that of its only step.
    assert state["rr"][1] == pytest.approx(float(np.sum(np.abs(rest) ** 2)), rel=1e-4 if dtype == "float32" else 0.05)


def test_a_column_without_curvature_stands_still() -> None:
    """r = p = 0 below and NaN above: neither moves, and neither disturbs its neighbour."""
    spec = Spec("wilson_cg_chunk", LATTICE, "float32", batch=2, iterations=ITERATIONS)
    links, b = random_links(LATTICE, 3), spinors(LATTICE, 2)
    start = split_layout.pack_spinor(spec, b, dtype="float32")
    start[:, :, :, 1] = 0.0
    state = {"x": np.zeros_like(start), "r": start, "p": start, "rr": np.array([np.sum(start**2), np.nan], np.float32)}
    (held,) = residents(spec, links, {"diagonal": 4.1}, PHASES, (1.0,) * 4)
    given = {**held, **split_layout.scalars(spec, {"diagonal": 4.1}), "stop": np.zeros(2, np.float32)}
    results = simulated(spec).run({**state, **given})
    assert list(results["steps"]) == [ITERATIONS, 0]
    assert not results["x"][:, :, :, 1].any()
    assert np.isfinite(results["x"]).all()
