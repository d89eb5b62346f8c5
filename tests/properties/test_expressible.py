"""What the runtime says can be built, and what programs say: the same; so no hint leads into a refusal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lqcd_aot.program import program_for, refusal
from lqcd_runtime.errors import NoVariant, UsageError
from lqcd_runtime.expressible import advice, why_not
from lqcd_runtime.select import select
from lqcd_runtime.signature import DTYPES, OPERATORS, Spec
from lqcd_runtime.target import CPU_TARGETS, NEURON_TARGETS, SIM_TARGET, Host

V3 = Host(CPU_TARGETS["x86-64-v3"][0], CPU_TARGETS["x86-64-v3"][2])


def made(
    operator: str, lattice: tuple[int, ...], dtype: str, storage: str | None, batch: int, fused: bool, shards: int, nc: int,
    iterations: int, baked: str | None,
) -> Spec:  # fmt: skip
    steps = iterations if OPERATORS[operator]["kind"] == "chunk" else 0
    values = {} if baked is None else {baked: 0.25}
    return Spec(
        operator, lattice, dtype, storage=storage, batch=batch, fused=fused, shards=shards, nc=nc, iterations=steps, baked=values
    )


def mostly(usual: object, *others: object) -> st.SearchStrategy[object]:
    """One value half of the time, so that specs with a single fault are common."""
    return st.sampled_from([usual] * len(others) + list(others))


specs = st.builds(
    made,
    st.sampled_from(sorted(OPERATORS)),
    st.tuples(*[st.sampled_from([2, 3, 4, 6, 8])] * 4) | st.just((8, 8, 8, 8)) | st.just((512, 512, 512, 512)),
    st.sampled_from(list(DTYPES)),
    mostly(None, "float32", "float64", "bfloat16"),
    mostly(1, -1, 0, 12, 64, 65, 512, 513),
    mostly(False, True),
    mostly(1, -2, 0, 2, 3, 8),
    mostly(3, 2),
    mostly(8, 1, 256, 257),
    mostly(None, "mass", "csw", "mu", "beta"),
)


@settings(max_examples=1500, deadline=None)
@given(specs)
def test_the_runtime_and_the_programs_agree(spec: Spec) -> None:
    for engine, targets in (("cpu", tuple(CPU_TARGETS)), ("neuron", (*NEURON_TARGETS, SIM_TARGET))):
        for target in targets:
            assert (why_not(spec, engine) is None) == (refusal(spec, target) is None), (
                why_not(spec, engine),
                refusal(spec, target),
            )


@settings(max_examples=300, deadline=None)
@given(specs)
def test_a_miss_never_advises_what_cannot_be_built(spec: Spec) -> None:
    with pytest.raises(NoVariant) as caught:
        select(spec, [], V3, nearest=lambda: None)
    hint = str(caught.value.hint)
    can_be = any(refusal(spec, target) is None for target in (*CPU_TARGETS, *NEURON_TARGETS))
    assert hint == (f"add {spec.name} to the recipe and build it" if can_be else advice(spec))
    assert can_be or hint.startswith(f"no program can express {spec.name}: ")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (Spec("wilson", (8, 8, 8, 8), batch=0), "batch is 0, it must be from 1 to 64"),
        (Spec("wilson", (8, 8, 8, 8), batch=12, shards=3), "shards is 3, it must divide T = 8"),
        (Spec("plaquette", (8, 8, 8, 8), batch=2), "batch is 2, it must be 1"),
        (Spec("wilson_schur", (8, 8, 8, 7)), "lattice has an extent of 7, wilson_schur is even-odd and needs even ones"),
        (
            Spec("clover", (8, 8, 8, 8), fused=True),
            "fused is true, it is for wilson_hop, wilson, wilson_dagger, wilson_normal only",
        ),
        (Spec("wilson", (8, 8, 8, 8), "bfloat16", batch=513), "batch is 513, it must be from 1 to 512"),
        (
            Spec("wilson_cg_chunk", (8, 8, 8, 8), "float64", iterations=8),
            "dtype is float64, on engine neuron it is float32 or bfloat16",
        ),
        (Spec("wilson", (8, 8, 8, 8), baked={"csw": 1.0}), "csw cannot be baked into wilson for engine cpu"),
    ],
)
def test_the_sentence_names_the_field_and_both_values(spec: Spec, why: str) -> None:
    assert advice(spec) == f"no program can express {spec.name}: {why}"


def test_refusal_is_what_program_for_raises() -> None:
    spec = Spec("wilson", (8, 8, 8, 8), batch=0)
    with pytest.raises(UsageError) as caught:
        program_for(spec, "x86-64-v3")
    assert str(refusal(spec, "x86-64-v3")) == str(caught.value)
    assert refusal(spec.replace(batch=1), "x86-64-v3") is None


def test_another_machine_is_not_told_to_build_what_its_processor_cannot() -> None:
    """An artifact for NeuronCores in bfloat16: no CPU program computes in it."""
    from tests.contracts.test_select import entry

    spec = Spec("wilson", (4, 4, 4, 4), "bfloat16")
    with pytest.raises(NoVariant) as caught:
        select(spec, [entry("trn1", spec)], V3)
    assert caught.value.hint == "run on another machine"
