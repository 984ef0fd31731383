"""Fixtures that all tests share, and the line that says which real components they ran against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.support import components, evidence

# A property says what is true, never how long it takes: a busy machine must not fail it.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

pytest_plugins = ["tests.fixtures.postgres", "tests.fixtures.store"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses tests of one id: side by side, all but one of them would be left out without a word."""
    twice = [nodeid for nodeid, count in Counter(item.nodeid for item in items).items() if count > 1]
    if twice:
        raise pytest.UsageError(f"several tests have the id {twice[0]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds to the report of a failure what the programs of its system complained of: their logs are gone afterwards."""
    report = yield
    if report.failed:
        fixtures = getattr(item, "funcargs", {}).values()
        report.sections += [(f"last complaints of {name}", text) for name, text in evidence.loud_lines(fixtures)]
    return report


# Tests that run side by side have processes of their own, which tell the one that prints the report what it ends with.


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In such a process: tells it."""
    if told := getattr(session.config, "workeroutput", None):
        told["components"] = components.noted()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """In the one that prints: takes it."""
    components.note_all(getattr(node, "workeroutput", {}).get("components", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Ends the report with what the tests ran against."""
    ran = sum(len(terminalreporter.stats.get(outcome, ())) for outcome in ("passed", "failed"))
    terminalreporter.write_line(f"{ran} tests ran against: {components.summary()}")
