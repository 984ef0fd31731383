"""Fixtures that all tests share, and the line that says which real components they ran against."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.support import components

# A property says what is true, never how long it takes: a busy machine must not fail it.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

pytest_plugins = ["tests.fixtures.postgres", "tests.fixtures.store"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Ends the report with what the tests ran against."""
    ran = sum(len(terminalreporter.stats.get(outcome, ())) for outcome in ("passed", "failed"))
    terminalreporter.write_line(f"{ran} tests ran against: {components.summary()}")
