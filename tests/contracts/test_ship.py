"""Bundles made of bundles, locks, closures: what is kept, what is refused, and that equal inputs give equal bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lqcd_runtime
from lqcd_aot.build.execute import build
from lqcd_aot.build.pack import pack, wanted
from lqcd_aot.cli import run
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.recipe.variant import Variant
from lqcd_aot.ship import bundles
from lqcd_aot.ship.choose import Machine
from lqcd_aot.ship.closure import import_bundle
from lqcd_aot.ship.content import content_of, opened, write_content
from lqcd_aot.ship.lock import LockError, check_bytes, check_plan, make_lock, parse_lock, read_lock, write_lock
from lqcd_aot.store import Store, open_store
from lqcd_aot.trust.sign import sign_bundle
from lqcd_runtime.errors import CorruptError, NoVariant, TooNewError, TrustError, UsageError
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import CPU_TARGETS, Host
from tests.contracts.test_trust import key, policy
from tests.crash.fake_build import NoCheck, planned
from tests.doubles.libnrt import cores
from tests.made import record

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
BATCHES = 3
RECIPE = {"name": "made", "sha256": "00" * 32}


def variants(targets: tuple[str, ...] = TARGETS) -> list[Variant]:
    return [Variant(Spec("wilson", (4, 4, 4, 4), batch=1 + i), target) for i in range(BATCHES) for target in targets]


def built(root: Path, wanted_variants: list[Variant], toolchain: FakeToolchain | None = None) -> Store:
    used = toolchain or FakeToolchain()
    store = open_store(root, create=True)
    build(planned(wanted_variants, store, used), store, used, checker=NoCheck(), jobs=1)
    return store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return built(tmp_path / "store", variants())


@pytest.fixture
def full(store: Store, tmp_path: Path) -> Path:
    """A signed bundle of three specs for four targets."""
    path = tmp_path / "full.lqcd"
    pack(store, wanted(planned(variants(), store, FakeToolchain())), path, name="made", recipe=RECIPE)
    sign_bundle(path, key())
    return path


def names(path: Path) -> set[str]:
    with lqcd_runtime.open(str(path)) as bundle:
        bundle.verify()
        return {entry.name for entry in bundle.entries()}


def twice(tmp_path: Path, make: object) -> Path:
    """The result of a verb run twice, byte-identical."""
    first, second = tmp_path / "1st.lqcd", tmp_path / "2nd.lqcd"
    for path in (first, second):
        make(path)  # type: ignore[operator]
    assert first.read_bytes() == second.read_bytes()
    return first


@pytest.mark.parametrize("target", TARGETS)
def test_slim_keeps_what_selection_would_take_and_nothing_else(full: Path, tmp_path: Path, target: str) -> None:
    slim = twice(tmp_path, lambda out: bundles.slim(full, out, Machine(target)))
    assert names(slim) == {v.name for v in variants((target,))}
    architecture, _, features = CPU_TARGETS[target]
    with lqcd_runtime.open(str(full)) as whole, lqcd_runtime.open(str(slim)) as part:
        for i in range(BATCHES):
            spec = Spec("wilson", (4, 4, 4, 4), batch=1 + i)
            host = Host(architecture, features)
            assert whole.select(spec, host).choice.build_key == part.select(spec, host).choice.build_key


def test_slim_takes_the_lower_target_where_the_best_is_absent(tmp_path: Path) -> None:
    some = [*variants(("x86-64-v2",)), *variants(("x86-64-v4",))[:1]]
    store = built(tmp_path / "s", some)
    bundles.create(store, tmp_path / "b.lqcd", name="b")
    bundles.slim(tmp_path / "b.lqcd", tmp_path / "slim.lqcd", Machine("x86-64-v4"))
    batch_one_v4, others_v2 = some[-1].name, {v.name for v in some[1:BATCHES]}
    assert names(tmp_path / "slim.lqcd") == {batch_one_v4} | others_v2
    bundles.slim(tmp_path / "b.lqcd", tmp_path / "slim3.lqcd", Machine("x86-64-v3"))
    assert names(tmp_path / "slim3.lqcd") == {v.name for v in some[:BATCHES]}


def test_slim_and_inspect_judge_as_selection_does_on_a_machine_with_neuron_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """NeuronCores go before CPUs, and logical cores decide too."""
    spec, other = Spec("wilson", (4, 4, 4, 4), "float32"), Spec("wilson", (4, 4, 4, 4), "float32", batch=2)
    records = {}
    for one, target, lnc in ((spec, "trn2", 1), (spec, "x86-64-v2", 0), (other, "trn2", 2), (other, "x86-64-v2", 0)):
        made = record(one, target, b"code")
        records[made["build_key"]] = {**made, "neff": {"lnc": lnc}} if lnc else made
    path, slim = tmp_path / "b.lqcd", tmp_path / "slim.lqcd"
    write_content(bundles.of_records("b", records, lambda digest: b"code"), path)
    host = Host("x86_64", CPU_TARGETS["x86-64-v2"][2], cores(lnc=1))
    for module in ("lqcd_runtime.target", "lqcd_aot.ship.choose", "lqcd_runtime.bundle"):
        monkeypatch.setattr(f"{module}.this_host", lambda: host)
    bundles.slim(path, slim, Machine())
    assert names(slim) == {f"{spec.name}@trn2", f"{other.name}@x86-64-v2"}
    with lqcd_runtime.open(str(path)) as bundle:
        assert {bundle.select(one).choice.name for one in (spec, other)} == names(slim)
    assert run(["inspect", str(path), "--json"]) == 0
    reasons = {row["name"]: row["reason"] for row in json.loads(capsys.readouterr().out)}
    assert [name for name, reason in reasons.items() if reason] == [f"{other.name}@trn2"]
    assert "logical cores of 2" in str(reasons[f"{other.name}@trn2"])
    assert run(["inspect", str(path)]) == 0
    assert "logical" in capsys.readouterr().out


def test_slim_for_a_machine_that_can_run_nothing(full: Path, tmp_path: Path) -> None:
    with pytest.raises(NoVariant, match="nothing here runs on inf2"):
        bundles.slim(full, tmp_path / "x.lqcd", Machine("inf2"))
    with pytest.raises(UsageError, match="did you mean 'x86-64-v3'"):
        Machine("x86-64-v33")
    assert not (tmp_path / "x.lqcd").exists()


def test_record_signatures_survive_slim_extract_and_merge(full: Path, tmp_path: Path) -> None:
    trusting = policy(tmp_path, key())
    paths = [tmp_path / f"{name}.lqcd" for name in ("v2", "v3", "b1", "all")]
    bundles.slim(full, paths[0], Machine("x86-64-v2"))
    bundles.slim(full, paths[1], Machine("x86-64-v3"))
    bundles.extract(full, paths[2], ["*-b1@*"])
    bundles.merge(paths[:3], paths[3], name="all")
    for path in paths:
        with opened(path) as bundle:
            assert "every record signed by alice" in trusting.judge(bundle).fact
    assert names(paths[3]) == names(paths[0]) | names(paths[1]) | names(paths[2])


def test_merging_the_parts_gives_the_whole_whatever_the_order(full: Path, tmp_path: Path) -> None:
    parts = [tmp_path / f"{t}.lqcd" for t in TARGETS]
    for part, target in zip(parts, TARGETS, strict=True):
        bundles.extract(full, part, [f"*@{target}"])
    merged = twice(tmp_path, lambda out: bundles.merge(parts if out.stem == "1st" else parts[::-1], out, name="whole"))
    assert names(merged) == names(full)


def test_merge_refuses_two_codes_for_one_variant(full: Path, tmp_path: Path) -> None:
    other = built(tmp_path / "other", variants(), FakeToolchain(version="other"))
    bundles.create(other, tmp_path / "other.lqcd", name="other")
    with pytest.raises(UsageError, match="has other machine code for wilson-4x4x4x4-f64-b"):
        bundles.merge([full, tmp_path / "other.lqcd"], tmp_path / "x.lqcd", name="x")


def test_extract_names_the_nearest_where_nothing_matches(full: Path, tmp_path: Path) -> None:
    with pytest.raises(NoVariant, match="is not here, did you mean 'wilson-4x4x4x4-f64-b1@aarch64'"):
        bundles.extract(full, tmp_path / "x.lqcd", ["wilson-4x4x4x4-f64-b1@aarch6"])


def test_export_wipe_import_gives_the_same_store(store: Store, tmp_path: Path) -> None:
    bundle = twice(tmp_path, lambda out: bundles.create(store, out, name="closure"))
    sign_bundle(bundle, key())
    fresh = open_store(tmp_path / "fresh", create=True)
    seen: list[tuple[int, int]] = []
    done = import_bundle(bundle, fresh, policy(tmp_path, key()), progress=lambda n, total, _: seen.append((n, total)))
    assert (done.published, done.reused, done.diverged) == (12, 0, 0)
    assert seen == [(n, 12) for n in range(1, 13)]
    assert fresh.verify().is_sound
    assert fresh.list_build_keys() == store.list_build_keys()
    assert [fresh.record(k) for k in fresh.list_build_keys()] == [store.record(k) for k in store.list_build_keys()]
    again = import_bundle(bundle, fresh, policy(tmp_path, key()))
    assert (again.published, again.reused) == (0, 12)
    # Planning with the same toolchain finds everything.
    assert {item.decision for item in planned(variants(), fresh, FakeToolchain())} == {"reuse"}


def test_import_refuses_before_the_store_sees_anything(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "b.lqcd"
    bundles.create(store, path, name="b")
    fresh = open_store(tmp_path / "fresh", create=True)
    with pytest.raises(TrustError, match="is not signed"):
        import_bundle(path, fresh, policy(tmp_path))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptError):
        import_bundle(path, fresh, policy(tmp_path, allow_unsigned=True))
    assert fresh.list_build_keys() == [] and fresh.blobs.digests() == []


def test_a_foreign_record_with_other_bytes_does_not_replace_ours(store: Store, tmp_path: Path) -> None:
    """A trusted signer's build of the same key with other bytes: ours stays, the divergence is recorded."""
    target = store.record(store.list_build_keys()[0])
    assert target is not None
    path = tmp_path / "b.lqcd"
    other = b"other machine code"
    from lqcd_runtime.digest import sha256_hex

    digest = sha256_hex(other)
    code = {**target["outputs"]["code"], "sha256": digest, "size": len(other)}
    changed = {**target, "outputs": {"code": code}}
    write_content(bundles.of_records("b", {target["build_key"]: changed}, lambda _: other), path)
    done = import_bundle(path, store, policy(tmp_path, allow_unsigned=True))
    assert (done.published, done.diverged) == (0, 1)
    assert store.record(target["build_key"]) == target
    assert len(store.records.divergences()) == 1


