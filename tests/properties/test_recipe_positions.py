"""The scanner of positions against tomllib: every path that tomllib sees has a place, and what is spelled there is its value."""

from __future__ import annotations

import datetime
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lqcd_aot.recipe.positions import locate

scalars = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.booleans().map(lambda b: "true" if b else "false"),
    st.sampled_from(
        ['"a # b"', "'c \\ [d]'", '"say \\"x\\", = {}"', '""', "''", '"""\nmany\n"lines" # no comment"""', "'''x''y'''"]
    ),
    st.sampled_from(["1.5e3", "-inf", "0xff", "1979-05-27 07:32:00z", "07:32:00", "1_000"]),
)
blanks = st.sampled_from(["", " ", "\t", " \n", " # comment ] } = \" '\n", "\n\n  "])
keys = st.sampled_from(["a", "b-1", "_c", '"d e"', "'f.g'", '"h\\u0041"', "3"])


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(inner, max_size=4))
    gaps = [draw(blanks) for _ in range(2 * len(items) + 2)]
    body = ",".join(f"{gaps[2 * i]}{item}{gaps[2 * i + 1]}" for i, item in enumerate(items))
    trailing = "," + draw(blanks) if items and draw(st.booleans()) else ""
    return f"[{body}{trailing}{'' if items else gaps[-1]}]"


@st.composite
def inline_tables(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    names = draw(st.lists(keys, max_size=3, unique_by=lambda k: k.strip("\"'")))
    return "{ " + " , ".join(f"{name} = {draw(inner)}" for name in names) + " }"


values = st.recursive(scalars, lambda inner: st.one_of(arrays(inner), inline_tables(inner)), max_leaves=6)
pairs = st.lists(st.tuples(keys, values), max_size=4, unique_by=lambda kv: kv[0].strip("\"'"))


@st.composite
def documents(draw: st.DrawFn) -> str:
    def body() -> str:
        return "".join(
            f"{draw(st.sampled_from(['', '  ']))}{k} = {v}{draw(st.sampled_from(['', ' # x']))}\n" for k, v in draw(pairs)
        )

    out = [body()]
    for index in range(draw(st.integers(0, 3))):
        out.append(f'[table{index}."sub . {index}"] # head\n' + body())
    for _ in range(draw(st.integers(0, 3))):
        out.append("[[many]]\n" + body() + (("[many.below]\n" + body()) if draw(st.booleans()) else ""))
        out.append("[[many.deep]]\nz.y = [1]\n" if draw(st.booleans()) else "")
    return "\n".join(out)


def paths(value: Any, at: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(at, value), *(found for key, item in inner for found in paths(item, (*at, key)))]


def remainder(text: str, place: tuple[int, int]) -> str:
    line, column = place
    return "\n".join([text.split("\n")[line - 1][column - 1 :], *text.split("\n")[line:]])


def value_at(text: str, place: tuple[int, int]) -> Any:
    """The shortest text from `place` that is a TOML value."""
    rest = remainder(text, place)
    for end in range(1, len(rest) + 1):
        following = rest[end : end + 1]
        if following in ("", "\n", ",", "]", "}", " ", "\t", "#"):
            try:
                return tomllib.loads(f"v = {rest[:end]}")["v"]
            except tomllib.TOMLDecodeError:
                continue
    raise AssertionError(f"no value at {place}")


@settings(max_examples=150, deadline=None)
@given(documents())
def test_every_path_of_a_document_has_its_place(text: str) -> None:
    document = tomllib.loads(text)
    places = locate(text)
    expected = dict(paths(document)[1:])
    assert set(places) == set(expected)
    for path, value in expected.items():
        place = places[path]
        if isinstance(value, (dict, list)):
            # A table or array of tables is placed at its header, an inline one at its bracket.
            assert place.key == place.value or remainder(text, place.value)[0] in "[{"
            continue
        if not isinstance(value, (datetime.datetime, datetime.time)):
            assert value_at(text, place.value) == value
        if isinstance(path[-1], str):
            key = remainder(text, place.key).split("=")[0].strip()
            assert list(tomllib.loads(f"{key} = 0")) == [path[-1]]


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("name",), (1, 1), (1, 8)),
        (("axes",), (3, 2), (3, 1)),
        (("axes", "lattice"), (4, 3), (4, 13)),
        (("axes", "lattice", 0), (5, 5), (5, 5)),
        (("axes", "lattice", 1), (5, 16), (5, 16)),
        (("axes", "lattice", 1, 3), (5, 26), (5, 26)),
        (("exclude", 1), (8, 1), (8, 1)),
        (("exclude", 1, "fused"), (9, 1), (9, 9)),
        (("x", "build", "timeout"), (11, 10), (11, 20)),
    ],
)
def test_places_count_from_one_in_characters(path: Any, key: tuple[int, int], value: tuple[int, int]) -> None:
    text = (
        'name = "é" # ü\n\n[axes]\n  lattice = [ # ], "\n    "8x8x8x8", [4, 4, 4, 4],\n  ]\n'
        "[[exclude]]\n[[exclude]]\nfused = true\n[x]\nbuild = {timeout = '1 s'}\n"
    )
    place = locate(text)[path]
    assert (place.key, place.value) == (key, value)
