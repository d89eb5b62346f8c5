"""Build keys: their definition derived a second time, what is refused, and how two pre-images differ."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lqcd_aot.keys import Change, both_keys, build_key, differences
from lqcd_aot.program import Program, program_for
from lqcd_runtime.conventions import CONVENTIONS
from lqcd_runtime.signature import DTYPES, OPERATORS, Spec

words = st.text(max_size=8)
specs = st.builds(
    lambda operator, lattice, dtype, batch, shards, mass: Spec(
        operator,
        lattice,
        dtype,
        batch=batch,
        shards=shards,
        baked={} if mass is None else {"mass": mass},
        iterations=batch if OPERATORS[operator]["kind"] == "chunk" else 0,
    ),
    st.sampled_from(sorted(OPERATORS)),
    st.tuples(*[st.integers(2, 64)] * 4),
    st.sampled_from(list(DTYPES)),
    st.integers(1, 12),
    st.sampled_from([1, 2, 4]),
    st.none() | st.floats(-4, 4),
)


def derived(tag: str, value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(tag.encode() + b"\0" + text.encode()).hexdigest()


@settings(max_examples=60)
@given(specs, words, st.dictionaries(st.text("abc_", min_size=1), words, max_size=4), st.lists(words, max_size=4), words, words)
def test_a_key_is_the_digest_of_its_tagged_components(
    spec: Spec, program: str, toolchain: dict[str, str], flags: list[str], target: str, salt: str
) -> None:
    spec_key, key = both_keys(spec, program, toolchain, flags, target, salt)
    form = spec.as_dict()
    assert spec_key == spec.key == derived("lqcd-aot/spec/v1", form)
    expected = {
        "conventions": CONVENTIONS, "flags": flags, "program": program, "salt": salt, "spec": form, "target": target,
        "toolchain": toolchain,
    }  # fmt: skip
    assert key.components == expected
    assert key.hex == derived("lqcd-aot/build/v1", expected) == build_key(spec, program, toolchain, flags, target, salt).hex


@given(specs, specs)
def test_equal_specs_and_only_they_have_equal_keys(a: Spec, b: Spec) -> None:
    assert (a == b) == (a.key == b.key) == (a.as_dict() == b.as_dict())
    assert Spec.from_dict(json.loads(json.dumps(a.as_dict()))) == a


@given(words, words, words, words)
def test_no_two_components_can_run_into_each_other(a: str, b: str, c: str, d: str) -> None:
    spec = Spec("wilson", "4x4x4x4")
    one = build_key(spec, "p", {"compiler": a}, [b], "t", "")
    two = build_key(spec, "p", {"compiler": c}, [d], "t", "")
    assert ((a, b) == (c, d)) == (one.hex == two.hex)


def test_a_program_s_digest_is_the_digest_of_its_tagged_parts() -> None:
    program = program_for(Spec("wilson", "8x4x4x4", "float32", batch=4), "x86-64-v3")
    parts = {
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in program.files},
        "defines": dict(program.defines),
        "entry": program.entry,
    }
    assert program.digest == derived("lqcd-aot/program/v1", parts)
    other = Program(program.files, program.defines, program.entry + "x")
    assert other.digest == derived("lqcd-aot/program/v1", {**parts, "entry": program.entry + "x"})


@pytest.mark.parametrize("part", [1.5, b"x", {"set"}, {"a": 1.5}, {1: "x"}])
def test_what_has_no_single_spelling_is_refused(part: Any) -> None:
    with pytest.raises(TypeError):
        build_key(Spec("wilson", "4x4x4x4"), part, {}, [], "x86-64-v3")


def test_differences_name_each_component_with_both_values() -> None:
    old = build_key(Spec("wilson", "4x4x4x4"), "p", {"compiler": "zig", "version": "1"}, ["-O2"], "t").components
    new = build_key(Spec("wilson", "4x4x4x6"), "q", {"compiler": "zig", "version": "2", "x": "y"}, ("-O3",), "t", "s").components
    stored = json.loads(json.dumps(old))
    assert differences(stored, old) == []
    assert differences(stored, new) == [
        Change("flags", ["-O2"], ["-O3"]),
        Change("program", "p", "q"),
        Change("salt", "", "s"),
        Change("spec.lattice", [4, 4, 4, 4], [4, 4, 4, 6]),
        Change("toolchain.version", "1", "2"),
        Change("toolchain.x", None, "y"),
    ]
