"""Fixtures of the scenarios, and the table that ends their run."""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from tests.chaos.scenario import SEED, Chaos, Row, chaos
from tests.chaos.targets import HttpTargets, Targets
from tests.support.receiver import Receiver, running_receiver

ALL = os.environ.get("TE_CHAOS") == "all"
ROWS: list[Row] = []
TOLD: list[list[str]] = []
"""Lines of the table, from processes that ran some of the scenarios."""

UNRULINESS = 0.05  # nothing is ever quiet

Begin = Callable[..., AbstractAsyncContextManager[Chaos[Any]]]


def pytest_configure(config: pytest.Config) -> None:
    """Names the mark of scenarios that every test run affords."""
    config.addinivalue_line("markers", "quick: a scenario that `make test` runs, too")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` runs the quick ones and says what runs the others."""
    here = pathlib.Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and not ALL and item.get_closest_marker("quick") is None:
            item.add_marker(pytest.mark.skip(reason="`make chaos` runs it"))


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    """Where deliveries go."""
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture
def begin(tmp_path: pathlib.Path, receiver: Receiver, request: pytest.FixtureRequest) -> Begin:
    """Begins a scenario: a fleet and its load inside the block, the audit after it. It is named after its test."""
    name = request.node.name.removeprefix("test_").replace("_", " ").replace("[", ": ").rstrip("]")

    @asynccontextmanager
    async def begin(
        targets: Targets | None = None, unruliness: float = UNRULINESS, **how: Any
    ) -> AsyncIterator[Chaos[Any]]:
        targets = targets or HttpTargets(receiver, tmp_path.name.replace("_", "-"), SEED, unruliness)
        async with chaos(name, tmp_path / "fleet", targets, ROWS, **how) as running:
            yield running

    return begin


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a process beside others: tells the one that prints (see tests/conftest.py)."""
    if told := getattr(session.config, "workeroutput", None):
        told["scenarios"] = [cells(row) for row in ROWS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """In the one that prints: takes it."""
    TOLD.extend(getattr(node, "workeroutput", {}).get("scenarios", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of all scenarios that ran."""
    if lines := [*map(cells, ROWS), *TOLD]:
        terminalreporter.write_line(table(lines))


def cells(row: Row) -> list[str]:
    """A line of the table."""
    found = row.audit
    figures = (row.faults, found.accepted, found.delivered, found.failed, found.duplicated, found.lost, found.stuck)
    recovered = "" if row.recovered_sec is None else f"{row.recovered_sec:.1f} s"
    return [row.scenario, *map(str, figures), recovered, row.note]


def table(lines: list[list[str]]) -> str:
    """One line per scenario."""
    drawn = Table(title="Scenarios", title_justify="left")
    for heading in (
        "scenario",
        "faults",
        "accepted",
        "delivered",
        "failed",
        "sent again",
        "lost",
        "stuck",
        "recovered in",
    ):
        drawn.add_column(heading, justify="left" if heading == "scenario" else "right")
    drawn.add_column("besides")
    for line in lines:
        drawn.add_row(*line)
    console = Console(file=io.StringIO(), width=190, force_terminal=False)
    console.print(drawn)
    return str(console.file.getvalue())  # type: ignore[attr-defined]
