"""A user's store over a read-only system store, and one store shared by several users."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import lqcd_runtime
from lqcd_aot.build.execute import build
from lqcd_aot.cli import run
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.settings import system_stores
from lqcd_aot.store import open_store
from lqcd_runtime.errors import StoreError
from tests.crash.fake_build import NoCheck, exit_code, fake_build, fork, planned, some_variants
from tests.crash.records_for_tests import key, publish


def tree(root: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_ino) for p in sorted(root.rglob("*"))}


def test_lookups_go_to_the_users_store_and_then_to_the_systems(tmp_path: Path) -> None:
    """plan, build, pack, the runtime: all see both; nothing is written below."""
    system, user = tmp_path / "system", tmp_path / "user"
    toolchain = FakeToolchain()
    fake_build(system, toolchain, 3)
    before = tree(system)
    store = open_store(user, create=True, layers=[system])
    items = planned(some_variants(5), store, toolchain)
    assert [item.decision for item in items] == ["reuse"] * 3 + ["build"] * 2
    assert items[0].reason.endswith(f"is in the store {system} below it")
    build(items, store, toolchain, checker=NoCheck(), jobs=1)
    again = open_store(user)
    assert len(again.list_build_keys()) == 5
    assert len(again.records.all_keys()) == 2
    both = planned(some_variants(5), again, toolchain)
    assert {item.decision for item in both} == {"reuse"}
    assert [again.layer_of(str(item.build_key)) for item in both] == [str(system)] * 3 + [str(user)] * 2
    for item in both:
        record = again.record(str(item.build_key))
        assert record is not None
        assert again.read_blob(record["outputs"]["code"]["sha256"])
        assert again.records_of_spec(item.spec_key) == {"x86-64-v3": record}
    with lqcd_runtime.open(user) as bundle:
        entries = list(bundle.entries())
        assert {bundle.layer_of(entry) for entry in entries} == {str(system), str(user)}
        assert len(entries) == 5
        for item in both:
            (entry,) = bundle.find(item.variant.spec)
            assert bundle.read_blob(entry.code["sha256"])
            assert bundle.record(entry.build_key)["build_key"] == item.build_key
    assert tree(system) == before


def test_the_users_record_goes_before_the_systems(tmp_path: Path) -> None:
    publish(open_store(tmp_path / "system", create=True), "old", b"of the system")
    user = open_store(tmp_path / "user", create=True, layers=[tmp_path / "system"])
    publish(user, "new", b"of the user")
    assert user.spec_index(key("spec")) == {"x86-64-v3": key("new")}
    assert set(user.list_build_keys()) == {key("old"), key("new")}
    assert user.layer_of(key("old")) == str(tmp_path / "system")


def test_a_layer_that_is_none_is_an_error_and_never_passed_over(tmp_path: Path) -> None:
    user = open_store(tmp_path / "user", create=True)
    Path(user.layout.layers).write_text(f"{tmp_path}/gone\n")
    with pytest.raises(StoreError, match="is not a store"):
        open_store(tmp_path / "user")
    with pytest.raises(StoreError, match="is not a store"):
        lqcd_runtime.open(tmp_path / "user")


def test_the_setting_names_the_system_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(open_store(tmp_path / "system", create=True), "a")
    monkeypatch.setenv("LQCD_AOT_SYSTEM_STORE", str(tmp_path / "system"))
    assert system_stores() == (str(tmp_path / "system"),)
    open_store(tmp_path / "user", create=True)
    assert run(["store", "ls", "--store", str(tmp_path / "user")]) == 0
    out = capsys.readouterr().out
    assert key("a")[:16] in out and str(tmp_path / "system") in out


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become two users")
def test_another_user_reads_and_builds_in_a_shared_store(tmp_path: Path) -> None:
    """C21: made 2775 by one user, built into by a second with a hostile umask, read by both and a stranger without a write."""
    group, first, second, stranger = 4242, 4001, 4002, 4003
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            if folder.stat().st_uid != 0 or not folder.is_relative_to("/tmp"):
                pytest.skip(f"{folder} is closed to other users")
            folder.chmod(folder.stat().st_mode | 0o055)
    root = tmp_path / "shared"
    root.mkdir()
    os.chown(root, first, group)
    root.chmod(0o2775)
    toolchain = FakeToolchain()

    def become(user: int, groups: list[int]) -> None:
        os.setgroups(groups)
        os.setgid(groups[0] if groups else user)
        os.setuid(user)
        os.umask(0o077)

    def make(user: int, count: int) -> None:
        become(user, [group])
        fake_build(root, toolchain, count)

    def read(user: int, groups: list[int]) -> None:
        become(user, groups)
        store = open_store(root)
        for build_key in store.list_build_keys():
            record = store.record(build_key)
            assert record is not None
            assert store.read_blob(record["outputs"]["code"]["sha256"])
        with lqcd_runtime.open(root) as bundle:
            assert len(list(bundle.entries())) == 4

    assert exit_code(fork(lambda: make(first, 2))) == 0
    assert exit_code(fork(lambda: make(second, 4))) == 0
    before = tree(root)
    assert exit_code(fork(lambda: read(second, [group]))) == 0
    assert exit_code(fork(lambda: read(stranger, []))) == 0
    assert tree(root) == before
    store = open_store(root)
    assert len(store.list_build_keys()) == 4
    for path in root.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o2775 if path.is_dir() else 0o444), path
        assert path.stat().st_gid == group, path
    # Each may heal and collect what the other made.
    assert exit_code(fork(lambda: (become(second, [group]), open_store(root).verify(repair=True)))) == 0
