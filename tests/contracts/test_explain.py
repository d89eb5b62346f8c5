"""Every miss is explained: twelve seeded misses in one field each, in a bundle of ten thousand; one text everywhere; diff."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

import lqcd_runtime
from lqcd_aot.build.explain import transition
from lqcd_aot.cli import run
from lqcd_aot.ship.bundles import of_records
from lqcd_aot.ship.content import write_content
from lqcd_aot.store import open_store
from lqcd_runtime.bundle import Bundle
from lqcd_runtime.conventions import CONVENTIONS
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import NoVariant
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import CPU_TARGETS, Host
from tests.crash.records_for_tests import key, make_record

CODE = b"no machine code"
LATTICES = ((4, 4, 4, 4), (8, 4, 4, 4), (8, 8, 8, 8), (16, 8, 8, 8), (16, 16, 16, 16))
OPERATORS = ("wilson", "wilson_dagger", "wilson_normal", "clover", "clover_dagger", "twisted")
BATCHES = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28)
SHARDS = (1, 2, 4)
V3 = Host(CPU_TARGETS["x86-64-v3"][0], CPU_TARGETS["x86-64-v3"][2])


def record_of(spec: Spec, target: str) -> dict[str, Any]:
    name = f"{spec.name}@{target}"
    spelled = {"spec_key": spec.key, "spec": spec.as_dict(), "conventions": CONVENTIONS, "components": {"name": name}}
    return {**make_record(name, CODE, target=target), **spelled}


def all_specs() -> Iterator[Spec]:
    for operator in OPERATORS:
        for lattice in LATTICES:
            for dtype in ("float32", "float64"):
                for shards in SHARDS:
                    for batch in BATCHES:
                        yield Spec(operator, lattice, dtype, batch=batch, shards=shards)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    """10,080 variants: 2,520 specs for four targets."""
    targets = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
    records = {r["build_key"]: r for spec in all_specs() for target in targets for r in [record_of(spec, target)]}
    assert len(records) >= 10_000
    path = tmp_path_factory.mktemp("big") / "big.lqcd"
    write_content(of_records("big", records, lambda _: CODE), path)
    with lqcd_runtime.open(path) as bundle:
        yield bundle


HERE = Spec("wilson", (8, 8, 8, 8), "float64", batch=12)
# Each asks for one thing that is not there; everything else is. Of equally near operators of one family either will do.
MISSES: dict[str, tuple[Spec, str, str]] = {
    "the dagger of twisted": (Spec("twisted_dagger", (8, 8, 8, 8), batch=12), "operator", "twisted-8x8x8x8-f64-b12"),
    "hop of wilson": (Spec("wilson_hop", (8, 8, 8, 8), batch=12), "operator", "wilson*-8x8x8x8-f64-b12"),
    "lattice in T": (Spec("wilson", (10, 8, 8, 8), batch=12), "lattice", HERE.name),
    "lattice in X": (Spec("wilson", (8, 8, 8, 10), batch=12), "lattice", HERE.name),
    "a small lattice": (Spec("wilson", (4, 4, 4, 6), batch=12), "lattice", "wilson-4x4x4x4-f64-b12"),
    "a larger batch": (Spec("wilson", (8, 8, 8, 8), batch=13), "batch", HERE.name),
    "the largest batch": (Spec("wilson", (8, 8, 8, 8), batch=64), "batch", "wilson-8x8x8x8-f64-b28"),
    "fused": (Spec("wilson", (8, 8, 8, 8), batch=12, fused=True), "fused", HERE.name),
    "shards": (Spec("wilson", (8, 8, 8, 8), batch=12, shards=8), "shards", "wilson-8x8x8x8-f64-b12-s4"),
    "storage": (Spec("wilson", (8, 8, 8, 8), batch=12, storage="float32"), "storage", HERE.name),
    "a baked constant": (Spec("wilson", (8, 8, 8, 8), batch=12, baked={"mass": 0.1}), "baked", HERE.name),
    "dtype": (Spec("wilson", (8, 8, 8, 8), "bfloat16", batch=12), "dtype", "wilson-8x8x8x8-f32-b12"),
}


def test_there_are_twelve() -> None:
    assert len(MISSES) == 12


@pytest.mark.parametrize("name", MISSES)
def test_a_miss_names_the_nearest_and_exactly_the_differing_field(big: Bundle, name: str, tmp_path: Path) -> None:
    asked, field, nearest = MISSES[name]
    with pytest.raises(NoVariant) as caught:
        big.select(asked, V3)
    error = caught.value
    same = {"dtype", "storage"} if field == "dtype" else {field}
    assert set(error.differing) == same, error
    assert error.nearest is not None and fnmatch(error.nearest.partition("@")[0], nearest), error
    # One text: exception, JSON; every value stands in it.
    text, as_json = str(error), error.as_json()
    assert as_json["nearest"] == error.nearest
    for one, (mine, has) in error.differing.items():
        assert f"  {one}: asked {mine}, it has {has}" in text
        assert as_json["differing"][one] == {"asked": mine, "nearest": has}  # type: ignore[index]


def test_the_command_line_prints_the_exceptions_own_text(big: Bundle, capsys: pytest.CaptureFixture[str]) -> None:
    asked = MISSES["a larger batch"][0]
    with pytest.raises(NoVariant) as caught:
        big.select(asked)
    assert run(["why", asked.name, "--bundle", big.path]) == 20
    assert capsys.readouterr().err.strip() == str(caught.value)
    assert run(["why", asked.name, "--bundle", big.path, "--json"]) == 20
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(caught.value.as_json()))


def test_ten_thousand_variants_in_one_open_file(big: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """C19: open and select among ten thousand: one open of the bundle, no walk, nothing else read."""
    import os
    import sys

    events: list[tuple[str, object]] = []
    listening = [True]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if listening[0] and event in ("open", "os.listdir", "os.scandir"):
            events.append((event, arguments[0]))

    big.select(HERE, V3)  # what Python itself loads is loaded
    sys.addaudithook(hook)
    with lqcd_runtime.open(big.path) as bundle:
        assert bundle.select(HERE, V3).choice.name == f"{HERE.name}@x86-64-v3"
        bundle.read_blob(bundle.select(HERE, V3).choice.code["sha256"])
    listening[0] = False
    assert events == [("open", os.fspath(big.path))]


def test_in_a_store_the_spec_indices_answer(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    store.put_blob(CODE)
    for batch in (1, 12):
        store.publish(record_of(Spec("wilson", (8, 8, 8, 8), batch=batch), "x86-64-v3"))
    with lqcd_runtime.open(tmp_path / "store") as bundle:
        with pytest.raises(NoVariant) as caught:
            bundle.select(Spec("wilson", (8, 8, 8, 8), batch=13), V3)
        assert caught.value.nearest == "wilson-8x8x8x8-f64-b12@x86-64-v3"
        # Even where the record behind the nearest index is gone, the answer is an artifact that is there.
        store.fs.unlink(store.layout.entry("records", key(f"{HERE.name}@x86-64-v3")))
        with pytest.raises(NoVariant) as caught:
            bundle.select(Spec("wilson", (8, 8, 8, 8), batch=13), V3)
        assert caught.value.nearest == "wilson-8x8x8x8-f64-b1@x86-64-v3"


def test_why_of_a_recipe_names_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "one.toml"
    recipe.write_text(
        'schema = 1\nname = "one"\n[axes]\noperator = "wilson"\nlattice = "8x8x8x8"\ndtype = "float64"\n'
        'batch = 13\ntarget = "x86-64-v3"\n'
    )
    store = open_store(tmp_path / "store", create=True)
    store.put_blob(CODE)
    store.publish(record_of(HERE, "x86-64-v3"))
    assert run(["why", str(recipe), "--store", str(tmp_path / "store")]) == 0
    out = capsys.readouterr().out
    assert "nearest: wilson-8x8x8x8-f64-b12@x86-64-v3" in out
    assert "batch: asked 13, it has 12" in out


def test_diff_names_exactly_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Between keys, records, bundles, and variants that nobody built."""
    store = open_store(tmp_path / "store", create=True)
    store.put_blob(CODE)
    old = {**record_of(HERE, "x86-64-v3"), "components": {"toolchain": {"version": "0.16.0"}, "flags": ["-O3"]}}
    new = {**old, "build_key": key("new"), "components": {"toolchain": {"version": "0.17.1"}, "flags": ["-O3"]}}
    for record in (old, new):
        store.publish(record)
    where = ["--store", str(tmp_path / "store")]
    assert run(["diff", old["build_key"][:20], new["build_key"][:20], *where]) == 1
    assert capsys.readouterr().out.strip() == "compiler version 0.16.0 -> 0.17.1"
    assert run(["diff", new["build_key"], new["build_key"], *where, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"] == []
    write_content(of_records("a", {old["build_key"]: old}, lambda _: CODE), tmp_path / "a.lqcd")
    write_content(of_records("b", {new["build_key"]: new}, lambda _: CODE), tmp_path / "b.lqcd")
    assert run(["diff", str(tmp_path / "a.lqcd"), str(tmp_path / "b.lqcd")]) == 1
    out = capsys.readouterr().out
    assert f"{HERE.name}@x86-64-v3: build key {old['build_key'][:12]} -> {new['build_key'][:12]}" in out
    assert "compiler version 0.16.0 -> 0.17.1" in out
    assert run(["diff", str(tmp_path / "a.lqcd"), str(tmp_path / "a.lqcd")]) == 0
    capsys.readouterr()
    assert run(["diff", "wilson-8x8x8x8-f64-b1@x86-64-v3", "wilson-8x8x8x8-f32-b1@x86-64-v4", *where]) == 1
    out = capsys.readouterr().out
    assert "target: x86-64-v3 -> x86-64-v4" in out and "dtype: float64 -> float32" in out
    assert run(["diff", "nothing", "nobody", *where]) == 20


def test_long_values_are_cut_in_the_text_and_whole_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(tmp_path / "store", create=True)
    store.put_blob(CODE)
    rows = ["A" * 5000 + end for end in ("B" * 5000, "C" * 5000)]
    old, new = (
        {**record_of(HERE, "x86-64-v3"), "build_key": key(row), "witness": {"rows": row, "flags": [row, "-O3"]}} for row in rows
    )
    for record in (old, new):
        store.publish(record)
    arguments = ["diff", old["build_key"], new["build_key"], "--store", str(tmp_path / "store")]
    assert run(arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    cut = [f"{'A' * 32}...{letter * 32} (10000 characters)" for letter in "BC"]
    assert f"witness.rows changed: {cut[0]} -> {cut[1]}" in lines and max(map(len, lines)) < 250
    assert run([*arguments, "--json"]) == 1
    found = {d["name"]: d for d in json.loads(capsys.readouterr().out)["differences"]}
    assert [found["witness.rows"][side] for side in "ab"] == rows


def test_a_difference_between_equal_ends_is_placed() -> None:
    a, b = ("A" * 500 + middle + "A" * 500 for middle in "BC")
    cut = f"{'A' * 32}...{'A' * 32} (1001 characters)"
    assert transition(a, b) == f"{cut} -> {cut}, differing from character 501 on"


def test_a_divergence_is_a_difference_outside_the_key(tmp_path: Path) -> None:
    from lqcd_aot.build.compare import compare_records

    one = record_of(HERE, "x86-64-v3")
    other = {**one, "outputs": {"code": {**one["outputs"]["code"], "sha256": sha256_hex(b"other")}}}
    assert [d.name for d in compare_records(one, other)] == ["outputs.code.sha256"]
