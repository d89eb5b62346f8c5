"""Artifacts with one small mistake in their C++ are refused by the witness of the build.

Each mistake is one that an earlier witness let pass: an input that is not read, a sign, one component, work lost between threads.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lqcd_aot.build.check import PASSED, WitnessChecker
from lqcd_aot.build.execute import build
from lqcd_aot.build.job import new_record
from lqcd_aot.build.plan import plan
from lqcd_aot.compilers import find_toolchain
from lqcd_aot.program.cpu import sources
from lqcd_aot.recipe.variant import Variant
from lqcd_aot.store import Store, open_store
from lqcd_runtime.errors import WitnessMismatch
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host

LATTICE = (4, 4, 2, 4)
HOST = this_host().best_target() or "x86-64-v2"
SECONDS = 60.0

SHARED = (8, 8, 8, 8)  # large enough that a sweep wakes a thread
RUN_PART = ("pool.hpp", "count * (part + 1) / parts);")
LAST_ITEM = "count * (part + 1) / parts - (parts > 1 && part == parts - 1));"
RE = "-0.5 * scale[mu] * (last ? phase[2 * mu] : 1.0)"
IM = "-0.5 * scale[mu] * (last ? phase[2 * mu + 1] : 0.0)"
COMPONENT = ("spinors.hpp", "to[k] = v[k][lane];")


def one_component(factor: float, column: int) -> str:
    """The real part of one component at one site of one right-hand side."""
    return f"to[k] = v[k][lane] * real(place[lane] == ({column} * kVolume + 37) * kSpinor && k == 8 ? {factor} : 1.0);"


# name: (spec, file, text, text in its place, what the refusal says)
MUTANTS = {
    "an item lost by the last thread": (Spec("wilson", SHARED), *RUN_PART, LAST_ITEM, "threads give other bits"),
    "the same of a solver": (Spec("wilson_cg", SHARED, "float32"), *RUN_PART, LAST_ITEM, "threads give other bits"),
    "the same of an observable": (Spec("plaquette", SHARED), *RUN_PART, LAST_ITEM, "threads give other bits"),
    "mass not read": (
        Spec("wilson", LATTICE), "epilogue.hpp", "return scalars[kDiagonal];", "return (void)scalars, 4.1;", "exceeds",
    ),
    "csw not read": (
        Spec("clover", LATTICE, "float32"), "epilogue.hpp", "return scalars[kCsw];", "return (void)scalars, 0.5;", "exceeds",
    ),
    "mu not read": (
        Spec("twisted", LATTICE, "float32"), "epilogue.hpp", "return scalars[kTwist];", "return (void)scalars, 0.2;", "exceeds",
    ),
    "anisotropy not read": (Spec("wilson", LATTICE, "float32"), "links.hpp", RE, RE.replace("scale[mu] * ", ""), "exceeds"),
    "a conjugate phase": (Spec("wilson_hop", LATTICE), "links.hpp", IM, IM.replace("phase[", "-phase["), "exceeds"),
    "an imaginary phase lost": (Spec("wilson_schur", LATTICE, "float32"), "links.hpp", IM, f"0 * ({IM})", "exceeds"),
    "a component of one of 12 columns": (
        Spec("wilson", LATTICE, "float32", batch=12), *COMPONENT, one_component(1.001, 7), "exceeds",
    ),
    "a component by 1e-4": (Spec("wilson", LATTICE, "float32"), *COMPONENT, one_component(1.0001, 0), "exceeds"),
    "a component by 1e-4, normal": (
        Spec("clover_normal", LATTICE, "float32"), *COMPONENT, one_component(1.0001, 0), "exceeds",
    ),
    "a third row without its phase": (
        Spec("wilson_schur", LATTICE, "float32", storage="float32_12"), "two_rows.hpp", "im * (3 * re * re - im * im) / size",
        "0 * im", "exceeds",
    ),
    "a third row with the factor of this site for the neighbour's": (
        Spec("wilson_schur_cg", LATTICE, storage="float64_12"), "hop.hpp", "kSplit.local[mu] - 1 : c.at[mu] - 1;",
        "kSplit.local[mu] - 1 : c.at[mu];", "exceeds",
    ),
}  # fmt: skip


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the templates of which programs are made meanwhile."""
    copy = tmp_path / "templates"
    shutil.copytree(sources.TEMPLATES, copy)
    monkeypatch.setattr(sources, "TEMPLATES", copy)
    sources.reachable.cache_clear()
    yield copy
    sources.reachable.cache_clear()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return open_store(tmp_path_factory.mktemp("mutants") / "store", create=True)


@pytest.fixture(scope="module")
def checker(store: Store) -> Iterator[WitnessChecker]:
    made = WitnessChecker(store)
    yield made
    made.close()


def mutate(templates: Path, file: str, text: str, wrong: str) -> None:
    right = (templates / file).read_text(encoding="utf-8")
    assert right.count(text) == 1, f"{file} has changed: choose the place of the mistake anew"
    (templates / file).write_text(right.replace(text, wrong), encoding="utf-8")


def checked(spec: Spec, store: Store, checker: WitnessChecker) -> str:
    (item,) = plan([Variant(spec, HOST)], store, find_toolchain())
    assert item.program is not None
    code = find_toolchain().compile(item.program, HOST, timeout=SECONDS)
    return checker.check(spec, new_record(item, code, compile_ms=1), code, SECONDS).status


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_refused(name: str, templates: Path, store: Store, checker: WitnessChecker) -> None:
    spec, file, text, wrong, says = MUTANTS[name]
    mutate(templates, file, text, wrong)
    with pytest.raises(WitnessMismatch) as caught:
        checked(spec, store, checker)
    assert says in str(caught.value.found)


def test_the_copy_without_a_mistake_passes(templates: Path, store: Store, checker: WitnessChecker) -> None:
    assert templates.name == "templates"
    assert checked(Spec("wilson", LATTICE, "float32", batch=12), store, checker) == PASSED


def test_a_refused_mutant_is_not_published(templates: Path, tmp_path: Path) -> None:
    mutate(templates, *RUN_PART, LAST_ITEM)
    fresh, toolchain = open_store(tmp_path / "store", create=True), find_toolchain()
    (result,) = build(plan([Variant(Spec("stout_smear", LATTICE), HOST)], fresh, toolchain), fresh, toolchain, jobs=1)
    assert (result.outcome, result.failure_class) == ("failed", "witness")
    assert fresh.list_build_keys() == []
