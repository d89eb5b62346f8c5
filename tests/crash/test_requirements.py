"""The 22 requirements on a store that many hosts share, each with the tests that hold us to it. A requirement without one fails.

The public failure behind each: artifact-stores page, section 4.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

# id: (what is required, tests as file::function)
REQUIREMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "C1": ("publish: private file, fsync, one rename of the record last, fsync of the folder",
           ("crash/test_store_faults.py::test_every_call_fails_in_every_way",
            "contracts/test_store.py::test_a_record_whose_bytes_are_absent_is_refused")),
    "C2": ("an artifact is one unit: its record names every file by digest, nothing is found by listing",
           ("contracts/test_store_reader.py::test_wrong_or_absent_blob",
            "crash/test_concurrency.py::test_many_processes_on_one_key")),
    "C3": ("correct with no lock at all",
           ("crash/test_build_many.py::test_32_processes_where_every_lock_is_granted_to_everybody",
            "crash/test_concurrency.py::test_many_processes_on_one_key",
            "crash/test_operations.py::test_everything_may_happen_at_every_call_of_everything")),
    "C4": ("temporary names are unique across hosts and containers, made exclusively, through no link",
           ("contracts/test_store.py::test_temporary_files_of_the_dead_go_and_those_of_the_living_stay",
            "crash/test_requirements.py::test_temporary_names_tell_containers_apart_and_follow_no_link")),
    "C5": ("losing the race is normal; the winner's entry need not be visible",
           ("crash/test_requirements.py::test_the_loser_of_a_race_goes_on_without_seeing_the_winner",)),
    "C6": ("ESTALE, EBUSY and late files pass; cleaning never fails a build",
           ("crash/test_store_faults.py::test_every_call_fails_in_every_way",
            "crash/test_operations.py::test_every_call_fails_in_every_way",
            "crash/test_concurrency.py::test_many_processes_on_one_key")),
    "C7": ("the first writer wins, other bytes are a recorded divergence",
           ("contracts/test_store.py::test_the_first_writer_of_a_key_wins_and_other_bytes_are_a_recorded_divergence",)),
    "C8": ("killed at any call the store is old or new, with at most a temporary file",
           ("crash/test_store_faults.py::test_every_call_fails_in_every_way",
            "crash/test_operations.py::test_every_call_fails_in_every_way",
            "crash/test_build_killed.py::test_kill_9_at_random_points_fifty_times")),
    "C9": ("an invalid entry is a miss, put aside, reported once, healed",
           ("contracts/test_store.py::test_a_corrupt_blob_is_found_put_aside_and_healed",
            "contracts/test_store.py::test_a_damaged_record_is_a_miss_reported_once_that_heals")),
    "C10": ("a record without its bytes is a miss; eviction removes the record before the bytes",
            ("contracts/test_store.py::test_a_deleted_blob_is_a_miss_that_heals",
             "crash/test_operations.py::test_every_call_fails_in_every_way")),
    "C11": ("collection: roots, leases, grace, two phases, interruptible, safe beside everything",
            ("crash/test_operations.py::test_everything_may_happen_at_every_call_of_everything",
             "crash/test_concurrency.py::test_collection_in_a_loop_beside_build_export_and_load",
             "contracts/test_gc.py::test_what_is_kept_and_what_goes")),
    "C12": ("no index is needed to be right: every one is disposable",
            ("contracts/test_store_reader.py::test_without_a_usable_spec_index_the_records_are_looked_at",
             "contracts/test_gc.py::test_disposable_lists_may_be_absent_old_or_broken")),
    "C13": ("full and read-only disks: one clear error, nothing lost, known before compiling",
            ("crash/test_store_faults.py::test_full_or_read_only_store_is_one_clear_error_and_leaves_nothing",
             "crash/test_store_mounts.py::test_a_full_disk_stops_the_build_with_one_clear_error")),
    "C14": ("leases name host, boot, process and start; only the provably dead are passed over",
            ("crash/test_build_killed.py::test_a_dead_builders_lease_is_passed_over_at_once",
             "contracts/test_store.py::test_a_lease_is_held_by_one_and_only_saves_work")),
    "C15": ("failures have a class; only deterministic ones stick, and for that toolchain only",
            ("contracts/test_store.py::test_only_deterministic_failures_stick_and_success_forgets_them",
             "contracts/test_store.py::test_interruptions_and_timeouts_are_never_recorded")),
    "C16": ("the build pool is bounded by memory; resource failures are tried again alone",
            ("contracts/test_build.py::test_memory_bounds_how_many_compile_at_once",
             "contracts/test_build.py::test_resource_failures_are_tried_again_alone_and_the_build_ends_green")),
    "C17": ("one compile is one process family in a private folder, killed whole",
            ("contracts/test_compile_failures.py::test_a_timeout_kills_the_whole_family",
             "contracts/test_compile_failures.py::test_what_a_successful_compile_leaves_running_is_killed_too")),
    "C18": ("machine code is loaded from where it may be executed, never from a predictable shared folder",
            ("contracts/test_engine_cpu.py::test_where_memfd_is_forbidden_a_private_folder_serves_and_vanishes",
             "contracts/test_engine_cpu.py::test_where_nothing_may_be_executed_every_refusal_is_told")),
    "C19": ("the runtime opens a constant number of files and walks no folder",
            ("contracts/test_explain.py::test_ten_thousand_variants_in_one_open_file",)),
    "C20": ("object stores: conditional puts, lost races noticed, bytes before the name",
            ("contracts/test_remotes.py::test_a_lost_race_for_a_name_is_noticed",
             "contracts/test_remotes.py::test_a_name_is_not_replaced_unasked")),
    "C21": ("shared by many users: modes of the store's folder, blobs 0444, no writes on the read path",
            ("contracts/test_store.py::test_permissions_come_from_the_store_folder_not_from_the_umask",
             "contracts/test_store.py::test_reading_writes_nothing",
             "contracts/test_layers.py::test_another_user_reads_and_builds_in_a_shared_store")),
    "C22": ("what was not checked, or failed its witness, never takes the place of what was",
            ("contracts/test_build.py::test_an_artifact_that_computes_wrong_numbers_is_not_published",
             "contracts/test_pack.py::test_a_witness_that_failed_is_never_sealed")),
}  # fmt: skip


def test_all_22_are_here() -> None:
    assert list(REQUIREMENTS) == [f"C{number}" for number in range(1, 23)]


@pytest.mark.parametrize("number", REQUIREMENTS)
def test_every_requirement_has_its_tests(number: str) -> None:
    required, tests = REQUIREMENTS[number]
    assert required and tests
    for name in tests:
        path, _, function = name.partition("::")
        tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
        assert found, f"{number} ({required}): {name} is gone"
        assert any(isinstance(node, (ast.Assert, ast.With)) for node in ast.walk(found[0])), f"{name} asserts nothing"


def test_temporary_names_tell_containers_apart_and_follow_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C4: two containers that are both pid 1 on one host name are two hosts; a planted link is not followed."""
    from lqcd_aot.store import owner
    from lqcd_aot.store.fs import RealFileSystem

    hosts = []
    for namespace in ("pid:[1]", "pid:[2]"):
        monkeypatch.setattr(owner, "_host", None)
        monkeypatch.setattr(owner.os, "readlink", lambda path, namespace=namespace: namespace)
        hosts.append(owner.this_host())
    assert hosts[0] != hosts[1]
    assert owner.this_process().temp_name() != owner.this_process().temp_name()
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "planted").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):
        RealFileSystem().open_new(str(tmp_path / "planted"), 0o644)
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_the_loser_of_a_race_goes_on_without_seeing_the_winner() -> None:
    """C5: the name is taken, and for this client nothing is there (a negative directory entry): our own bytes are as good."""
    from lqcd_aot.store import open_store
    from tests.crash.memory_fs import MemoryFileSystem
    from tests.crash.records_for_tests import key, make_record, publish

    class Blind(MemoryFileSystem):
        """Another client's view: the record of `a` is invisible, its name is taken."""

        def read(self, path: str) -> bytes:
            if key("a") in path and "/records/" in path:
                raise FileNotFoundError(2, "ENOENT", path)
            return super().read(path)

    fs = Blind()
    publish(open_store("/s", create=True, fs=fs), "a")
    store = open_store("/s", fs=fs)
    code = b"code of a" * 9
    assert store.put_blob(code)
    mine = store.publish(make_record("a", code))
    assert mine.outcome == "reused"
    assert store.read_blob(mine.record["outputs"]["code"]["sha256"]) == code
