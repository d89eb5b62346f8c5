"""Push, pull and sync against real servers on the loopback address; what a hostile or broken remote cannot do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import lqcd_runtime
from lqcd_aot.build.pack import pack, wanted
from lqcd_aot.compilers import FakeToolchain
from lqcd_aot.ship.choose import Machine
from lqcd_aot.ship.pull import pull
from lqcd_aot.ship.push import push
from lqcd_aot.ship.remotes import base
from lqcd_aot.ship.remotes.base import Remote, RemoteError
from lqcd_aot.ship.remotes.folder import FolderRemote
from lqcd_aot.ship.remotes.http import HttpRemote
from lqcd_aot.ship.remotes.locate import locate
from lqcd_aot.ship.remotes.shelf import parse_reference
from lqcd_aot.ship.sync import sync
from lqcd_aot.store import Store, open_store
from lqcd_aot.trust.sign import sign_bundle
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.errors import CorruptError, LqcdError, NoVariant, TrustError, UsageError
from tests.contracts.servers import oci_registry, registry_binary, s3_server, web_server
from tests.contracts.test_ship import RECIPE, built, names, variants
from tests.contracts.test_trust import key, policy
from tests.crash.fake_build import planned

KINDS = ["folder", "s3", "oci-layout", "oci"]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed bundle of three specs for four targets."""
    folder = tmp_path_factory.mktemp("full")
    store = built(folder / "store", variants())
    path = folder / "full.lqcd"
    pack(store, wanted(planned(variants(), store, FakeToolchain())), path, name="made", recipe=RECIPE)
    sign_bundle(path, key())
    return path


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("s3")) as url:
        yield url


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not registry_binary():
        absent = "no registry program here: apt-get install docker-registry"
        assert "CI" not in os.environ, absent
        pytest.skip(absent)
    with oci_registry(tmp_path_factory.mktemp("registry")) as host:
        yield host


