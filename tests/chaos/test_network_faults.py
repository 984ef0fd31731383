"""Links between processes are cut, stalled and slow; hints are lost and doubled; clocks are wrong."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from tests.chaos.conftest import Begin
from tests.chaos.fleet import KINDS
from tests.chaos.scenario import JOBS, PER_SEC, Chaos

HOUR_SEC = 3600
FENCED_SEC = 20


async def flap(running: Chaos[Any]) -> None:
    """One link after the other fails for a moment, each in its own way, until cancelled."""
    while True:
        link = running.dice.choice(running.fleet.links)
        fault = running.dice.choice(["reset", "cut", "stall", "slow", "reset in answer"])
        if fault == "reset":
            link.reset()
        elif fault == "cut":
            link.cut()
        elif fault == "stall":
            link.stall()
        elif fault == "slow":
            link.slow(0.05)
        else:
            link.reset_in_answer(running.dice.randrange(200))
        running.fault()
        await asyncio.sleep(running.dice.uniform(0.1, 1.0))
        link.mend()


async def test_two_schedulers_and_four_dispatchers_on_flapping_links(begin: Begin) -> None:
    async with begin(counts={"api": 2, "scheduler": 2, "dispatcher": 4}) as running:
        flapping = asyncio.create_task(flap(running))
        try:
            await running.load.run(JOBS, PER_SEC)
            await running.delivered(JOBS // 2)
        finally:
            flapping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await flapping
        for link in running.fleet.links:
            link.mend()
        running.fault(0)


async def test_a_dispatchers_line_to_the_database_is_half_open(begin: Begin) -> None:
    """It cannot beat and cannot know why: it stops sending before others take over."""
    async with begin(counts={"dispatcher": 2}) as running:
        async for _ in running.under_load(0.25):
            running.fleet.members["dispatcher"].to_database.stall()
            running.fault()
            await asyncio.sleep(FENCED_SEC)
            running.fleet.members["dispatcher"].to_database.mend()
            running.fault()


@pytest.mark.parametrize("how", ["lost", "doubled"])
async def test_all_hints_are(begin: Begin, how: str) -> None:
    async with begin(wrong={kind: {"hints": how} for kind in KINDS}) as running:
        await running.load.run(JOBS, PER_SEC)
        running.fault()


@pytest.mark.parametrize("shift_sec", [HOUR_SEC, -HOUR_SEC], ids=["fast", "slow"])
@pytest.mark.parametrize("kind", KINDS)
async def test_the_clock_is_wrong_by_an_hour(begin: Begin, kind: str, shift_sec: int) -> None:
    async with begin(wrong={kind: {"clock_shift_sec": shift_sec}}) as running:
        await running.load.run(JOBS, PER_SEC)
        running.fault()


@pytest.mark.parametrize("unruliness", [0.5], ids=["half_of_the_time"])
async def test_receivers_misbehave(begin: Begin, unruliness: float) -> None:
    async with begin(unruliness=unruliness) as running:
        await running.load.run(JOBS, PER_SEC)
        running.fault(running.targets.count // 2)


async def test_envoy_is_killed_and_restarted(begin: Begin) -> None:
    async with begin() as running:
        gateway = running.fleet.gateway
        assert gateway is not None
        load = asyncio.create_task(running.load.run(JOBS, PER_SEC))
        await running.delivered(JOBS // 4)
        running.fleet.kill(gateway)
        running.fault()
        await running.delivered(JOBS // 2)
        await running.fleet.restart(gateway)
        running.fault()
        await load
