"""What a caller may pass for a number, an array or an inner operator: near misses are refused by name, never read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import lqcd_runtime as lqcd
from lqcd_aot.dirac.options import resolve_anisotropy, resolve_mass, resolve_phases
from lqcd_runtime.bundle import Bundle, open_bundle
from lqcd_runtime.errors import LqcdError, SolveError, UsageError
from lqcd_runtime.geometry import parse_extents
from lqcd_runtime.inputs import resolve
from lqcd_runtime.observables.correlators import gamma_structure
from lqcd_runtime.scalars import limits, number, real, whole
from lqcd_runtime.signature import Spec
from lqcd_runtime.solvers.inner import check_inner
from lqcd_runtime.sources import noise_source, point_source, wall_source
from lqcd_runtime.target import this_host
from tests.made import bundle_bytes, record
from tests.tiny import compile_tiny

LATTICE = (2, 2, 2, 3)
LINKS = np.full((*LATTICE, 4, 3, 3), 0.5 + 0.25j)
NO_NUMBERS = ["0.1", b"1", True, False, np.True_, None, 1 + 0j, np.complex128(1), [0.1], np.array([0.1]), np.array([1, 2]),
              object(), float("nan"), np.float32("inf"), torch.tensor(True), torch.tensor([0.1])]  # fmt: skip


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda v: type(v).__name__)
def test_what_is_no_number_is_taken_for_none(value: Any) -> None:
    with pytest.raises(UsageError, match=r"x: is not a finite number"):
        real(value, "x")
    with pytest.raises(UsageError, match=r"x: is not a whole number of at least 1"):
        whole(value, "x", 1)


@pytest.mark.parametrize("value", [2, 2.0, np.int8(2), np.float32(2), np.array(2.0), torch.tensor(2.0), torch.tensor(2)])
def test_numbers_of_every_library_are_numbers(value: Any) -> None:
    assert real(value, "x") == 2.0 and type(real(value, "x")) is float and number(value, "x") == 2.0
    integer = isinstance(value, (int, np.integer)) or "int" in str(getattr(value, "dtype", ""))
    if integer:
        assert whole(value, "x") == 2 and type(whole(value, "x")) is int
    else:
        with pytest.raises(UsageError, match="not a whole number"):
            whole(value, "x")


@pytest.mark.parametrize("value", ["0.1", True, None, [0.1], 1 + 0j, np.array([0.1])], ids=repr)
@pytest.mark.parametrize("name", ["mass", "kappa", "csw", "mu", "xi0", "nu", "beta"])
def test_inputs(name: str, value: Any) -> None:
    if value is None and name in ("mass", "kappa", "csw", "mu", "beta"):
        return  # the spelling of "not given"
    calls = {
        "mass": [lambda: resolve("wilson", mass=value), lambda: resolve_mass(value, None)],
        "kappa": [lambda: resolve("wilson", kappa=value), lambda: resolve_mass(None, value)],
        "csw": [lambda: resolve("clover", mass=0.1, csw=value)],
        "mu": [lambda: resolve("twisted", mass=0.1, mu=value)],
        "xi0": [lambda: resolve("wilson", mass=0.1, anisotropy=(value, 1.0)), lambda: resolve_anisotropy((value, 1.0))],
        "nu": [lambda: resolve("wilson", mass=0.1, anisotropy=(2.0, value)), lambda: resolve_anisotropy((2.0, value))],
        "beta": [lambda: lqcd.observe(None, LINKS, "wilson_action", beta=value)],
    }
    for call in calls[name]:
        with pytest.raises(UsageError, match=name):
            call()


@pytest.mark.parametrize("value", [True, "-1", "1", 1j, 0, None, [1], 1.5], ids=repr)
def test_t_boundary(value: Any) -> None:
    for call in (lambda: resolve("wilson", mass=0.1, t_boundary=value), lambda: resolve_phases(value)):
        with pytest.raises(UsageError, match="t_boundary"):
            call()
    assert resolve("wilson", mass=0.1, t_boundary=np.int64(-1)).phases[0] == -1  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1, "1111", ["1", 1, 1, 1], [True, 1, 1, 1], [1, 1, 1], [1, 1, 1, 2], [None] * 4], ids=repr)
def test_phases(value: Any) -> None:
    for call in (lambda: resolve("wilson", mass=0.1, phases=value), lambda: resolve_phases(1, value)):
        with pytest.raises(UsageError, match="phases"):
            call()


@pytest.mark.parametrize("value", ["24", True, [True, 1.0], {"xi0": "2"}, {"nu": 1.0}, {"xi0": 2.0, "nx": 1.0}, (1, 2, 3)])
def test_anisotropy(value: Any) -> None:
    for call in (lambda: resolve("wilson", mass=0.1, anisotropy=value), lambda: resolve_anisotropy(value)):
        with pytest.raises(UsageError, match=r"anisotropy|xi0"):
            call()
    assert resolve("wilson", mass=0.1, anisotropy=np.float32(2)).xi0 == 2.0


@pytest.mark.parametrize("field", ["batch", "shards", "nc", "iterations"])
@pytest.mark.parametrize("value", ["4", 2.5, 2.0, True, None, np.float64(1)], ids=repr)
def test_whole_numbers_of_a_spec(field: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{field}: is not a whole number"):
        Spec("wilson", LATTICE, **{field: value})
    assert Spec("wilson", LATTICE, batch=np.int64(4)) == Spec("wilson", LATTICE, batch=4)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["false", 0, 1, None])
def test_fused_is_true_or_false(value: Any) -> None:
    with pytest.raises(UsageError, match="fused: is neither"):
        Spec("wilson", LATTICE, fused=value)


@pytest.mark.parametrize("value", ["4x4x4x4.0", "4x4x4x-4", "4x4x4x 4", "4x4x4x٤", [4, 4, 4, 4.7], [4.0] * 4, ["4"] * 4,
                                   [True] * 4, 4, None], ids=repr)  # fmt: skip
def test_extents(value: Any) -> None:
    with pytest.raises(UsageError, match="is not four extents"):
        parse_extents(value)
    assert parse_extents(np.array([4, 2, 2, 2])) == (4, 2, 2, 2)


@pytest.mark.parametrize("value", [["0", 0, 0, 0], [0.5, 0, 0, 0], [True, 0, 0, 0], [-1, 0, 0, 0], 5, None, [0, 0, 0]], ids=repr)
def test_positions(value: Any) -> None:
    with pytest.raises(UsageError, match="point source"):
        point_source(value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: wall_source("1"), lambda: wall_source(1.5), lambda: wall_source(True), lambda: noise_source(seed="1"),  # type: ignore[arg-type]
        lambda: noise_source(seed=1.5), lambda: noise_source(stream=True), lambda: point_source((0, 0, 0, 0), spin=True),  # type: ignore[arg-type]
        lambda: gamma_structure(15.7), lambda: gamma_structure(True),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_quark_sources_and_mesons(call: Any) -> None:
    with pytest.raises(UsageError):
        call()


@pytest.mark.parametrize(
    ("tol", "most", "error"),
    [("1e-8", 10, UsageError), (True, 10, UsageError), (None, 10, UsageError), (1e-8, 10.5, UsageError), (1e-8, "10", UsageError),
     (1e-8, True, UsageError), (1.0, 10, SolveError), (0.0, 10, SolveError), (float("nan"), 10, SolveError),
     (1e-8, -1, SolveError)],
)  # fmt: skip
def test_limits_of_a_solve(tol: Any, most: Any, error: type[LqcdError]) -> None:
    with pytest.raises(error, match=r"tol|max_iterations"):
        limits(tol, most)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("arguments")
    target = this_host().best_target()
    assert target is not None
    wilson = Spec("wilson", LATTICE, "float64")
    words = ("wilson", "wilson_dagger", "twisted")
    specs = [wilson.replace(operator=word, dtype=dtype) for word in words for dtype in ("float32", "float64")]
    codes = {s: compile_tiny(folder, s) for s in specs}
    (folder / "x.lqcd").write_bytes(bundle_bytes([record(s, target, c) for s, c in codes.items()], codes.values()))
    return open_bundle(folder / "x.lqcd")


@pytest.mark.parametrize("value", ["2", 1.0, True, 0, -1], ids=repr)
def test_threads(bundle: Bundle, value: Any) -> None:
    with pytest.raises(UsageError, match="threads"):
        bundle.operator("wilson", gauge=LINKS, mass=0.1, threads=value)


def test_nested_lists_are_told_what_to_become(bundle: Bundle) -> None:
    D = bundle.operator("wilson", gauge=LINKS, mass=0.1)
    psi = np.zeros((*LATTICE, 4, 3), complex)
    for call in (
        lambda: D(psi.tolist()), lambda: D.apply_into(psi.tolist(), psi), lambda: lqcd.solve(D, psi.tolist()),
        lambda: bundle.operator("wilson", gauge=LINKS.tolist(), mass=0.1),
    ):  # fmt: skip
        with pytest.raises(UsageError, match="is no array") as caught:
            call()
        assert "found:    list" in str(caught.value) and "numpy.asarray" in str(caught.value)


def test_an_inner_operator_is_the_outer_one(bundle: Bundle) -> None:
    D = bundle.operator("wilson", gauge=LINKS, mass=0.1, t_boundary=-1)

    def inner(word: str = "wilson", gauge: Any = LINKS, **inputs: Any) -> Any:
        return bundle.operator(word, gauge=gauge, dtype="float32", **{"mass": 0.1, "t_boundary": -1, **inputs})

    wrong = [
        (inner(mass=0.2), "has other inputs", "mass=0.1"),
        (inner(t_boundary=1), "has other inputs", "phases="),
        (inner(anisotropy=2.0), "has other inputs", "xi0=1.0"),
        (inner("twisted", mu=0.0), "is another operator", "expected: wilson"),
        (inner("wilson_dagger"), "is another operator", "found:    wilson_dagger"),
        (inner(gauge=1j * LINKS), "over another gauge field", "gauge=D.gauge"),
    ]
    b = np.ones((*LATTICE, 4, 3), complex)
    for operator, fact, detail in wrong:
        with pytest.raises(UsageError, match=fact) as caught:
            lqcd.solve(D, b, inner=operator, max_iterations=3)
        assert detail in str(caught.value)
    # Another spelling of the same inputs, and links that were rounded by the caller, are the same operator.
    assert 1 / (2 * (1 / 8.2)) - 4 != 0.1
    check_inner(D, inner(gauge=LINKS.astype(np.complex64), mass=1 / (2 * (1 / 8.2)) - 4))


def test_an_operator_of_the_callers_own_is_judged_by_its_lattice(bundle: Bundle) -> None:
    class Own:
        lattice, dtype = LATTICE, "float32"

    D = bundle.operator("wilson", gauge=LINKS, mass=0.1)
    own: Any = Own()
    check_inner(D, own)
    own.lattice = (2, 2, 2, 2)
    with pytest.raises(UsageError, match="another lattice"):
        check_inner(D, own)