def test_a_record_under_a_foreign_key_is_refused(store: Store, tmp_path: Path) -> None:
    """Else it would later be served for a build it is not, however well signed."""
    first, second = (store.record(k) for k in store.list_build_keys()[:2])
    assert first is not None and second is not None
    poisoned = {**first, "build_key": second["build_key"]}
    path = tmp_path / "b.lqcd"
    write_content(bundles.of_records("b", {poisoned["build_key"]: poisoned}, store.read_blob), path)
    fresh = open_store(tmp_path / "fresh", create=True)
    with pytest.raises(CorruptError, match="its build key is not that of its components"):
        import_bundle(path, fresh, policy(tmp_path, allow_unsigned=True))
    assert fresh.list_build_keys() == []


def test_content_read_and_written_is_the_same_file(full: Path, tmp_path: Path) -> None:
    """But for the manifest's signature, which belongs to the signer alone."""
    with opened(full) as bundle:
        write_content(content_of(bundle), tmp_path / "again.lqcd")
        with opened(tmp_path / "again.lqcd") as again:
            assert again.manifest_sha256 == bundle.manifest_sha256
    sign_bundle(tmp_path / "again.lqcd", key())
    assert (tmp_path / "again.lqcd").read_bytes() == full.read_bytes()


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    path = tmp_path / "r.toml"
    path.write_text("# any file", encoding="ascii")
    return path


