"""Selection: the best target a host can execute, a sentence for every candidate, never anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lqcd_runtime.bundle import open_bundle
from lqcd_runtime.digest import canonical_json
from lqcd_runtime.errors import NoVariant
from lqcd_runtime.manifest import Entry, entry_dict
from lqcd_runtime.select import Accepted, Rejected, Selection, distance, nearest_spec, select
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import CPU_TARGETS, TARGETS, Host, rank
from tests.made import bundle_bytes, record

SPEC = Spec("wilson", "4x4x4x4", "float64")
FEATURES = sorted({f for _, _, needed in CPU_TARGETS.values() for f in needed})

# Written out from the x86-64 psABI, independently of target.py.
V2 = {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}
V3 = V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
HOSTS = {
    "v1": Host("x86_64", {"sse2"}),
    "v2": Host("x86_64", V2),
    "v3": Host("x86_64", V3 | {"sse2"}),
    "v4": Host("x86_64", V4 | {"amx_tile"}),
    "arm": Host("aarch64", {"fp", "asimd", "sve"}),
}
RUNS = {
    "v1": set(),
    "v2": {"x86-64-v2"},
    "v3": {"x86-64-v2", "x86-64-v3"},
    "v4": {"x86-64-v2", "x86-64-v3", "x86-64-v4"},
    "arm": {"aarch64"},
}


def entry(target: str, spec: Spec = SPEC) -> Entry:
    return Entry.from_dict(entry_dict(record(spec, target)), "made")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "inf2"])
def test_every_pair_of_host_and_target(host: str, target: str) -> None:
    if target in RUNS[host]:
        selection = select(SPEC, [entry(target)], HOSTS[host])
        assert selection.choice.target == target
        assert [type(d) for d in selection.decisions] == [Accepted]
        return
    with pytest.raises(NoVariant) as caught:
        select(SPEC, [entry(target)], HOSTS[host])
    (decision,) = caught.value.decisions
    assert isinstance(decision, Rejected) and decision.name == f"{SPEC.name}@{target}"
    assert decision.reason in str(caught.value)
    assert caught.value.nearest == f"{SPEC.name}@{target}"
    assert list(caught.value.differing) == ["target"]
    assert caught.value.exit_code == 20


@pytest.mark.parametrize(("host", "best"), [("v2", "x86-64-v2"), ("v3", "x86-64-v3"), ("v4", "x86-64-v4"), ("arm", "aarch64")])
def test_best_target_not_above_the_host_in_any_order(host: str, best: str) -> None:
    entries = [entry(t) for t in TARGETS]
    for order in (entries, entries[::-1]):
        selection = select(SPEC, order, HOSTS[host])
        assert selection.choice.target == best
        assert len(selection.decisions) == len(TARGETS)
        accepted = {d.name.partition("@")[2] for d in selection.decisions if isinstance(d, Accepted)}
        assert accepted == RUNS[host]


def test_the_reason_names_what_is_missing_and_what_there_is() -> None:
    with pytest.raises(NoVariant) as caught:
        select(SPEC, [entry("x86-64-v4")], HOSTS["v3"])
    reason = caught.value.decisions[0].reason  # type: ignore[attr-defined]
    assert "avx512f" in reason and "x86-64-v3" in reason
    assert caught.value.hint is not None and "x86-64-v3" in caught.value.hint


def test_a_neuron_artifact_or_the_simulator_is_never_run_by_a_cpu() -> None:
    for target in ("inf2", "trn1", "trn2", "trn3", "sim"):
        for host in HOSTS.values():
            with pytest.raises(NoVariant):
                select(SPEC, [entry(target)], host)


@settings(max_examples=800, deadline=None)
@given(
    st.sampled_from(["x86_64", "aarch64", "riscv64", "ppc64le"]),
    st.one_of(
        st.frozensets(st.sampled_from(FEATURES)),
        # Nearly complete hosts, or a random subset would hardly ever reach v4.
        st.frozensets(st.sampled_from(FEATURES), max_size=2).map(lambda missing: frozenset(FEATURES) - missing),
    ),
    st.frozensets(st.sampled_from(TARGETS), min_size=1),
)
def test_never_an_instruction_the_host_lacks_and_never_a_worse_choice(
    architecture: str, features: frozenset[str], targets: frozenset[str]
) -> None:
    host = Host(architecture, features)
    needs = {"x86-64-v2": V2, "x86-64-v3": V3, "x86-64-v4": V4, "aarch64": {"asimd"}}
    of = {t: "aarch64" if t == "aarch64" else "x86_64" for t in needs}
    possible = {t for t in targets if t in needs and of[t] == architecture and needs[t] <= features}
    try:
        selection: Selection | None = select(SPEC, [ENTRIES[t] for t in sorted(targets)], host)
    except NoVariant:
        selection = None
    assert (selection is None) == (not possible)
    if selection is not None:
        assert selection.choice.target in possible
        assert rank(selection.choice.target) == max(rank(t) for t in possible)
        assert {d.name.partition("@")[2] for d in selection.decisions if isinstance(d, Accepted)} == possible


ENTRIES = {t: entry(t) for t in TARGETS}


def test_a_miss_without_any_candidate_says_what_to_build() -> None:
    with pytest.raises(NoVariant) as caught:
        select(SPEC, [], HOSTS["v3"], nearest=lambda: entry("aarch64", SPEC.replace(batch=12)))
    assert caught.value.differing == {"batch": (1, 12)}
    assert "batch: asked 1, it has 12" in str(caught.value)
    assert caught.value.as_json()["differing"] == {"batch": {"asked": 1, "nearest": 12}}
    with pytest.raises(NoVariant) as caught:
        select(SPEC, [], HOSTS["v3"], nearest=lambda: None)
    assert caught.value.nearest is None and caught.value.differing == {}


def test_distance_counts_fields_first_and_what_follows_only_once() -> None:
    base = Spec("wilson", "16x8x8x8", "float64", batch=4)

    def far(**changes: object) -> tuple[int, float]:
        return distance(base.as_dict(), base.replace(**changes).as_dict())

    assert far() == (0, 0.0)
    assert far(dtype="float32")[0] == 1
    assert far(dtype="float32", storage="float64")[0] == 1
    assert far(baked={"mass": 0.5})[0] == 1
    assert far(operator="clover")[0] == 1 < far(batch=5, shards=2)[0] == 2
    assert (
        far(batch=5)
        < far(batch=12)
        < far(fused=True)
        < far(dtype="float32")
        < far(lattice=(16, 8, 8, 4))
        < far(operator="clover")
    )
    assert far(lattice=(16, 8, 8, 9)) < far(lattice=(16, 8, 8, 4)) < far(lattice=(4, 4, 4, 4))
    assert far(operator="wilson_dagger") < far(operator="clover")


some_specs = st.builds(
    lambda operator, lattice, dtype, storage, batch, fused, mass: Spec(
        operator,
        lattice,
        dtype,
        storage=storage,
        batch=batch,
        fused=fused,
        baked={} if mass is None else {"mass": mass, "csw": 1.0},
    ),
    st.sampled_from(["wilson", "wilson_dagger", "clover", "plaquette"]),
    st.sampled_from([(4, 4, 4, 4), (8, 4, 4, 4), (8, 4, 4, 6)]),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([None, "float32", "bfloat16"]),
    st.sampled_from([1, 4, 12]),
    st.booleans(),
    st.sampled_from([None, 0.5]),
)


@settings(max_examples=300)
@given(some_specs, st.lists(some_specs, max_size=12))
def test_the_nearest_is_the_first_of_least_distance(asked: Spec, there: list[Spec]) -> None:
    """Derived by comparing all of them."""
    texts = [(place, canonical_json(spec.as_dict())) for place, spec in enumerate(there)]
    far = [distance(asked.as_dict(), spec.as_dict()) for spec in there]
    assert nearest_spec(asked, texts) == (far.index(min(far)) if far else None)


def test_the_nearest_of_many_is_the_one_with_one_difference(tmp_path: Path) -> None:
    """Twelve seeded single-field misses among a few hundred variants: each names exactly that field."""
    lattices = [(t, 8, 8, 8) for t in (4, 8, 16)]
    specs = [
        Spec(op, lat, dt, batch=b)
        for op in ("wilson", "wilson_dagger", "clover") for lat in lattices for dt in ("float32", "float64") for b in (1, 4, 12)
    ]  # fmt: skip
    path = tmp_path / "many.lqcd"
    path.write_bytes(bundle_bytes(record(s, t) for s in specs for t in ("x86-64-v2", "x86-64-v3")))
    asked = Spec("wilson", (8, 8, 8, 8), "float64", batch=4)
    misses = [
        ("operator", {"operator": "wilson_normal"}), ("operator", {"operator": "twisted"}),
        ("lattice", {"lattice": (8, 8, 8, 10)}), ("lattice", {"lattice": (12, 8, 8, 8)}), ("lattice", {"lattice": (32, 8, 8, 8)}),
        ("batch", {"batch": 3}), ("batch", {"batch": 24}), ("fused", {"fused": True}), ("shards", {"shards": 2}),
        ("nc", {"nc": 2}), ("baked", {"baked": {"mass": 0.1}}), ("storage", {"storage": "bfloat16"}),
    ]  # fmt: skip
    with open_bundle(path) as bundle:
        for field, change in misses:
            with pytest.raises(NoVariant) as caught:
                bundle.select(asked.replace(**change), HOSTS["v3"])
            assert list(caught.value.differing) == [field], change
            assert caught.value.nearest is not None
