"""From a build to another machine, through the command line: lock, pack, sign, push, pull, import, rebuild, report.

One recipe is compiled by the real compiler; what arrives is loaded in a process without network, compiler and torch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from lqcd_aot.cli import run
from lqcd_runtime.target import this_host

RECIPE = """schema = 1
name = "shipped"
[axes]
operator = ["wilson", "wilson_dagger", "plaquette"]
lattice = "4x4x2x2"
dtype = "float32"
target = ["x86-64-v2", "x86-64-v3", "aarch64"]
"""
Call = Callable[..., Any]

# A machine at the other end: no sockets, no processes, no torch, no compiler; then every artifact is loaded and used.
ARRIVAL = """
import sys
def refuse(event, arguments):
    if event.startswith("socket.") or event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork"):
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(refuse)
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "ziglang", "obstore", "oras", "requests"):
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
from lqcd_aot.ship.closure import import_bundle
from lqcd_aot.store import open_store
from lqcd_aot.trust import Policy, Trusted
bundle, store, trusted = sys.argv[1:]
done = import_bundle(bundle, open_store(store, create=True), Policy(Trusted(trusted)))
import lqcd_runtime
from lqcd_runtime.fields import random_links
from lqcd_runtime.target import this_host
links = random_links((4, 4, 2, 2), 1).astype("complex64")
loaded = 0
with lqcd_runtime.open(store) as opened:
    for entry in opened.entries():
        if this_host().refusal(entry.target) is None:
            assert opened.load(entry) is not None
            loaded += 1
    checks = [c.status for c in lqcd_runtime.selfcheck(opened)]
    psi = links[..., 0, :, 0][..., None, :].repeat(4, -2).copy()
    opened.operator("wilson", gauge=links, mass=0.1, dtype="float32").apply(psi)
assert "failed" not in checks
print(done.published, loaded, checks.count("passed"))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recipe, its store, and settings with a key."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "r.toml").write_text(RECIPE, encoding="utf-8")
    assert run(["build", str(folder / "r.toml"), "--store", str(folder / "store"), "-q"]) == 0
    return folder