def test_a_lock_holds_builds_to_keys_and_bytes(store: Store, tmp_path: Path, recipe_file: Path) -> None:
    items = planned(variants(), store, FakeToolchain())
    lock = make_lock(items, store, recipe_file, "made")
    for path in (tmp_path / "a.lock.toml", tmp_path / "b.lock.toml"):
        write_lock(lock, path)
    assert (tmp_path / "a.lock.toml").read_bytes() == (tmp_path / "b.lock.toml").read_bytes()
    assert read_lock(tmp_path / "a.lock.toml") == lock
    check_plan(lock, items, recipe_file)
    check_bytes(lock, store)
    with pytest.raises(LockError, match="1 differences") as caught:
        check_plan(lock, items[1:], recipe_file)
    assert f"{items[0].variant.name}: is in the lock only" in str(caught.value)
    with pytest.raises(LockError, match="12 differences"):
        check_plan(lock, planned(variants(), store, FakeToolchain(version="other")), recipe_file)
    recipe_file.write_text("# another file", encoding="ascii")
    with pytest.raises(LockError, match="recipe file"):
        check_plan(lock, items, recipe_file)


def test_a_lock_refuses_other_bytes_under_the_same_key(store: Store, tmp_path: Path, recipe_file: Path) -> None:
    lock = make_lock(planned(variants(), store, FakeToolchain()), store, recipe_file, "made")
    name, pin = next(iter(lock.pins.items()))
    wrong = lock._replace(pins={**lock.pins, name: pin._replace(sha256="0" * 64)})
    with pytest.raises(LockError, match="does not hold what was locked, 1 differences"):
        check_bytes(wrong, store)


def test_nothing_half_built_is_locked(tmp_path: Path, recipe_file: Path) -> None:
    store = built(tmp_path / "s", variants(("x86-64-v2",)))
    with pytest.raises(UsageError, match="9 artifacts are not in store"):
        make_lock(planned(variants(), store, FakeToolchain()), store, recipe_file, "made")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", CorruptError),
        ("schema = 3", CorruptError),
        ('schema = "lqcd-aot/lock/v2"', TooNewError),
        ('schema = "lqcd-aot/lock/v1"\n[[artifact]]\nname = 1', CorruptError),
        ("\0", CorruptError),
        ("a = " + "[" * 5000, CorruptError),
    ],
)
def test_what_is_no_lock(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_lock(text.encode(), "lock x")
