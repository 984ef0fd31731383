"""Hours of bad luck in minutes: a fault every few seconds under steady load, with schedules ticking beside it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from tests.chaos.audit import judge_ticks
from tests.chaos.conftest import Begin
from tests.chaos.fleet import KINDS
from tests.chaos.scenario import SEED, Chaos
from tests.support.faulty_database import Fault

MINUTES = float(os.environ.get("TE_SOAK_MINUTES", "1"))
JOBS = int(os.environ.get("TE_SOAK_JOBS", "3000"))
SCHEDULES = 20
BETWEEN_SEC = (1.0, 6.0)
FROZEN_SEC = (1.0, 20.0)
STATEMENTS_FAIL = 0.002
COUNTS = {"api": 2, "scheduler": 2, "dispatcher": 3}


class Mischief:
    """One fault at a time, drawn by the dice."""

    def __init__(self, running: Chaos[Any]) -> None:
        self._running = running
        self._kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "kill a service": self._kill,
            "kill the database": self._kill_database,
            "restart the database": self._restart_database,
            "freeze a service": self._freeze,
            "cut a link": self._cut,
            "stall a link": self._stall,
            "reset all links": self._reset_all,
            "restart a service": self._restart,
            "kill Envoy": self._kill_gateway,
        }
        # What costs everybody seconds comes less often than what costs one part a moment.
        self._weights = [4, 1, 1, 3, 4, 3, 1, 2, 1]
        self.done: Counter[str] = Counter()

    async def go_on(self) -> None:
        """A fault every few seconds, until cancelled; then all is mended."""
        dice = self._running.dice
        try:
            while True:
                (kind,) = dice.choices(list(self._kinds), self._weights)
                self.done[kind] += 1
                self._running.fault()
                await self._kinds[kind]()
                await asyncio.sleep(dice.uniform(*BETWEEN_SEC))
        finally:
            for name in self._running.fleet.members:
                self._running.fleet.thaw(name)
            for link in self._running.fleet.links:
                link.mend()
            self._running.fault(0)

    def _any_name(self) -> str:
        return self._running.dice.choice(list(self._running.fleet.members))

    async def _kill(self) -> None:
        self._running.fleet.kill(self._running.fleet.members[self._any_name()].process)

    async def _kill_database(self) -> None:
        self._running.fleet.kill(self._running.fleet.postgres)

    async def _restart_database(self) -> None:
        await self._running.fleet.restart(self._running.fleet.postgres)

    async def _kill_gateway(self) -> None:
        assert self._running.fleet.gateway is not None
        self._running.fleet.kill(self._running.fleet.gateway)

    async def _restart(self) -> None:
        await self._running.fleet.restart(self._running.fleet.members[self._any_name()].process)

    async def _freeze(self) -> None:
        name = self._any_name()
        self._running.fleet.freeze(name)
        await asyncio.sleep(self._running.dice.uniform(*FROZEN_SEC))
        self._running.fleet.thaw(name)

    async def _cut(self) -> None:
        await self._for_a_while(lambda link: link.cut())

    async def _stall(self) -> None:
        await self._for_a_while(lambda link: link.stall())

    async def _reset_all(self) -> None:
        for link in self._running.fleet.links:
            link.reset()

    async def _for_a_while(self, spoil: Callable[[Any], None]) -> None:
        link = self._running.dice.choice(self._running.fleet.links)
        spoil(link)
        await asyncio.sleep(self._running.dice.uniform(0.2, 8.0))
        link.mend()


async def test_a_fault_every_few_seconds(begin: Begin) -> None:
    fault_names = sorted(fault.name for fault in Fault)
    wrong = {
        kind: {"seed": SEED + number, "rate": STATEMENTS_FAIL, "kinds": fault_names}
        for number, kind in enumerate(KINDS)
    }
    async with begin(counts=COUNTS, wrong=wrong, unruliness=0.02) as running:
        running.load.patience_sec = 300.0
        for number in range(SCHEDULES):
            await running.load.schedule(number)
        mischief = Mischief(running)
        begun = time.monotonic()
        task = asyncio.create_task(mischief.go_on())
        try:
            await running.load.run(JOBS, JOBS / (MINUTES * 60), batch=200)
            await asyncio.sleep(max(0.0, begun + MINUTES * 60 - time.monotonic()))
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await running.load.unschedule()
        await running.settle(deadline_sec=300.0)
        async with running.fleet.connection() as connection:
            ticks = await judge_ticks(running.row.audit, connection, timedelta(minutes=1))
        assert not running.row.audit.faults, dict(running.row.audit.examples)
        running.row.note = ", ".join(f"{count} × {kind}" for kind, count in mischief.done.most_common())
        running.row.note += f"; {ticks} ticks; clients met {dict(running.load.failures)}"
