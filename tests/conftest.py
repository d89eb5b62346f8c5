"""Fixtures shared by all tests: where the published configurations are, one thread for torch, no network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
# A deadline judges the machine, not the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def repo_root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of published configurations and references; the only reason a test may be skipped."""
    if not DATA.is_dir():
        pytest.skip("../shared/data is absent")
    return DATA
