"""A home that is read-only, or no home at all: every verb works or refuses in one message, and plots are made without remarks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lqcd_aot import settings
from lqcd_runtime.errors import LqcdError

PLOT = """
import sys
from pathlib import Path
import numpy as np
from lqcd_aot.measure.plot import plot_pion
plot_pion(Path(sys.argv[1]), np.cosh(np.arange(8) - 4.0), title="title")
import os, matplotlib
print(matplotlib.get_cachedir(), os.environ.get("MPLCONFIGDIR"), os.environ.get("XDG_CACHE_HOME"))
"""


@pytest.fixture
def no_home(tmp_path: Path) -> str:
    """A home below a file: nothing can be written there, not even by root."""
    (tmp_path / "file").write_text("")
    return str(tmp_path / "file" / "home")


def run(tmp_path: Path, home: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A fresh process that knows PATH, HOME and a temporary folder of its own."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": str(tmp_path / "tmp"), **variables}
    if path := os.environ.get("PYTHONPATH"):
        environment["PYTHONPATH"] = path
    return subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, timeout=120)


def test_a_plot_is_made_without_remarks_and_leaves_nothing_behind(tmp_path: Path, no_home: str) -> None:
    done = run(tmp_path, no_home, "-c", PLOT, str(tmp_path / "a.png"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    folder, *after = done.stdout.split()
    assert folder.startswith(str(tmp_path / "tmp" / "lqcd-plot-")) and after == ["None", "None"]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_users_own_caches_are_used_where_they_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    before = dict(os.environ)
    with settings.plotting_folders():
        assert dict(os.environ) == before
    monkeypatch.setenv("MPLCONFIGDIR", "/somewhere")
    with settings.plotting_folders():
        assert os.environ["MPLCONFIGDIR"] == "/somewhere"


def test_no_temporary_folder_is_one_clear_refusal(no_home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    for name in ("MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", no_home)
    monkeypatch.setattr(settings.tempfile, "mkdtemp", refuse)
    with pytest.raises(LqcdError, match="plot: no folder"), settings.plotting_folders():
        raise AssertionError("not reached")
    assert "MPLCONFIGDIR" not in os.environ


def test_a_user_without_a_home_gets_folders_that_do_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("LQCD_AOT_STORE", "LQCD_AOT_CACHE", "LQCD_AOT_CONFIG", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert settings.default_store() == Path("/nonexistent/.cache/lqcd-aot/store")
    assert settings.config_dir() == Path("/nonexistent/.config/lqcd-aot")


def test_a_verb_without_a_home_that_exists_refuses_in_one_message(tmp_path: Path) -> None:
    done = run(tmp_path, "/nonexistent", "-c", "from lqcd_aot.cli import main; main()", "store", "ls")
    assert done.returncode == 10 and done.stderr.startswith("store /nonexistent/.cache/lqcd-aot/store: is not a store\n")