@pytest.fixture
def call(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a verb in the place with its own settings; JSON result, or (with code) the error."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("LQCD_AOT_CONFIG", str(place / "config"))

    def invoke(*arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert run([*arguments, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    if not (place / "config").exists():
        invoke("keygen", "alice")
    return invoke


@pytest.fixture
def packed(call: Call, place: Path) -> Path:
    """The signed bundle with its documents."""
    path = place / "r.lqcd"
    if not path.exists():
        call("pack", "r.toml", "--store", "store", "-o", "r.lqcd", "--provenance", "--sbom", "--sign")
    return path


def test_what_arrives_elsewhere_loads_without_network_compiler_and_torch(packed: Path, place: Path, tmp_path: Path) -> None:
    trusted = str(place / "config" / "trusted")
    command = [sys.executable, "-I", "-c", ARRIVAL, str(packed), str(tmp_path / "fresh"), trusted]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    runnable = sum(this_host().refusal(t) is None for t in ("x86-64-v2", "x86-64-v3", "aarch64"))
    assert done.stdout.split() == ["9", str(3 * runnable), str(3 * runnable)]


def test_a_key_that_could_not_be_trusted_leaves_no_files(call: Call, tmp_path: Path) -> None:
    """The name is trusted with another key: nothing is written, so the same command works once that is settled."""
    error = call("keygen", "alice", "--out", str(tmp_path / "new"), code=2)
    assert "another key already" in json.dumps(error) and not (tmp_path / "new").exists()
    call("keygen", "alice", "--out", str(tmp_path / "new"), "--no-trust")
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["alice.key", "alice.pub"]


def test_without_a_key_of_ones_own_the_hint_names_both_ways(
    packed: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("keygen", "mine", "--out", str(tmp_path / "keys"), "--no-trust")
    monkeypatch.setenv("LQCD_AOT_CONFIG", str(tmp_path / "config"))
    error = json.dumps(call("sign", str(packed), code=2))
    assert "--key FILE" in error and "keygen NAME" in error


def test_a_lock_file_keeps_its_artifacts_while_it_is_there(call: Call, place: Path) -> None:
    """From `lock` on; `pack --locked` says so of a lock that was moved; `gc` releases what is gone."""

    def locks() -> dict[str, bool]:
        return {
            Path(root["name"]).name: root["over"] for root in call("store", "pins", "--store", "store") if root["kind"] == "lock"
        }

    call("lock", "r.toml", "--store", "store", "-o", "kept.lock.toml")
    assert locks() == {"kept.lock.toml": False}
    (root,) = [root for root in call("store", "pins", "--store", "store") if root["kind"] == "lock"]
    assert len(root["build_keys"]) == 9
    (place / "kept.lock.toml").rename(place / "moved.lock.toml")
    assert locks() == {"kept.lock.toml": True}
    call("pack", "r.toml", "--store", "store", "-o", "locked.lqcd", "--locked", "moved.lock.toml")
    assert locks() == {"kept.lock.toml": True, "moved.lock.toml": False}
    call("store", "gc", "--store", "store")
    assert locks() == {"moved.lock.toml": False}
    (place / "moved.lock.toml").unlink()
    call("build", "r.toml", "--store", "store")
    call("store", "gc", "--store", "store")
    assert locks() == {}
    assert [(root["kind"], root["file"], root["over"]) for root in call("store", "pins", "--store", "store")] == [
        ("recipe", str(place.resolve() / "r.toml"), False)
    ]


def test_packed_twice_is_byte_identical_with_documents_and_signature(call: Call, packed: Path, place: Path) -> None:
    call("pack", "r.toml", "--store", "store", "-o", "again.lqcd", "--provenance", "--sbom", "--sign")
    assert (place / "again.lqcd").read_bytes() == packed.read_bytes()


def test_verify_and_trust(call: Call, packed: Path) -> None:
    facts = call("verify", str(packed))
    assert facts["trusted"] and facts["by"] == ["alice"]
    assert {s["kind"] for s in facts["signatures"]} == {"manifest", "records"}
    (alice,) = call("trust", "list")
    call("trust", "remove", "alice")
    try:
        assert not call("verify", str(packed), code=13)["trusted"]
        assert "no trusted key vouches" in call("store", "import", str(packed), "--store", "s2", code=13)["fact"]
    finally:
        call("trust", "add", "config/keys/alice.pub")
    assert call("trust", "list") == [alice]


def test_one_changed_byte_is_refused_and_named(call: Call, packed: Path, tmp_path: Path) -> None:
    data = bytearray(packed.read_bytes())
    data[len(data) * 2 // 3] ^= 4
    (tmp_path / "bad.lqcd").write_bytes(data)
    error = call("store", "import", str(tmp_path / "bad.lqcd"), "--store", "s3", code=12)
    assert "bad.lqcd" in error["fact"]


def test_the_bill_of_materials_is_valid_and_complete(packed: Path) -> None:
    from lqcd_aot.ship.content import content_of, opened
    from lqcd_aot.ship.documents import SBOM

    with opened(packed) as bundle:
        content = content_of(bundle)
        bill = content.documents[SBOM]
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.decode()) is None
    libraries = {c["name"]: c["hashes"][0]["content"] for c in json.loads(bill)["components"] if c["type"] == "library"}
    assert libraries == {e.name: e.code["sha256"] for e in content.entries()}
    (compiler,) = [c for c in json.loads(bill)["components"] if c["type"] == "application"]
    assert compiler["name"] == "zig c++" and compiler["scope"] == "excluded"


def test_provenance_names_recipe_commit_and_compiler(call: Call, packed: Path, place: Path, tmp_path: Path) -> None:
    from lqcd_aot.ship.content import content_of, opened
    from lqcd_aot.ship.documents import PROVENANCE
    from lqcd_runtime.digest import sha256_hex

    def statement(path: Path) -> Any:
        with opened(path) as bundle:
            return json.loads(content_of(bundle).documents[PROVENANCE])

    found = statement(packed)
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == "https://slsa.dev/provenance/v1"
    assert len(found["subject"]) == 9
    definition = found["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["recipe"]["sha256"] == sha256_hex(RECIPE.encode())
    assert [d["name"] for d in definition["resolvedDependencies"]] == ["zig c++"]  # the folder is no checkout
    assert "metadata" not in found["predicate"]["runDetails"]
    # In a checkout: the commit, clean; then dirty.
    (tmp_path / "r.toml").write_text(RECIPE, encoding="utf-8")
    for command in (["init", "-q"], ["add", "r.toml"], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()
    out, store = tmp_path / "o.lqcd", str(place / "store")
    for dirty in (False, True):
        call("pack", str(tmp_path / "r.toml"), "--store", store, "-o", str(out), "--provenance", "--epoch", "86400")
        (checkout, _) = statement(out)["predicate"]["buildDefinition"]["resolvedDependencies"]
        assert checkout == {"name": "checkout", "digest": {"gitCommit": head}, "annotations": {"dirty": dirty}}
        assert statement(out)["predicate"]["runDetails"]["metadata"] == {"finishedOn": "1970-01-02T00:00:00Z"}
        (tmp_path / "r.toml").write_text(RECIPE + "# changed\n", encoding="utf-8")


def test_slim_keeps_the_documents_true(call: Call, packed: Path, place: Path) -> None:
    from lqcd_aot.ship.content import content_of, opened
    from lqcd_aot.ship.documents import PROVENANCE, SBOM

    assert call("bundle", "slim", str(packed), "-o", "slim.lqcd", "--target", "x86-64-v2")["count"] == 3
    with opened(place / "slim.lqcd") as bundle:
        documents = content_of(bundle).documents
    assert len(json.loads(documents[PROVENANCE])["subject"]) == 3
    assert sum(c["type"] == "library" for c in json.loads(documents[SBOM])["components"]) == 3


def test_locked_builds_and_packs(call: Call, place: Path, tmp_path: Path) -> None:
    assert len(call("lock", "r.toml", "--store", "store")["artifacts"]) == 9
    assert {r["outcome"] for r in call("build", "r.toml", "--store", "store", "--locked", "r.lock.toml")} == {"reused"}
    call("pack", "r.toml", "--store", "store", "-o", str(tmp_path / "l.lqcd"), "--locked", "r.lock.toml")
    changed = tmp_path / "r.toml"
    changed.write_text(RECIPE.replace('"plaquette"', '"plaquette", "wilson_hop"'), encoding="utf-8")
    error = call("build", str(changed), "--store", "store", "--locked", "r.lock.toml", code=1)
    assert "wilson_hop-4x4x2x2-f32-b1@aarch64: is not in the lock" in error["details"]
    text = (place / "r.lock.toml").read_text()
    wrong = tmp_path / "wrong.lock.toml"
    sha = text.partition("sha256 = ")[2].partition("sha256 = ")[2][1:65]
    wrong.write_text(text.replace(sha, "0" * 64))
    assert "does not hold what was locked" in call("pack", "r.toml", "--store", "store", "--locked", str(wrong), code=1)["fact"]


def test_push_pull_and_sync_through_a_folder(call: Call, packed: Path, place: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/remote"
    assert call("push", str(packed), url)["skipped"] == 0
    assert call("pull", url, "--list") == ["shipped"]
    done = call("pull", url, "shipped", "--store", str(tmp_path / "s"), "--target", "aarch64")
    assert (done["imported"]["published"], done["artifacts"]) == (3, 9)
    (tmp_path / "bundles").mkdir()
    assert call("sync", str(tmp_path / "bundles"), url, "--store", str(tmp_path / "s"))["pulled"] == ["shipped"]
    assert (tmp_path / "bundles" / "shipped.lqcd").read_bytes() == packed.read_bytes()


def test_export_and_import(call: Call, place: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.lqcd"
    call("store", "export", "wilson-*", "--store", "store", "-o", str(out), "--sign")
    done = call("store", "import", str(out), "--store", str(tmp_path / "fresh"))
    assert (done["published"], done["verdict"]["by"]) == (3, ["alice"])
    rows = call("plan", "r.toml", "--store", str(tmp_path / "fresh"))
    assert {r["name"].partition("-")[0] for r in rows if r["decision"] == "reuse"} == {"wilson"}


def test_rebuilding_gives_the_same_bytes(call: Call, place: Path) -> None:
    (wilson, *_) = call("ls", "store", "--operator", "wilson", "--target", "x86-64-v2")
    (result,) = call("rebuild", wilson["build_key"][:12], "--check", "--store", "store")
    assert (result["name"], result["outcome"]) == (wilson["name"], "equal")
    assert "names 0 artifacts" in call("rebuild", "ffffffffffff", "--check", "--store", "store", code=2)["fact"]


def test_the_report_of_a_real_store(call: Call, place: Path) -> None:
    facts = call("report", "--store", "store", "-o", "report.html")
    assert (facts["artifacts"], facts["failures"]) == (9, 0)
    assert facts["builds"] >= 1  # the first one, and those of other tests that found everything there
    assert "wilson_dagger" in (place / "report.html").read_text()
