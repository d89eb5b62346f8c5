"""Everything wrong with a recipe comes at once, each issue with file, line and column and with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from lqcd_aot.recipe import load, loads
from lqcd_runtime.errors import EXIT_USAGE, RecipeError

GOOD = """schema = 1
name = "good"
[axes]
operator = ["wilson", "wilson_schur", "plaquette"]
lattice = ["8x4x4x4"]
dtype = ["float32"]
batch = [1, 12]
shards = [1]
target = ["x86-64-v3"]
[constants]
policy = "external"
[build]
timeout = "60 s"
memory = "1 GiB"
salt = ""
"""


def issues(text: str, name: str = "r.toml") -> list[str]:
    with pytest.raises(RecipeError) as caught:
        loads(text, name)
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.hint is not None
    return list(caught.value.details)


CASES = [
    ('name = "good"', 'nmae = "good"', "r.toml:2:1: unknown key 'nmae', did you mean 'name'?"),
    ('name = "good"', 'name = "Good one"', "r.toml:2:8: name: \"Good one\" is not lower-case letters"),
    ('name = "good"', "name = 3", "r.toml:2:8: name: 3 is not a string"),
    ("schema = 1", "schema = 2", "r.toml:1:1: schema 2 is not known here (known: 1)"),
    ("schema = 1", 'schema = "1"', 'r.toml:1:10: schema: "1" is not known (known: 1)'),
    ('"wilson", ', '"wilsn", ', "r.toml:4:13: axes.operator: unknown operator 'wilsn', did you mean 'wilson'?"),
    ('"plaquette"]', "7]", "r.toml:4:39: axes.operator: operator 7 is not a string"),
    ('"wilson", ', '"plaquette", ', "r.toml:4:42: axes.operator: \"plaquette\" stands here twice"),
    ('["8x4x4x4"]', "[]", "r.toml:5:11: axes.lattice: has no values"),
    ('["8x4x4x4"]', '["8x4x4"]', 'r.toml:5:12: axes.lattice: lattice "8x4x4" is not four extents: write "TxZxYxX"'),
    ('["8x4x4x4"]', '["8x4x4x1"]', "r.toml:5:12: axes.lattice: lattice 8x4x4x1 has an extent below 2"),
    ('["8x4x4x4"]', "[8, 4, 4, 0]", "r.toml:5:11: axes.lattice: lattice 8x4x4x0 has an extent below 2"),
    ('["8x4x4x4"]', '["8x4x4x4", [8, 4, 4, 4]]', 'r.toml:5:23: axes.lattice: "8x4x4x4" stands here twice'),
    ('["8x4x4x4"]', "[[8, 4, 4.0, 4]]", "r.toml:5:12: axes.lattice: lattice [8, 4, 4.0, 4] is not four extents"),
    ('dtype = ["float32"]', "", "r.toml:3:2: [axes] has no 'dtype'"),
    ('["float32"]', '"float23"', "r.toml:6:9: axes.dtype: unknown dtype 'float23', did you mean 'float32'?"),
    ("dtype =", "dtpye =", "r.toml:6:1: unknown key 'dtpye', did you mean 'dtype'?"),
    ("[1, 12]", "[1, 0]", "r.toml:7:13: axes.batch: 0 is not an integer >= 1"),
    ("[1, 12]", "[1, true]", "r.toml:7:13: axes.batch: true is not an integer >= 1"),
    ("[1, 12]", '["12"]', 'r.toml:7:10: axes.batch: "12" is not an integer >= 1'),
    ("shards = [1]", "fused = [1]", "r.toml:8:10: axes.fused: 1 is not true, false or"),
    ("shards = [1]", "iterations = [8]", "r.toml:8:14: no operator of this recipe is a solver chunk"),
    ("shards = [1]", "iterations = [0]", "r.toml:8:15: axes.iterations: 0 is not an integer >= 1"),
    ('"wilson", ', '"wilson_cg_chunk", ', "r.toml:3:1: operator wilson_cg_chunk is a solver chunk and needs iter"),
    ('["x86-64-v3"]', '["x86-64-3"]', "r.toml:9:11: axes.target: unknown target 'x86-64-3', did you mean 'x86-64-v3'?"),
    ('["x86-64-v3"]', '"host"', "r.toml:9:10: axes.target: target 'host' is not reproducible"),
    ("[axes]", "[axis]", "r.toml:3:2: unknown key 'axis', did you mean 'axes'?"),
    ("[axes]", "[axis]", "r.toml:1:1: the recipe has no 'axes'"),
    ('"external"', '"bakd"', 'r.toml:11:10: constants.policy: "bakd" is not known (known: \'external\' or \'baked\')'),
    ('"external"', '"baked"', 'r.toml:11:10: policy = "baked" needs values: mass or kappa, csw, mu'),
    ('"external"', '"external"\nmass = 0.1', 'r.toml:12:8: mass is a run-time input under policy = "external"'),
    ('"external"', '"baked"\nmass = nan', "r.toml:12:8: constants.mass: nan is not a finite number"),
    ('"external"', '"baked"\nmass = "0.1"', 'r.toml:12:8: constants.mass: "0.1" is not a finite number'),
    ('"external"', '"baked"\nmass = [0.1, 0.1]', "r.toml:12:14: constants.mass: 0.1 stands here twice"),
    ('"external"', '"baked"\nmass = 0.1\nkappa = 0.1', "r.toml:13:9: mass and kappa name the same constant; keep one"),
    ('"external"', '"baked"\nkappa = 0.0', "r.toml:12:9: kappa = 0 has no mass"),
    ('"external"', '"baked"\nmass = 0.1\nmu = 0.2', "r.toml:13:6: no operator of this recipe takes mu"),
    ('"60 s"', "60", "r.toml:13:11: build.timeout: 60 is not a time: write a number and a unit, e.g. \"120 s\""),
    ('"60 s"', '"60 GiB"', "r.toml:13:11: build.timeout: unit 'GiB' is not a unit of time (known: ms, s, min, h)"),
    ('"60 s"', '"0 s"', "r.toml:13:11: build.timeout: time '0 s' is not above zero"),
    ('"60 s"', '"-60 s"', 'r.toml:13:11: build.timeout: "-60 s" is not a time'),
    ('"1 GiB"', '"1 Gib"', "r.toml:14:10: build.memory: unit 'Gib' is not a unit of memory, did you mean 'GiB'?"),
    ('"1 GiB"', '"0.3 B"', "r.toml:14:10: build.memory: memory '0.3 B' is not a whole number of bytes"),
    ('salt = ""', "salt = 1", "r.toml:15:8: build.salt: 1 is not a string"),
    ('salt = ""', 'slat = ""', "r.toml:15:1: unknown key 'slat', did you mean 'salt'?"),
    ('salt = ""', "[[exclude]]\nbatsh = 1", "r.toml:16:1: unknown key 'batsh', did you mean 'batch'?"),
    ('salt = ""', "[[exclude]]", "r.toml:15:1: an [[exclude]] without entries would drop everything"),
    ('salt = ""', "[[exclude]]\nbatch = 4", "r.toml:15:1: matches no variant of [axes]; axes.batch has no 4"),
    ('salt = ""', '[[exclude]]\noperator = "plaquette"\nbatch = 12', "r.toml:15:1: matches no variant of [axes]; storage,"),
    ('salt = ""', "[[exclude]]\nbatch = [1, 12]", "r.toml:15:1: the [[exclude]] rules leave no variant"),
    ('salt = ""', "[[include]]", "r.toml:15:1: an [[include]] without entries adds nothing"),
    ('salt = ""', "[[include]]\nbatch = 12", "r.toml:15:1: adds no variant that [axes] or an earlier [[include]] does not have"),
    ('salt = ""', "[exclude]\nbatch = 1", "r.toml:15:1: exclude: {'batch': 1} is not an array of tables ([[...]])"),
    ("shards = [1]", "shards = [1, 3]", "r.toml:5:12: 3 shards do not divide T = 8 of lattice 8x4x4x4; add [[exclude]] with "
     'lattice = "8x4x4x4" and shards = 3'),
    ('["8x4x4x4"]', '["8x4x4x4", "4x5x4x7"]', "r.toml:5:23: operator wilson_schur is even-odd and needs even extents, lattice "
     '4x5x4x7 has Z = 5, X = 7; add [[exclude]] with operator = "wilson_schur" and lattice = "4x5x4x7"'),
    ('salt = ""', '[[include]]\nlattice = "3x4x4x4"', "r.toml:16:11: operator wilson_schur is even-odd and needs even extents, "
     "lattice 3x4x4x4 has T = 3; narrow this [[include]]"),
    ('salt = ""', "salt = '", "r.toml:16:1: is not TOML"),
    ("batch = [1, 12]", "batch = [1, 12", "r.toml:8:1: is not TOML: unclosed array"),
    ("shards = [1]", "batch = [1]", "r.toml:8:12: is not TOML: cannot overwrite a value"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CASES, ids=[f"{i}-{c[2][:40]}" for i, c in enumerate(CASES)])
def test_each_mistake_is_named_with_its_place(old: str, new: str, expected: str) -> None:
    assert GOOD.count(old) == 1, "a case changes one place"
    found = issues(GOOD.replace(old, new))
    assert any(line.startswith(expected) for line in found), found


def test_the_recipe_of_the_cases_is_good() -> None:
    assert loads(GOOD).name == "good"


def test_all_issues_come_at_once_in_the_order_of_the_lines() -> None:
    bad = GOOD.replace('"wilson", ', '"wilsn", ').replace("float32", "f32").replace("[1, 12]", "[]").replace('"60 s"', '"1 m"')
    found = issues(bad)
    assert [int(line.split(":")[1]) for line in found] == [4, 6, 7, 13]


def test_an_impossible_combination_is_cured_by_the_rule_it_names() -> None:
    odd = GOOD.replace('["8x4x4x4"]', '["8x4x4x4", "5x4x4x4"]')
    (issue,) = issues(odd)
    rule = issue.split("add [[exclude]] with ")[1].replace(" and ", "\n")
    assert len(loads(f"{odd}\n[[exclude]]\n{rule}\n").exclude) == 1


def test_windows_line_ends_do_not_shift_places() -> None:
    bad = GOOD.replace('"60 s"', "60")
    assert issues(bad.replace("\n", "\r\n")) == issues(bad)


@pytest.mark.parametrize(("data", "place"), [(b'schema = 1\nname = "\xe9"\n', "r.toml:2:9: byte 0xe9 is not UTF-8")])
def test_bytes_that_are_not_utf8_are_named(data: bytes, place: str) -> None:
    with pytest.raises(RecipeError) as caught:
        loads(data, "r.toml")
    assert caught.value.details == (place,)


@pytest.mark.parametrize("text", ["", "\n", "schema = 1", "x = " + "[" * 3000 + "]" * 3000])
def test_odd_texts_are_refused_as_recipes_not_as_crashes(text: str) -> None:
    assert issues(text)


def test_a_file_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="cannot be read"):
        load(tmp_path / "absent.toml")
    with pytest.raises(RecipeError, match="cannot be read"):
        load(tmp_path)


def test_a_product_beyond_reason_is_refused_without_being_walked() -> None:
    many = ", ".join(str(n) for n in range(1, 200_001))
    (issue,) = issues(GOOD.replace("[1, 12]", f"[{many}]").replace('["8x4x4x4"]', '["8x4x4x4", "4x4x4x4"]'))
    assert issue.startswith("r.toml:3:1: the axes span 1200000 combinations, more than 1000000")
