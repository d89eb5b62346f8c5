"""What all crash tests share: a reader in memory that looks again need not wait in between."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lqcd_aot.store.fs.FIRST_PAUSE_SECONDS", 0.0)
