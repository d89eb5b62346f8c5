"""What all crash tests share: no pauses between the looks of a reader in memory, and the number of cases, printed at the end."""

from __future__ import annotations

from collections import Counter

import pytest

COUNTED: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lqcd_aot.store.fs.FIRST_PAUSE_SECONDS", 0.0)


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Counter[str]:
    """Add to it what was enumerated."""
    return COUNTED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if COUNTED:
        parts = ", ".join(f"{number} {name}" for name, number in COUNTED.items())
        terminalreporter.write_line(f"crash and fault cases without a bad state: {COUNTED.total()} ({parts})")
