"""How a scenario runs: a fleet under load, faults, the wait until all is done, the audit, and its row in the table."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from tests.chaos.audit import Audit, audit
from tests.chaos.fleet import Fleet, running_fleet
from tests.chaos.load import Load, client_of
from tests.chaos.targets import HttpTargets, Targets
from tests.e2e.rest import Rest
from tests.support.waiting import wait_until

SEED = int(os.environ.get("TE_CHAOS_SEED", "20261"))
JOBS = int(os.environ.get("TE_CHAOS_JOBS", "600" if os.environ.get("TE_CHAOS") == "all" else "200"))
PER_SEC = 60.0
SETTLED_SEC = 90.0

TargetsT = TypeVar("TargetsT", bound=Targets)


@dataclass(slots=True)
class Row:
    """A line of the table that `make chaos` prints."""

    scenario: str
    faults: int = 0
    audit: Audit = field(default_factory=lambda: Audit(0))
    recovered_sec: float | None = None
    """From the last fault until nothing was left to do."""
    note: str = ""


@dataclass
class Chaos(Generic[TargetsT]):
    """A running scenario: break things by way of `fleet` and `targets`, telling `fault`, while `load` goes on."""

    fleet: Fleet
    load: Load
    rest: Rest
    targets: TargetsT
    dice: random.Random
    row: Row
    last_fault_at: float = field(default_factory=time.monotonic)

    def fault(self, count: int = 1) -> None:
        """So much was broken or mended just now."""
        self.row.faults += count
        self.last_fault_at = time.monotonic()

    async def delivered(self: Chaos[HttpTargets], least: int) -> None:
        """Waits until receivers have seen so many requests: the moment in the middle of things."""
        await wait_until(lambda: self.targets.count >= least, 60, f"{least} deliveries")

    async def under_load(self: Chaos[HttpTargets], *shares: float, per_sec: float = PER_SEC) -> AsyncIterator[float]:
        """Runs the whole load, and comes by when receivers have seen these shares of it: the moments to break something."""
        load = asyncio.create_task(self.load.run(JOBS, per_sec))
        try:
            for share in shares:
                await self.delivered(int(JOBS * share))
                yield share
            await load
        finally:
            load.cancel()

    async def settle(self, deadline_sec: float = SETTLED_SEC) -> None:
        """Waits until every execution has ended; the audit says so when some have not."""
        async with self.fleet.connection() as connection:

            async def ended() -> bool:
                rows = await connection.execute("SELECT 1 FROM executions WHERE completed_at IS NULL LIMIT 1")
                return await rows.fetchone() is None

            with contextlib.suppress(AssertionError):
                await wait_until(ended, deadline_sec, "the end of all executions")
        self.row.recovered_sec = time.monotonic() - self.last_fault_at


@contextlib.asynccontextmanager
async def chaos(
    name: str,
    folder: Path,
    targets: TargetsT,
    rows: list[Row],
    *,
    counts: Mapping[str, int] | None = None,
    wrong: Mapping[str, Mapping[str, Any]] | None = None,
    straight: bool = False,
    **settings: str,
) -> AsyncIterator[Chaos[TargetsT]]:
    """A fleet with its endpoints inside the block; after it all must settle, and the audit must find nothing."""
    row = Row(name)
    rows.append(row)
    async with (
        running_fleet(folder, counts=counts, wrong=wrong, straight=straight, **settings) as fleet,
        client_of(fleet) as rest,
    ):
        dice = random.Random(SEED)
        load = Load(rest, [wanted["name"] for wanted in targets.wanted()], dice)
        for wanted in targets.wanted():
            await load.register(wanted)
        running = Chaos(fleet, load, rest, targets, dice, row)
        yield running
        await running.settle()
        async with fleet.connection() as connection:
            row.audit = await audit(connection, load.accepted, await targets.sent(), targets.dropped)
    assert not row.audit.faults, (dict(row.audit.faults), dict(row.audit.examples))
    assert row.audit.accepted > 0