@pytest.fixture
def remote(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Remote:
    """An empty remote of the kind that the test is parametrized with."""
    kind = request.param
    if kind == "folder":
        return locate(str(tmp_path / "remote"))
    if kind == "oci-layout":
        return locate(f"oci-layout://{tmp_path}/layout")
    if kind == "oci":
        return locate(f"oci://{request.getfixturevalue('registry')}/{tmp_path.name.replace('_', '-')}/artifacts")
    for name, value in (
        ("ACCESS_KEY_ID", "test"),
        ("SECRET_ACCESS_KEY", "test"),
        ("REGION", "us-east-1"),
        ("ALLOW_HTTP", "true"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("s3"))
    return locate(f"s3://shelf/{tmp_path.name}")


def fresh(tmp_path: Path, name: str = "fresh") -> Store:
    return open_store(tmp_path / name, create=True)


@pytest.mark.parametrize("remote", KINDS, indirect=True)
def test_what_was_pushed_is_pulled_byte_for_byte(remote: Remote, full: Path, tmp_path: Path) -> None:
    first = push(full, remote)
    assert first.sent > 0 and first.skipped == 0
    again = push(full, remote)
    assert (again.sent, again.skipped) == (0, first.sent)
    assert remote.names() == ["made"]
    store = fresh(tmp_path)
    done = pull(remote, "made", store, policy(tmp_path, key()), out=tmp_path / "back.lqcd")
    assert (tmp_path / "back.lqcd").read_bytes() == full.read_bytes()
    assert done.imported.published == done.artifacts == 12
    assert done.imported.verdict.by == ("alice",)
    assert store.verify().is_sound


@pytest.mark.parametrize("remote", KINDS, indirect=True)
def test_a_name_is_not_replaced_unasked(remote: Remote, full: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.lqcd"
    lone = built(tmp_path / "other", variants(("x86-64-v2",)))
    pack(lone, wanted(planned(variants(("x86-64-v2",)), lone, FakeToolchain())), other, name="made", recipe=RECIPE)
    push(full, remote)
    with pytest.raises(UsageError, match="made stands for another bundle"):
        push(other, remote)
    push(other, remote, name="other")
    push(other, remote, replace=True)
    assert remote.names() == ["made", "other"]
    done = pull(remote, "made", fresh(tmp_path), policy(tmp_path, allow_unsigned=True))
    assert done.artifacts == 3
    with pytest.raises(RemoteError, match="absent: is not there"):
        pull(remote, "absent", fresh(tmp_path), policy(tmp_path))


@pytest.mark.parametrize("remote", KINDS, indirect=True)
def test_a_lost_race_for_a_name_is_noticed(remote: Remote, full: Path) -> None:
    """The condition of the put itself, not only the look before it."""
    from lqcd_aot.ship.content import opened
    from lqcd_aot.ship.remotes.shelf import shelve

    push(full, remote)
    with opened(full) as bundle:
        shelf, _, _ = shelve(bundle, "made")
    assert not remote.write_ref("made", shelf, None)
    assert not remote.write_ref("made", shelf, b"what was never there")
    assert remote.write_ref("made", shelf, remote.read_ref("made"))


def test_partial_pull_fetches_little_more_than_it_needs(tmp_path: Path) -> None:
    """Code of 40 kB for each of 8 specs and 4 targets, as real ones have: one target costs <= 1.1 of its code and records."""
    from lqcd_runtime.signature import Spec
    from tests.made import bundle_bytes
    from tests.real_keys import keyed_record

    codes, records = [], []
    for batch in range(1, 9):
        for target in ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"):
            code = f"{batch} {target} ".encode() * 4000
            codes.append(code)
            records.append(keyed_record(Spec("wilson", (4, 4, 4, 4), batch=batch), target, code))
    path = tmp_path / "b.lqcd"
    path.write_bytes(bundle_bytes(records, codes))
    sign_bundle(path, key(), records=False)
    remote = FolderRemote(tmp_path / "remote")
    push(path, remote)
    with web_server(tmp_path / "remote") as server:
        store = fresh(tmp_path)
        done = pull(HttpRemote(server.url), "made", store, policy(tmp_path, key()), machine=Machine("x86-64-v3"))
        assert done.bytes == server.sent
        needed = [r for r in records if r["target"] == "x86-64-v3"]
        size = sum(r["outputs"]["code"]["size"] + len(canonical_json(r)) for r in needed)
        assert done.imported.published == len(needed) == 8
        assert server.sent <= 1.1 * size
        # reference; head together; records; then one request for each blob.
        blobs = len({r["outputs"]["code"]["sha256"] for r in needed})
        head = [p for p in server.requests if "/refs/" in p]
        assert len(server.requests) == blobs + len(head) + 4 + 1
        before = server.sent
        again = pull(HttpRemote(server.url), "made", store, policy(tmp_path, key()), machine=Machine("x86-64-v3"))
        assert again.imported.reused == 8
        assert server.sent - before <= 0.1 * size  # no blob twice


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_broken_connections_are_resumed(full: Path, tmp_path: Path, knows_ranges: bool) -> None:
    push(full, FolderRemote(tmp_path / "remote"))
    with web_server(tmp_path / "remote", knows_ranges=knows_ranges) as server:
        server.breaks = base.ATTEMPTS - 1
        done = pull(HttpRemote(server.url), "made", fresh(tmp_path), policy(tmp_path, key()), out=tmp_path / "back.lqcd")
        assert server.breaks == 0
        assert done.imported.published == 12
    assert (tmp_path / "back.lqcd").read_bytes() == full.read_bytes()


def test_a_remote_that_keeps_breaking_is_one_clear_error_and_the_next_pull_goes_on(full: Path, tmp_path: Path) -> None:
    push(full, FolderRemote(tmp_path / "remote"))
    store = fresh(tmp_path)
    with web_server(tmp_path / "remote") as server:
        server.breaks = 1000
        with pytest.raises(RemoteError, match="run the same command again"):
            pull(HttpRemote(server.url), "made", store, policy(tmp_path, key()))
        assert store.list_build_keys() == []
        server.breaks = 0
        assert pull(HttpRemote(server.url), "made", store, policy(tmp_path, key())).imported.published == 12
    with pytest.raises(RemoteError, match="does not answer"):
        pull(HttpRemote(server.url), "made", store, policy(tmp_path, key()))


def test_plain_http_cannot_be_written_or_listed(full: Path) -> None:
    remote = HttpRemote("http://127.0.0.1:9")
    with pytest.raises(UsageError, match="does not list"):
        remote.names()
    for call in (lambda: remote.write("0" * 64, b""), lambda: remote.has(base.Object("0" * 64, 0, ""))):
        with pytest.raises(UsageError, match="can only be read"):
            call()


def test_unsigned_and_unknown_are_refused_before_anything_is_taken(full: Path, tmp_path: Path) -> None:
    from lqcd_aot.ship.bundles import extract
    from lqcd_aot.ship.content import content_of, opened, write_content

    with opened(full) as bundle:
        write_content(content_of(bundle)._replace(signers={}), tmp_path / "unsigned.lqcd")
    remote = FolderRemote(tmp_path / "remote")
    push(tmp_path / "unsigned.lqcd", remote, name="unsigned")
    extract(full, tmp_path / "part.lqcd", ["*-b1@*"])
    push(tmp_path / "part.lqcd", remote, name="part")
    store = fresh(tmp_path)
    with pytest.raises(TrustError, match="is not signed"):
        pull(remote, "unsigned", store, policy(tmp_path))
    with pytest.raises(TrustError, match="no trusted key vouches"):
        pull(remote, "part", store, policy(tmp_path))
    assert store.list_build_keys() == [] and store.blobs.digests() == []
    assert pull(remote, "part", store, policy(tmp_path, key())).imported.verdict.trusted


def test_one_changed_byte_anywhere_at_the_remote_is_refused(full: Path, tmp_path: Path) -> None:
    """Every object and the reference, the first, middle or last byte in turn: never a wrong artifact, never a crash."""
    remote = FolderRemote(tmp_path / "remote")
    push(full, remote)
    files = sorted(p for p in (tmp_path / "remote").rglob("*") if p.is_file())
    refused = 0
    for n, file in enumerate(files):
        data = file.read_bytes()
        for at in [(0, len(data) // 2, len(data) - 1)[n % 3]]:
            file.chmod(0o644)
            file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            store = fresh(tmp_path, f"s{n}-{at}")
            try:
                pull(remote, "made", store, policy(tmp_path, key()))
            except LqcdError:
                refused += 1
            else:
                # Only the name inside the reference is not vouched for; nothing is done with it.
                assert file.parent.name == "refs"
            assert store.verify().is_sound
            assert store.list_build_keys() == [] or file.parent.name == "refs"
        file.write_bytes(data)
    assert refused >= len(files) - 1


def test_references_that_are_none() -> None:
    sound = {
        "schema": "lqcd-aot/remote/v1",
        "name": "x",
        "manifest_sha256": "0" * 64,
        "objects": {label: {"sha256": "0" * 64, "size": 1} for label in ("manifest.json", "members.json", "index.bin")},
    }
    assert parse_reference(json.dumps(sound).encode(), "r").name == "x"
    bad: list[dict[str, object]] = [
        {"objects": {}},
        {"objects": 3},
        {"objects": {**sound["objects"], "x": {"sha256": "../../etc", "size": 1}}},  # type: ignore[dict-item]
        {"objects": {**sound["objects"], "x": {"sha256": "0" * 64, "size": -1}}},  # type: ignore[dict-item]
        {"objects": {**sound["objects"], "x": {"sha256": "0" * 64, "size": 1 << 40}}},  # type: ignore[dict-item]
        {"objects": {**sound["objects"], **{f"signatures/{i}": {"sha256": "0" * 64, "size": 1} for i in range(65)}}},  # type: ignore[dict-item]
        {"manifest_sha256": "1" * 64},
        {"name": 3},
        {"schema": "x"},
    ]
    for change in bad:
        with pytest.raises(CorruptError):
            parse_reference(json.dumps(sound | change).encode(), "r")
    with pytest.raises(CorruptError, match="too large"):
        parse_reference(b" " * (base.LARGEST_REF + 1), "r")


def test_an_object_larger_than_said_is_given_up_early(tmp_path: Path) -> None:
    remote = FolderRemote(tmp_path)
    data = b"x" * (3 << 20)
    remote.write(sha256_hex(data), data)
    with pytest.raises(CorruptError, match="larger than it may be"):
        base.fetch(remote, sha256_hex(data), 10)


@pytest.mark.parametrize("remote", ["folder", "s3", "oci"], indirect=True)
def test_sync_makes_both_sides_equal_and_reports_conflicts(remote: Remote, full: Path, tmp_path: Path) -> None:
    from lqcd_aot.ship.bundles import slim

    here = tmp_path / "here"
    here.mkdir()
    slim(full, here / "mine.lqcd", Machine("x86-64-v2"))
    slim(full, here / "both.lqcd", Machine("aarch64"))
    push(full, remote, name="theirs")
    store = fresh(tmp_path)
    trusting = policy(tmp_path, key())
    done = sync(here, remote, store, trusting)
    assert (done.pushed, done.pulled) == (("both", "mine"), ("theirs",))
    assert (here / "theirs.lqcd").read_bytes() == full.read_bytes()
    assert names(here / "mine.lqcd") == {v.name for v in variants(("x86-64-v2",))}
    assert sync(here, remote, store, trusting).same == ("both", "mine", "theirs")
    slim(full, here / "both.lqcd", Machine("x86-64-v4"))
    done = sync(here, remote, store, trusting)
    assert (done.pushed, done.pulled, done.conflicts) == ((), (), ("both",))


def test_pulled_artifacts_are_found_by_the_runtime(full: Path, tmp_path: Path) -> None:
    remote = FolderRemote(tmp_path / "remote")
    push(full, remote)
    store = fresh(tmp_path)
    with pytest.raises(NoVariant):
        pull(remote, "made", store, policy(tmp_path, key()), machine=Machine("trn1"))
    pull(remote, "made", store, policy(tmp_path, key()), machine=Machine("aarch64"))
    with lqcd_runtime.open(store.root) as opened:
        assert {e.name for e in opened.entries()} == {v.name for v in variants(("aarch64",))}


def test_urls(tmp_path: Path) -> None:
    assert locate(f"file://{tmp_path}/a%20b").url.endswith("/a%20b")
    with pytest.raises(UsageError, match="unknown scheme"):
        locate("ftp://host/x")
    with pytest.raises(UsageError, match="names no repository"):
        locate("oci://host")
    for name in ("../x", "", "a/b", "x" * 129):
        with pytest.raises(UsageError, match="cannot be used"):
            base.checked_name(name)
